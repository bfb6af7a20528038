"""Small asynchronous clients for every way to produce through the REST proxy. They record all outcomes.

Each function sends a few records in one request and writes the outcomes to a history. After a lost connection or a
retriable error, the outcome of a record is unknown: the record may be stored once, or not at all.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.history.history import History

V2_JSON: Final = "application/vnd.kafka.json.v2+json"
# In a 200 response, these error codes mean that a record was not acknowledged. Other codes mean that it was rejected.
RETRIABLE_CODES: Final = frozenset({50002, 50003, 50302, 429})


@dataclass(frozen=True, slots=True)
class Target:
    http: httpx.AsyncClient
    cluster_id: str
    topic: str
    history: History

    @property
    def v3(self) -> str:
        return f"/v3/clusters/{self.cluster_id}/topics/{self.topic}/records"

    def settle(self, record_id: str, report: Mapping[str, Any], partition: str = "partition") -> bool:
        """Record one row of a response. Return True if the row acknowledges the record."""
        code = report.get("error_code")
        if code in (None, 200):
            self.history.acknowledge(record_id, report[partition], report["offset"])
            return True
        if code not in RETRIABLE_CODES:
            self.history.refuse(record_id)
        return False


Produce = Callable[[Target, Sequence[str]], Awaitable[bool]]
"""Sends records. Returns True if all are acknowledged. Raises httpx.HTTPError, OSError or WebSocketException."""
LOST: Final = (httpx.HTTPError, OSError, WebSocketException, EOFError)


async def v2(target: Target, ids: Sequence[str], key: str | None = None) -> bool:
    body = json.dumps({"records": [{"value": name} for name in ids]})
    headers = {"content-type": V2_JSON, **({"idempotency-key": key} if key else {})}
    answer = await target.http.post(f"/topics/{target.topic}", content=body, headers=headers)
    if answer.status_code != 200:
        return False
    rows = answer.json()["offsets"]
    outcomes = [target.settle(name, row) for name, row in zip(ids, rows, strict=True)]
    return all(outcomes)


async def v2_keyed(target: Target, ids: Sequence[str]) -> bool:
    return await v2(target, ids, key=f"key-{ids[0]}")


async def batch(target: Target, ids: Sequence[str], key: str | None = None) -> bool:
    entries = [{"id": name, "value": {"type": "JSON", "data": name}} for name in ids]
    headers = {"idempotency-key": key} if key else {}
    answer = await target.http.post(f"{target.v3}:batch", json={"entries": entries}, headers=headers)
    if answer.status_code != 207:
        return False
    body = answer.json()
    for row in body["failures"]:
        target.settle(row["id"], row)
    return len([target.settle(row["id"], row, "partition_id") for row in body["successes"]]) == len(ids)


async def batch_keyed(target: Target, ids: Sequence[str]) -> bool:
    return await batch(target, ids, key=f"key-{ids[0]}")


async def v3(target: Target, ids: Sequence[str]) -> bool:
    """Send one request for each record."""
    outcomes = []
    for name in ids:
        answer = await target.http.post(target.v3, json={"value": {"type": "JSON", "data": name}})
        outcomes.append(answer.status_code == 200 and target.settle(name, answer.json(), "partition_id"))
    return all(outcomes)


async def streaming(target: Target, ids: Sequence[str]) -> bool:
    """Send one chunked request with all records. Reports arrive before the request is complete."""

    async def chunks() -> AsyncIterator[bytes]:
        for name in ids:
            yield json.dumps({"value": {"type": "JSON", "data": name}}).encode()

    text, outcomes = "", 0
    headers = {"content-type": "application/json"}
    async with target.http.stream("POST", target.v3, content=chunks(), headers=headers) as answer:
        async for part in answer.aiter_text():
            text += part
            reports, text = _documents(text)
            for report in reports:
                outcomes += answer.status_code == 200 and target.settle(ids[outcomes], report, "partition_id")
    return outcomes == len(ids)


async def web_socket(target: Target, ids: Sequence[str]) -> bool:
    url = f"{target.http.base_url}".replace("http://", "ws://").rstrip("/")
    outcomes: list[bool] = []
    async with connect(f"{url}{target.v3}:produce", open_timeout=60) as socket:
        for name in ids:
            await socket.send(json.dumps({"value": {"type": "JSON", "data": name}}))
        while len(outcomes) < len(ids):
            reports, rest = _documents(str(await socket.recv()))
            assert not rest, "a message holds whole reports"
            for report in reports:
                outcomes.append(target.settle(ids[len(outcomes)], report, "partition_id"))
                if not outcomes[-1]:
                    # An error may end the stream, so the reports of the other records may never arrive.
                    return False
    return all(outcomes)


WAYS: Final[Mapping[str, Produce]] = {
    "v2": v2,
    "v2-keyed": v2_keyed,
    "v3": v3,
    "streaming": streaming,
    "batch": batch,
    "batch-keyed": batch_keyed,
    "web-socket": web_socket,
}
KEYED: Final = frozenset({"v2-keyed", "batch-keyed"})


def _documents(text: str) -> tuple[list[Any], str]:
    """Return the complete JSON documents at the start of the text, and the rest of the text."""
    documents: list[Any] = []
    text = text.lstrip()
    while text:
        try:
            document, end = json.JSONDecoder().raw_decode(text)
        except json.JSONDecodeError:
            break
        documents.append(document)
        text = text[end:].lstrip()
    return documents, text
