"""Streaming queries with the functions, and new schema versions while they run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet
import pytest
from pyarrow import lib as pa

from headgate.spark_udfs import decode_each_batch, decode_frame, decode_topic, from_registry_avro, run_restarting
from tests.live.headgate_registry import HeadgateRegistry
from tests.spark.functions.payloads import encoded, register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

V1: dict[str, Any] = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
V2: dict[str, Any] = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "none"}],
}


write_table: Any = pyarrow.parquet.write_table


class PayloadFolder:
    """A folder for files of payloads, and a stream that reads it."""

    def __init__(self, spark: "SparkSession", folder: Path, registry: HeadgateRegistry, subject: str) -> None:
        self.spark = spark
        self.folder = folder / "in"
        self.folder.mkdir()
        self.checkpoint = str(folder / "checkpoint")
        self.registry = registry
        self.subject = subject
        self.first = register(registry, subject, V1)[0]
        self._files = 0

    def drop(self, *payloads: bytes | None) -> None:
        # Spark ignores names that start with a dot, so it does not read a partial file.
        hidden = self.folder / f".{self._files}"
        write_table(pa.table({"value": pa.array(payloads, pa.binary())}), hidden)
        hidden.rename(self.folder / f"{self._files}.parquet")
        self._files += 1

    def drop_first(self, *numbers: int) -> None:
        self.drop(*(encoded(V1, {"id": number}, self.first) for number in numbers))

    def register_second(self) -> int:
        return register(self.registry, self.subject, V2)[0]

    def drop_second(self, number: int) -> None:
        self.drop(encoded(V2, {"id": number, "more": "yes"}, self.register_second()))

    def stream(self) -> "DataFrame":
        return self.spark.readStream.schema("value binary").option("maxFilesPerTrigger", 1).parquet(str(self.folder))


@pytest.fixture
def folder(spark: "SparkSession", registry: HeadgateRegistry, tmp_path: Path) -> PayloadFolder:
    return PayloadFolder(spark, tmp_path, registry, f"{tmp_path.name}-value")


def test_a_stream_is_decoded_across_restarts(folder: PayloadFolder) -> None:
    seen: list[tuple[str, Any]] = []

    def run() -> None:
        def each(batch: "DataFrame", batch_id: int) -> None:
            seen.extend(("good", row.value.id) for row in batch.where("reason IS NULL").collect())
            seen.extend(("bad", row.reason) for row in batch.where("reason IS NOT NULL").collect())

        column = from_registry_avro("value", folder.subject, registry=folder.registry.url)
        decoded = folder.stream().select(column.alias("d")).select("d.*")
        query = decoded.writeStream.foreachBatch(each).option("checkpointLocation", folder.checkpoint)
        query.trigger(availableNow=True).start().awaitTermination()

    folder.drop_first(1, 2)
    folder.drop(b"x", None)
    run()
    folder.drop_first(3)
    run()
    assert sorted(seen, key=str) == [("bad", "NULL"), ("bad", "TOO_SHORT"), ("good", 1), ("good", 2), ("good", 3)]


def test_keep_reads_a_new_version_with_the_old_reader_schema(folder: PayloadFolder, spark: "SparkSession") -> None:
    folder.drop_first(1)
    good, _ = decode_topic(folder.stream(), folder.subject, registry=folder.registry.url)
    query = good.select("value.*").writeStream.format("memory").queryName("kept").start()
    try:
        query.processAllAvailable()
        folder.drop_second(2)
        query.processAllAvailable()
    finally:
        query.stop()
    rows = spark.table("kept")
    assert rows.columns == ["id"]
    assert sorted(row.id for row in rows.collect()) == [1, 2]


def test_fail_ends_the_query_for_a_new_version(folder: PayloadFolder) -> None:
    folder.drop_first(1)
    decoded = decode_frame(folder.stream(), folder.subject, registry=folder.registry.url, on_new_version="FAIL")
    query = decoded.writeStream.format("noop").option("checkpointLocation", folder.checkpoint).start()
    try:
        query.processAllAvailable()
        folder.drop_second(2)
        with pytest.raises(Exception, match=r"NewVersionError: version 2 .* restart the query"):
            query.processAllAvailable()
    finally:
        query.stop()


def test_restart_uses_the_new_reader_schema_without_loss(folder: PayloadFolder) -> None:
    seen: list[dict[str, Any]] = []
    starts = 0

    def start() -> Any:
        nonlocal starts
        starts += 1
        decoded = decode_frame(folder.stream(), folder.subject, registry=folder.registry.url, on_new_version="RESTART")
        if starts == 1:
            # The reader schema is chosen already. The new version is registered before its first payload.
            folder.drop_first(1)
            folder.drop_second(2)
            folder.drop_first(3)

        def each(batch: "DataFrame", batch_id: int) -> None:
            seen.extend(row.value.asDict() for row in batch.collect())

        query = decoded.writeStream.foreachBatch(each).option("checkpointLocation", folder.checkpoint)
        return query.trigger(availableNow=True).start()

    run_restarting(start)
    assert starts == 2
    assert sorted(seen, key=str) == [{"id": 1}, {"id": 2, "more": "yes"}, {"id": 3, "more": "none"}]


def test_any_other_failure_is_not_restarted() -> None:
    class Failing:
        def awaitTermination(self) -> None:
            raise ValueError("out of memory")

    start: Callable[[], Any] = Failing
    with pytest.raises(ValueError, match="out of memory"):
        run_restarting(start)


def test_restart_refreshes_the_reader_schema_for_each_micro_batch(folder: PayloadFolder) -> None:
    seen: list[tuple[int, list[str], list[Any]]] = []

    def handle(good: "DataFrame", poison: "DataFrame", batch_id: int) -> None:
        rows = [row.value.asDict() for row in good.collect()]
        seen.append((batch_id, good.select("value.*").columns, [*rows, *(row.reason for row in poison.collect())]))

    folder.drop_first(1)
    each = decode_each_batch(handle, folder.subject, registry=folder.registry.url, on_new_version="RESTART")
    query = folder.stream().writeStream.foreachBatch(each).option("checkpointLocation", folder.checkpoint).start()
    try:
        query.processAllAvailable()
        second = folder.register_second()
        folder.drop(encoded(V2, {"id": 2, "more": "yes"}, second), b"x")
        query.processAllAvailable()
    finally:
        query.stop()
    assert seen == [(0, ["id"], [{"id": 1}]), (1, ["id", "more"], [{"id": 2, "more": "yes"}, "TOO_SHORT"])]
