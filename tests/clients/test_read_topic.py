"""`read_topic`: a topic as Arrow, pandas, Polars and DuckDB, in a process without PySpark."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb
import pytest
from confluent_kafka import Producer

from headgate import Serializer, read_topic
from headgate.serdes import Reason, RegistryClient, RegistrySettings, avro_schema
from headgate.spark_udfs.driver.reader_choice import ReaderError
from headgate.spark_udfs.source.errors import BadOption, TopicMissing
from headgate.spark_udfs.topic_table import TopicTable
from headgate.testing import Headgate, PoisonPayloads

ORDER = avro_schema(
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},'
    ' {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}]}]}'
)
GOOD_COUNT = 5_000
FIRST_MS = 1_790_000_000_000
BIG = 2**53


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headgate]:
    with Headgate(tmp_path_factory.mktemp("tables"), broker_configs={"num.partitions": "3"}) as headgate:
        fill(headgate)
        yield headgate


def fill(headgate: Headgate) -> None:
    producer = Producer({"bootstrap.servers": headgate.bootstrap_servers, "acks": "all", "log_level": 0})
    with RegistryClient(RegistrySettings(urls=(headgate.registry_url,))) as registry:
        serializer = Serializer(registry, ORDER)
        for number in range(GOOD_COUNT):
            payload = serializer.serialize({"id": BIG + number, "price": None}, topic="orders")
            producer.produce("orders", payload, key=str(number), timestamp=FIRST_MS + number)
        poison = PoisonPayloads(registry)
        for reason in PoisonPayloads.REASONS:
            producer.produce("orders", poison(reason), key=b"bad", timestamp=FIRST_MS)
    assert producer.flush(60) == 0


def table(running: Headgate, **arguments: object) -> TopicTable:
    return read_topic(
        "orders",
        bootstrap_servers=running.bootstrap_servers,
        registry=running.registry_url,
        **arguments,  # type: ignore[arg-type]
    )


def test_every_record_is_good_or_poison(running: Headgate) -> None:
    orders = table(running)
    assert orders.offset_count == orders.good.num_rows + orders.poison.num_rows
    ids = sorted(row["id"] for row in orders.good.column("value").to_pylist())
    assert ids == [BIG + number for number in range(GOOD_COUNT)]
    assert "reason" not in orders.good.column_names
    # The other payloads have another writer schema, which the reader schema cannot resolve.
    framing = ("NULL", "TOO_SHORT", "BAD_MAGIC", "UNKNOWN_SCHEMA")
    wanted = Counter([*framing, *["UNRESOLVABLE"] * (len(PoisonPayloads.REASONS) - len(framing))])
    assert Counter(orders.poison.column("reason").to_pylist()) == wanted
    raw = dict(zip(orders.poison.column("reason").to_pylist(), orders.poison.column("raw").to_pylist(), strict=True))
    assert raw[Reason.TOO_SHORT.name] == b"\x00\x00"
    assert raw[Reason.NULL.name] is None
    assert set(orders.poison.column("key").to_pylist()) == {b"bad"}


def test_pandas_polars_and_duckdb_get_exact_numbers(running: Headgate) -> None:
    orders = table(running)
    wanted = BIG + GOOD_COUNT - 1
    assert orders.to_pandas()["value"].struct.field("id").max() == wanted
    assert orders.to_polars()["value"].struct.field("id").max() == wanted
    with duckdb.connect() as connection:
        assert orders.to_duckdb(connection).aggregate("max(value.id), count(*)").fetchall() == [(wanted, GOOD_COUNT)]


def test_a_stream_of_batches_has_the_schema_and_all_rows(running: Headgate) -> None:
    orders = table(running)
    reader = orders.reader()
    assert reader.schema == orders.schema
    assert sum(batch.num_rows for batch in reader) == orders.offset_count


def test_positions_choose_the_records(running: Headgate) -> None:
    last = datetime.fromtimestamp((FIRST_MS + GOOD_COUNT - 1) / 1000, UTC)
    options = {"startingOffsetsByTimestampStrategy": "latest"}
    assert table(running, start=last, options=options).good.column("key").to_pylist() == [str(GOOD_COUNT - 1).encode()]
    first = table(running, end={0: 1, 1: 1, 2: 1})
    assert first.offset_count == 3
    with pytest.raises(ValueError, match="no time zone"):
        table(running, start=datetime(2026, 1, 1))


def test_raw_values_and_headers(running: Headgate) -> None:
    orders = table(running, raw=True, headers=True)
    assert orders.good.num_rows == orders.offset_count
    assert orders.poison.num_rows == 0
    assert "headers" in orders.good.column_names
    assert b"\x00\x00" in orders.good.column("value").to_pylist()


def test_mistakes_are_named(running: Headgate) -> None:
    with pytest.raises(TopicMissing, match="nothing-here"):
        read_topic("nothing-here", bootstrap_servers=running.bootstrap_servers, raw=True)
    with pytest.raises(ReaderError, match="no-such-subject"):
        table(running, subject="no-such-subject")
    with pytest.raises(BadOption, match="did you mean"):
        table(running, options={"kafka.isolation.levle": "read_committed"})


def test_a_process_without_pyspark_reads_with_progress(running: Headgate) -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from headgate import read_topic\n"
        f"orders = read_topic('orders', bootstrap_servers='{running.bootstrap_servers}',"
        f" registry='{running.registry_url}', progress=True)\n"
        "print(orders.good.num_rows, orders.poison.num_rows)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    total = GOOD_COUNT + len(PoisonPayloads.REASONS)
    assert f"{GOOD_COUNT} {len(PoisonPayloads.REASONS)}" in run.stdout, run.stderr
    assert f"{total}/{total}" in run.stdout
