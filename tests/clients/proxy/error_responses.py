"""Error responses in tests."""

import httpx


def error_of(answer: httpx.Response) -> tuple[int, int]:
    """Status and code of a refusal, whose body has nothing else."""
    body = answer.json()
    assert set(body) == {"error_code", "message"}, answer.text
    assert body["message"]
    return answer.status_code, body["error_code"]
