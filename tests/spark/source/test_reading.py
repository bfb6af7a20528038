"""One task of a read: damaged batches, brokers that go away, bounds on what is held."""

import asyncio
import logging
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition
from pyarrow import lib as pa

from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.kafka_client.options import ConnectionOptions
from headgate.serdes.columnar import scan_batches
from headgate.spark_udfs.source import reading
from headgate.spark_udfs.source.cluster import Cluster
from headgate.spark_udfs.source.columns import RowBatches
from headgate.spark_udfs.source.errors import BrokerUnreachable, DataLost, TopicMissing, UnreadableBatch
from headgate.spark_udfs.source.fetching import COMPRESSED_BYTES_MAX, FetchOptions, RangeFetcher, runs, whole_batches
from headgate.spark_udfs.source.loop import loop_thread
from headgate.spark_udfs.source.ranges import OffsetRange
from headgate.spark_udfs.source.reading import ReadSpec, parts, read_range
from tests.live.headgate import HeadgateBroker
from tests.live.ports import free_port
from tests.spark.source.topics import Topics, numbered, rows_of

AT = TopicPartition("orders", 0)
CRC_AT = 17


def built(first: int, values: list[bytes], timestamp: int = 1_700_000_000_000, codec: int = 0) -> bytes:
    """A record batch whose first offset is `first`."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 24,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp, None, value, [])
    batch = bytearray(builder.build())
    struct.pack_into(">q", batch, 0, first)
    return bytes(batch)


class Log(Cluster):
    """A broker that has these batches, and answers with one at a time."""

    def __init__(self, batches: list[bytes], end: int, start: int = 0) -> None:
        super().__init__(ConnectionOptions(("nowhere:1",)))
        self.batches = batches
        self.end = end
        self.start = start
        self.asked: list[int] = []

    async def fetch(self, at: TopicPartition, offset: int, **_: Any) -> Fetched:
        self.asked.append(offset)
        if not self.start <= offset <= self.end:
            return Fetched(b"", -1, -1, -1, is_out_of_range=True)
        for batch in self.batches:
            if whole_batches(batch, 2**62)[1] > offset:
                return Fetched(batch, self.end, self.end, self.start)
        return Fetched(b"", self.end, self.end, self.start)

    async def edges(self, places: Any, where: int, isolation: Isolation) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, self.start if where == -2 else self.end)


def spec(*, is_loss_fatal: bool = True, columns: tuple[str, ...] = ("offset", "value")) -> ReadSpec:
    fetch = FetchOptions(Isolation.READ_UNCOMMITTED, 1 << 20, 10, is_loss_fatal)
    return ReadSpec(ConnectionOptions(("nowhere:1",)), fetch, columns, None)


def offsets_of(
    monkeypatch: pytest.MonkeyPatch, log: Log, start: int, end: int, *, is_loss_fatal: bool = True
) -> list[int]:
    monkeypatch.setattr(reading, "shared_cluster", lambda _: log)
    batches = read_range(spec(is_loss_fatal=is_loss_fatal), OffsetRange(AT, start, end))
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


def test_a_range_takes_its_own_records_only(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log([built(0, [b"x"] * 5), built(5, [b"x"] * 5), built(10, [b"x"] * 5)], 15)
    assert offsets_of(monkeypatch, log, 3, 12) == list(range(3, 12))


def test_offsets_that_compaction_took_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log([built(0, [b"x"] * 2), built(90, [b"x"] * 2)], 92)
    assert offsets_of(monkeypatch, log, 0, 50) == [0, 1]
    assert offsets_of(monkeypatch, log, 0, 92) == [0, 1, 90, 91]


def test_the_next_fetch_is_on_its_way_while_one_is_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log([built(0, [b"x"]), built(1, [b"x"]), built(2, [b"x"])], 3)
    fetcher = RangeFetcher(loop_thread(), log, OffsetRange(AT, 0, 3), spec().fetch)
    pieces = iter(fetcher)
    next(pieces)
    deadline = time.monotonic() + 10
    while len(log.asked) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    assert log.asked == [0, 1]
    fetcher.close()


@pytest.mark.parametrize("place", [CRC_AT, 70])
def test_a_damaged_batch_fails_the_task_or_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: int
) -> None:
    damaged = bytearray(built(2, [b"y" * 50] * 3))
    damaged[place] ^= 0x55
    log = Log([built(0, [b"x"] * 2), bytes(damaged), built(5, [b"x"] * 2)], 7)
    with pytest.raises(DataLost, match="offsets 2 to 4 of orders-0 is damaged: its checksum does not match"):
        offsets_of(monkeypatch, log, 0, 7)
    with caplog.at_level(logging.WARNING):
        assert offsets_of(monkeypatch, log, 0, 7, is_loss_fatal=False) == [0, 1, 5, 6]
    assert "failOnDataLoss is false" in caplog.text


@pytest.mark.parametrize("is_loss_fatal", [True, False])
def test_an_old_message_format_is_an_end_not_a_loop(monkeypatch: pytest.MonkeyPatch, is_loss_fatal: bool) -> None:
    old = bytearray(built(0, [b"x"]))
    old[16] = 1
    with pytest.raises(UnreadableBatch, match="message format 1"):
        offsets_of(monkeypatch, Log([bytes(old)], 1), 0, 1, is_loss_fatal=is_loss_fatal)


def test_a_batch_with_a_header_of_nonsense_is_an_end_not_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    nonsense = bytearray(built(0, [b"x"]))
    struct.pack_into(">i", nonsense, 8, -5)

    class Broken(Log):
        async def fetch(self, at: TopicPartition, offset: int, **_: Any) -> Fetched:
            return Fetched(bytes(nonsense), self.end, self.end, self.start)

    with pytest.raises(UnreadableBatch, match="offset 0 of orders-0"):
        offsets_of(monkeypatch, Broken([], 5), 0, 5)


def test_a_log_that_became_shorter_is_data_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log([built(0, [b"x"] * 5)], 5)
    with pytest.raises(DataLost, match="Offsets 5 to 8 of orders-0"):
        offsets_of(monkeypatch, log, 0, 9)
    assert offsets_of(monkeypatch, log, 0, 9, is_loss_fatal=False) == [0, 1, 2, 3, 4]
    assert offsets_of(monkeypatch, log, 7, 9, is_loss_fatal=False) == []


def test_compressed_batches_are_inflated_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros shrink a thousandfold: what comes in one fetch would be more than Arrow can hold in one array."""
    batches = [built(10 * n, [bytes(100_000)] * 10, codec=4) for n in range(2_000)]
    one_fetch = b"".join(batches)
    assert len(one_fetch) < 4 << 20
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 1 << 20)
    held = [len(run) for run in runs(one_fetch)]
    assert sum(held) == len(one_fetch)
    assert max(held) <= COMPRESSED_BYTES_MAX
    log = Log(batches[:5], 50)
    assert offsets_of(monkeypatch, log, 3, 50) == list(range(3, 50))


def test_batches_that_are_not_compressed_stay_together() -> None:
    one_fetch = b"".join(built(n, [bytes(100_000)]) for n in range(20))
    assert [len(run) for run in runs(one_fetch)] == [len(one_fetch)]
    assert list(runs(b"")) == []


def test_a_topic_that_is_deleted_meanwhile_is_data_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deleted(Log):
        async def fetch(self, at: TopicPartition, offset: int, **_: Any) -> Fetched:
            if offset >= 2:
                raise TopicMissing("orders-0 is not, or no longer, in the cluster.")
            return await super().fetch(at, offset)

    log = Deleted([built(0, [b"x"] * 2), built(2, [b"x"] * 2)], 4)
    with pytest.raises(DataLost, match="Offsets 2 to 3 are lost: orders-0"):
        offsets_of(monkeypatch, log, 0, 4)
    assert offsets_of(monkeypatch, log, 0, 4, is_loss_fatal=False) == [0, 1]


def test_rows_are_cut_into_batches_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    records = scan_batches(built(0, [b"v" * 100] * 50), 0).rows
    monkeypatch.setattr(reading, "BATCH_ROWS_MAX", 20)
    assert [len(part) for part in parts(records)] == [20, 20, 10]
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 1000)
    assert [len(part) for part in parts(records)] == [10] * 5
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 10)
    assert [len(part) for part in parts(records)] == [1] * 50
    assert [offset for part in parts(records) for offset in part.offsets] == list(range(50))
    assert list(parts(records.slice(0, 0))) == []


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [(-1, None), (0, 0), (-5, -5000), (2**62, None), (-(2**62), None), (9223372036854775, 9223372036854775000)],
)
def test_a_time_that_spark_cannot_hold_is_null(milliseconds: int, expected: int | None) -> None:
    records = scan_batches(built(0, [b"x"], milliseconds), 0).rows
    (batch,) = RowBatches(["timestamp"], "orders", 0, None).batches(records)
    assert batch.column("timestamp").view(pa.int64()).to_pylist() == [expected]


@pytest.fixture
def broker(tmp_path: Path) -> HeadgateBroker:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    return broker


def test_a_broker_that_comes_back_is_waited_for(broker: HeadgateBroker) -> None:
    topics = Topics(broker.address)
    topic = topics.create()
    topics.produce(topic, numbered(3000), batch__size=2000)
    source = topics.source(topic, kafka__max__partition__fetch__bytes="2000")
    reader = source.reader(source.schema())
    rows: list[int] = []
    killed: threading.Thread | None = None
    for batch in reader.read(reader.partitions()[0]):
        assert isinstance(batch, pa.RecordBatch)
        rows += batch.column("offset").to_pylist()
        if killed is None:
            broker.kill()
            killed = threading.Timer(0.5, broker.start)
            killed.start()
    assert killed is not None
    killed.join()
    assert rows == list(range(3000))
    broker.stop()


def test_a_broker_that_restarts_when_a_worker_is_new_is_waited_for(
    broker: HeadgateBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than the driver waits for brokers that it has never seen: they were there when the task was planned."""
    topics = Topics(broker.address)
    topic = topics.create()
    topics.produce(topic, numbered(3))
    source = topics.source(topic, kafka__client__id="a-worker-of-its-own")
    reader = source.reader(source.schema())
    planned = reader.partitions()
    monkeypatch.setattr("headgate.spark_udfs.source.cluster.FIRST_CONNECTION_SECONDS_MAX", 0.1)
    broker.kill()
    back = threading.Timer(1.0, broker.start)
    back.start()
    assert [row["value"] for row in rows_of(reader.read(planned[0]))] == [b"v0", b"v1", b"v2"]
    back.join()
    broker.stop()


def test_an_address_that_swallows_everything_is_given_up_before_a_request_would_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.spark_udfs.source.cluster.FIRST_CONNECTION_SECONDS_MAX", 0.1)
    monkeypatch.setattr("headgate.kafka_client.connection.CONNECT_MS_MAX", 200)
    monkeypatch.setattr("headgate.kafka_client.diagnosis.PROBE_SECONDS_MAX", 0.1)
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        source = Topics(address).source("orders", kafka__request__timeout__ms="3600000")
        with pytest.raises(BrokerUnreachable, match=f"{address}: no response. Check that bootstrap.servers"):
            source.reader(source.schema()).partitions()


def test_an_address_that_swallows_everything_hides_no_broker_behind_it(
    embedded: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.kafka_client.connection.CONNECT_MS_MAX", 200)
    topic = embedded.create()
    embedded.produce(topic, numbered(2))
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        both = f"127.0.0.1:{silent.getsockname()[1]},{embedded.address}"
        source = Topics(both).source(topic, kafka__request__timeout__ms="3600000")
        reader = source.reader(source.schema())
        assert [row["value"] for one in reader.partitions() for row in rows_of(reader.read(one))] == [b"v0", b"v1"]


def test_unreachable_advertised_addresses_are_reported_before_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a container whose advertised.listeners is a name that only its own network knows."""
    monkeypatch.setattr("headgate.spark_udfs.source.cluster.FIRST_CONNECTION_SECONDS_MAX", 0.1)
    elsewhere = f"127.0.0.1:{free_port()}"
    broker = HeadgateBroker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{elsewhere}"})
    broker.start()
    source = Topics(broker.address).source("orders", kafka__default__api__timeout__ms="3600000")
    with pytest.raises(
        BrokerUnreachable, match=f"{broker.address} respond, but their advertised addresses {elsewhere}"
    ):
        source.reader(source.schema()).partitions()
    broker.stop()


def test_a_broker_that_stays_away_fails_the_task_with_its_address(broker: HeadgateBroker) -> None:
    topics = Topics(broker.address)
    topic = topics.create()
    topics.produce(topic, numbered(3000), batch__size=2000)
    settings = {"kafka__max__partition__fetch__bytes": "2000", "kafka__default__api__timeout__ms": "600"}
    source = topics.source(topic, **settings)
    reader = source.reader(source.schema())
    batches = reader.read(reader.partitions()[0])
    next(iter(batches))
    broker.kill()
    with pytest.raises(BrokerUnreachable, match=broker.address):
        list(batches)


def test_a_task_that_ends_early_leaves_no_fetch_behind(embedded: Topics) -> None:
    topic = embedded.create()
    embedded.produce(topic, numbered(3000), batch__size=2000)
    source = embedded.source(topic, kafka__max__partition__fetch__bytes="2000")
    reader = source.reader(source.schema())
    batches = reader.read(reader.partitions()[0])
    next(iter(batches))
    batches.close()  # type: ignore[union-attr]  # a generator, which Spark closes where a LIMIT is reached

    async def fetches() -> list[str]:
        await asyncio.sleep(0.05)
        return [task.get_coro().__name__ for task in asyncio.all_tasks() if task.get_coro().__name__ == "fetch"]  # type: ignore[union-attr]

    assert loop_thread().run(fetches()) == []
