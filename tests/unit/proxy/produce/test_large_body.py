"""Large bodies are processed in time slices, with the same result as small ones."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar

import orjson
import pytest

from headgate.kafka_client import time_slicing
from headgate.kafka_client.errors import ProducerClosed
from headgate.kafka_client.producer.producer import records_at_once_max
from headgate.kafka_client.producer.records import OutgoingRecord
from headgate.proxy.api.large_body import FIELD_BYTES_MAX, WHOLE_BYTES_MAX, parse_rows
from headgate.proxy.errors import BadRequest, InvalidPayload
from headgate.proxy.producers.sender import Sender
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink

Result = TypeVar("Result")
PADDING = "x" * (WHOLE_BYTES_MAX + 1)
RECORD_BYTES_MAX = 1_000_000


def parsed(body: bytes) -> Any:
    return asyncio.run(parse_rows(body, "records", RECORD_BYTES_MAX))


async def counted(work: Awaitable[Result]) -> tuple[Result, int]:
    """Return the result, and how often another task ran meanwhile."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    try:
        return await work, turns
    finally:
        task.cancel()


@pytest.mark.parametrize(
    "document",
    [
        {"records": [{"value": PADDING}, {"value": None}, {"key": 1, "value": [1.5, "é", {}]}], "value_schema_id": 3},
        {"records": [{"value": 12345678901234567890123}, {"value": PADDING}]},
        {"records": [1, "two", None, [PADDING]], "x": {"y": 1}},
        {"records": [], "value_schema": PADDING},
    ],
)
def test_a_large_body_gives_the_same_result_as_a_small_one(document: Any) -> None:
    assert parsed(json.dumps(document).encode()) == document


@pytest.mark.parametrize("shape", ['["%s"]', '"%s"', '{"records": "%s"}', '{"records": {"a": "%s"}}'])
def test_a_large_body_with_another_structure_has_no_records(shape: str) -> None:
    found = parsed((shape % PADDING).encode())
    assert found is None or found["records"] is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"records": [{"value": "%s"]}' % PADDING.encode(),
        b'{"records": [{"value": "%s"}, {"value": nul}]}' % PADDING.encode(),
        b'{"records": [{"value": "%s\xff"}]}' % PADDING.encode(),
        b'{"records": [' + b"[" * (WHOLE_BYTES_MAX + 1),
        b'{"records": [{"value": "%s"}]} more' % PADDING.encode(),
        b"{" + PADDING.encode(),
    ],
)
def test_a_large_body_that_is_not_json_is_rejected(body: bytes) -> None:
    with pytest.raises(BadRequest, match="not valid JSON"):
        parsed(body)


def test_a_record_and_a_field_have_limits() -> None:
    with pytest.raises(InvalidPayload, match=r"records\[1\] has \d+ bytes. The limit is 8000000 bytes"):
        parsed(orjson.dumps({"records": [1, "x" * 8_000_001]}))
    with pytest.raises(BadRequest, match="The field value_schema is larger than the limit"):
        parsed(orjson.dumps({"records": [1], "value_schema": "x" * (FIELD_BYTES_MAX + 1)}))


def test_other_tasks_run_while_a_large_body_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slicing, "SLICE_SECONDS", 0.0)
    rows = [{"value": {"id": number, "text": "x" * 100}} for number in range(20_000)]
    found, turns = asyncio.run(counted(parse_rows(orjson.dumps({"records": rows}), "records", RECORD_BYTES_MAX)))
    assert found == {"records": rows}
    assert turns >= 20_000 // time_slicing.CHUNK_ITEMS - 1


def test_many_records_are_placed_in_slices_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slicing, "SLICE_SECONDS", 0.0)

    async def run() -> None:
        link = FakeLink(partition_count=1)
        sender = Sender(ProxySettings(), link)  # type: ignore[arg-type]
        count = records_at_once_max * 3
        records = [OutgoingRecord(None, b"%d" % number) for number in range(count)]
        placing = asyncio.create_task(counted(sender.place("t", records)))
        delivered = 0
        while delivered < count:
            while not link.answers or link.answers[-1].done():  # noqa: ASYNC110  # the sender has no event for this
                await asyncio.sleep(0)
            batch = link.sent[-1]
            assert batch.values == tuple(b"%d" % number for number in range(delivered, delivered + len(batch.values)))
            link.place(delivered)
            delivered += len(batch.values)
        tickets, turns = await placing
        assert [(await ticket.delivered()).offset for ticket in tickets] == list(range(count))
        assert turns > records_at_once_max * 3 // time_slicing.CHUNK_ITEMS
        assert sender.pending_bytes == 0

    asyncio.run(asyncio.wait_for(run(), 30))


def test_records_that_are_not_placed_when_the_proxy_stops_get_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_slicing, "SLICE_SECONDS", 0.0)

    async def run() -> None:
        sender = Sender(ProxySettings(shutdown_graceful_ms=100), FakeLink(partition_count=1))  # type: ignore[arg-type]
        records = [OutgoingRecord(None, b"x") for _ in range(records_at_once_max * 3)]
        placing = asyncio.create_task(sender.place("t", records))
        for _ in range(60):
            await asyncio.sleep(0)
        await sender.close()
        for ticket in await placing:
            with pytest.raises(ProducerClosed):
                await ticket.delivered()
        assert sender.pending_bytes == 0

    asyncio.run(asyncio.wait_for(run(), 30))
