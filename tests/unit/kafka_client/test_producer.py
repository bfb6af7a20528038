"""The producer outside the proxy: batches of the caller, acks other than all, compression."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import errors as kafka
from aiokafka.record.default_records import DefaultRecordBatch
from kio.schema.errors import ErrorCode

from headgate.kafka_client.errors import BrokerUnavailable, BufferFull, InvalidRequest, ProducerClosed
from headgate.kafka_client.options import ConnectionOptions
from headgate.kafka_client.producer import producer as producer_module
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.partitioner import partition_of
from headgate.kafka_client.producer.producer import Producer, new_builder
from headgate.kafka_client.producer.records import Batch, OutgoingRecord, ProducerIdentity
from tests.unit.proxy.produce.fake_link import FakeLink

CONNECTION = ConnectionOptions(("127.0.0.1:9092",), request_timeout_ms=100)


def run(scenario: Callable[[FakeLink, Producer], Awaitable[None]], **options: Any) -> None:
    async def started() -> None:
        link: Any = FakeLink()
        producer = Producer(CONNECTION, ProducerOptions(close_timeout_ms=0, **options), link)
        await scenario(link, producer)
        await producer.close()

    asyncio.run(asyncio.wait_for(started(), 10))


async def requests(link: FakeLink, count: int) -> None:
    async with asyncio.timeout(5):
        while len(link.answers) < count:  # noqa: ASYNC110  # the fake link has no event
            await asyncio.sleep(0.01)


def filled(options: ProducerOptions, *values: bytes) -> Any:
    builder = new_builder(options)
    for index, value in enumerate(values):
        assert builder.append(index, 1, None, value, []) is not None
    return builder


def test_a_batch_of_the_caller_is_retried_with_its_numbers_until_the_outcome_is_known() -> None:
    async def scenario(link: FakeLink, producer: Producer) -> None:
        batches = [producer.enqueue("t", 0, filled(ProducerOptions(), b"a", b"b"), 2) for _ in range(2)]
        await requests(link, 1)
        link.lose(kafka.KafkaConnectionError("gone"))
        await requests(link, 2)
        assert link.sent[0] == link.sent[1]
        link.place(7)
        await requests(link, 3)
        assert (link.sent[2].producer_id, link.sent[2].sequence) == (link.sent[0].producer_id, 2)
        link.refuse(ErrorCode.message_too_large)
        await asyncio.gather(*(batch.wait() for batch in batches))
        assert (batches[0].base_offset, batches[0].error) == (7, None)
        assert isinstance(batches[1].error, InvalidRequest)
        assert batches[1].error.kafka_code is ErrorCode.message_too_large
        assert producer.pending_bytes == 0

    run(scenario)


def test_an_unknown_outcome_is_reported() -> None:
    async def scenario(link: FakeLink, producer: Producer) -> None:
        batch: Batch = producer.enqueue("t", 0, filled(ProducerOptions(), b"a"), 1)
        await requests(link, 1)
        link.lose(kafka.RequestTimedOutError())
        await batch.wait()
        assert batch.error is not None
        assert "may have been written" in str(batch.error)

    run(scenario, delivery_timeout_ms=50)


@pytest.mark.parametrize("acks", [0, 1])
def test_without_all_acknowledgements_batches_have_no_producer_id(acks: int) -> None:
    async def scenario(link: FakeLink, producer: Producer) -> None:
        for index in range(2):
            ticket = producer.place_one("t", OutgoingRecord(None, b"v", 0), (0, 1), 1)
            await requests(link, index + 1)
            assert (link.sent[-1].producer_id, link.sent[-1].sequence) == (-1, -1)
            link.place(-1 if acks == 0 else index)
            assert (await ticket.delivered()).offset == (-1 if acks == 0 else index)

    run(scenario, acks=acks)


@pytest.mark.parametrize(("compression", "codec"), [("none", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_batches_are_compressed(compression: str, codec: int) -> None:
    options = ProducerOptions(compression=compression)
    batch = DefaultRecordBatch(bytes(filled(options, b"x" * 1000).build()))
    assert batch.compression_type == codec
    assert [record.value for record in batch] == [b"x" * 1000]
    assert (batch.magic, batch.is_transactional) == (2, False)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, 0)


def test_no_broker_is_reported_when_the_producer_is_opened() -> None:
    async def scenario() -> None:
        producer = Producer(ConnectionOptions(("127.0.0.1:1",)), ProducerOptions(close_timeout_ms=0))
        with pytest.raises(BrokerUnavailable, match=r"127\.0\.0\.1:1: Connection refused"):
            await producer.open()
        await producer.close()

    asyncio.run(asyncio.wait_for(scenario(), 10))


@pytest.mark.parametrize("close_timeout_ms", [0, 5_000])
def test_a_producer_that_closes_waits_for_its_batches_up_to_its_timeout(close_timeout_ms: int) -> None:
    async def scenario() -> None:
        link: Any = FakeLink()
        options = ProducerOptions(close_timeout_ms=close_timeout_ms)
        producer = Producer(CONNECTION, options, link)
        batches = [producer.enqueue("t", 0, filled(options, b"a"), 1) for _ in range(2)]
        await requests(link, 1)
        closing = asyncio.ensure_future(producer.close())
        if close_timeout_ms:
            link.place(3)
            await requests(link, 2)
            link.place(4)
        await closing
        assert all(batch.is_settled for batch in batches)
        assert [batch.base_offset for batch in batches] == ([3, 4] if close_timeout_ms else [-1, -1])
        assert all((batch.error is None) == bool(close_timeout_ms) for batch in batches)
        with pytest.raises(ProducerClosed):
            producer.enqueue("t", 0, filled(options, b"a"), 1)

    asyncio.run(asyncio.wait_for(scenario(), 10))


@pytest.mark.parametrize("how", ["place", "place_one", "build"])
@pytest.mark.parametrize("missing_bytes", [0, 1])
def test_the_size_of_pending_records_is_limited(how: str, missing_bytes: int) -> None:
    record = OutgoingRecord(None, bytes(100), 0)

    async def put(producer: Producer) -> None:
        if how == "build":
            producer.build("t", [(0, [record])])
        elif how == "place_one":
            producer.place_one("t", record, (0, 1), 1)
        else:
            await producer.place("t", [record])

    async def scenario(link: FakeLink, producer: Producer) -> None:
        # The first record is accepted even if it is larger than the limit.
        (ticket,) = await producer.place("t", [record])
        size = ticket.batch.bytes
        assert producer.pending_bytes == size
        larger = Producer(CONNECTION, ProducerOptions(pending_bytes_max=size + record.size() - missing_bytes), link)  # type: ignore[arg-type]
        await larger.place("t", [record])
        if missing_bytes:
            with pytest.raises(BufferFull):
                await put(larger)
            await larger.place("t", [record], is_limited=False)
        else:
            await put(larger)
        assert larger.pending_bytes > size

    run(scenario, pending_bytes_max=1)


def test_a_large_request_is_limited_and_stops_when_the_producer_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_module, "records_at_once_max", 2)
    records = [OutgoingRecord(None, bytes(100), number % 2) for number in range(3000)]

    async def scenario(link: FakeLink, producer: Producer) -> None:
        producer.place_one("t", records[0], (0, 1), 1)
        with pytest.raises(BufferFull):
            await producer.place("t", records)
        tickets = await producer.place("t", records, is_limited=False)
        assert [ticket.partition for ticket in tickets] == [record.partition for record in records]
        placing = asyncio.ensure_future(producer.place("t", records, is_limited=False))
        await asyncio.sleep(0)
        await producer.close()
        tickets = await placing
        assert len(tickets) == len(records)
        with pytest.raises(ProducerClosed):
            await tickets[-1].delivered()
        assert producer.pending_bytes == 0

    run(scenario, pending_bytes_max=10_000)


@pytest.mark.parametrize("missing_bytes", [0, 1])
def test_the_limit_of_pending_records_includes_all_slices(monkeypatch: pytest.MonkeyPatch, missing_bytes: int) -> None:
    monkeypatch.setattr(producer_module, "records_at_once_max", 2)
    records = [OutgoingRecord(None, bytes(100), 0) for _ in range(3000)]
    total = sum(record.size() for record in records)

    async def scenario(link: FakeLink, producer: Producer) -> None:
        pending = producer.place_one("t", records[0], (0, 1), 1).batch.bytes
        larger = ProducerOptions(pending_bytes_max=pending + total - missing_bytes)
        monkeypatch.setattr(producer, "_options", larger)
        if missing_bytes:
            with pytest.raises(BufferFull):
                await producer.place("t", records)
        else:
            assert len(await producer.place("t", records)) == 3000

    run(scenario, pending_bytes_max=1)


def test_keys_choose_a_partition_as_in_java() -> None:
    assert partition_of(b"any", (7,)) == 7
    # The hashes of Kafka's own test for murmur2 (UtilsTest). Two of them are negative.
    assert partition_of(b"21", range(2**31)) == -973932308 & 0x7FFFFFFF
    assert partition_of(b"foobar", range(2**31)) == -790332482 & 0x7FFFFFFF
    assert partition_of(b"", range(2**31)) == 275646681
    assert partition_of(b"", [5, 6, 7]) == [5, 6, 7][275646681 % 3]


def test_a_producer_id_starts_at_zero() -> None:
    assert ProducerIdentity(0, 0).is_idempotent
    assert not ProducerIdentity(-1, -1).is_idempotent
