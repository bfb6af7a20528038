"""Parses error responses of the proxy."""

import httpx


def error_of(answer: httpx.Response) -> tuple[int, int]:
    """Return status and error code. The body must contain only `error_code` and `message`."""
    body = answer.json()
    assert set(body) == {"error_code", "message"}, answer.text
    assert body["message"]
    return answer.status_code, body["error_code"]
