"""Lookup tables."""

from pathlib import Path
from typing import Any

import pytest

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.filesystem import Files
from headgate.spark_udfs.pipeline.sinks.writer import Written
from headgate.spark_udfs.pipeline.tables import CachedTable, TopicTable
from tests.unit.spark_udfs.fake_spark import FakeHadoop, FakeSession, schema

pytestmark = pytest.mark.usefixtures("columns_without_session")


DECODED = schema(
    key="binary", value=schema(id="long"), topic="string", partition="integer", offset="long", timestamp="timestamp",
    reason="string", raw="binary",
)  # fmt: skip


def batch(number: int) -> BatchId:
    return BatchId("shop", "identity", "orders", number)


class Storing(FakeSession):
    """Creates the folder that a writer writes."""

    def answer(self, action: str) -> Any:
        _, written, path = action.partition(".write.mode(overwrite).parquet(")
        if written:
            Path(path.removesuffix(")")).mkdir(parents=True)
        return super().answer(action)


def topic_table(folder: Path, key: tuple[str, ...] = ()) -> TopicTable:
    from pyspark.sql import functions as f

    hadoop: Any = FakeHadoop()
    return TopicTable(Files(hadoop), str(folder), schema(id="long"), key, lambda rows: f.col("value"))


def test_a_table_has_the_last_record_of_each_key(tmp_path: Path) -> None:
    session: Any = Storing()
    table: Any = topic_table(tmp_path)
    assert table.version() is None
    assert table.frame(session).plan == "createDataFrame([])"
    rows: Any = session.frame(DECODED)
    assert table.write(rows, batch(0)) == Written(0)
    new = (
        "df.select(key AS __key, partition AS __partition, offset AS __offset, timestamp AS __time, value AS value)"
        ".withColumn(__is_new, True)"
    )
    last = (
        ".groupBy(__key, __partition).agg(max_by(struct(__key, __partition, __offset, __time, value), "
        "struct(__is_new, __offset)) AS last).groupBy(__key)"
        ".agg(max_by(last, struct(last.__time, last.__offset)) AS last).select(last.*).where(value IS NOT NULL)"
    )
    folder = tmp_path / table.query
    assert session.actions == [f"{new}{last}.write.mode(overwrite).parquet({folder}/_writing_000000000000)"]
    assert table.version() == 0
    assert table.frame(session).plan.endswith(f".parquet({folder}/generation_000000000000).select(value.*)")
    table.write(rows, batch(1))
    old = f"parquet({folder}/generation_000000000000).withColumn(__is_new, False).unionByName({new})"
    assert f"{old}{last}" in session.actions[-1]
    stored = "__key:binary,__partition:int,__offset:bigint,__time:timestamp,value:struct<id:bigint>"
    assert session.actions[-1].startswith(f"read.schema(struct<{stored}>)")


def test_a_repeated_batch_does_not_change_a_table_and_old_generations_are_deleted(tmp_path: Path) -> None:
    session: Any = Storing()
    table = topic_table(tmp_path, ("id",))
    rows: Any = session.frame(DECODED)
    for number in (0, 1, 2, 9, 10):
        assert table.write(rows, batch(number)) == Written(0)
    for number in (9, 10):
        assert table.write(rows, batch(number)) == Written(0, repeated=True)
    assert sorted(path.name for path in (tmp_path / table.query).iterdir()) == [
        "generation_000000000002",
        "generation_000000000009",
        "generation_000000000010",
    ]
    assert table.version() == 10
    assert "struct(value['id'] AS id) AS __key" in session.actions[0]
    assert "__key:struct<id:bigint>" in session.actions[1]


def test_each_schema_and_key_has_its_own_table(tmp_path: Path) -> None:
    assert topic_table(tmp_path).query != topic_table(tmp_path, ("id",)).query
    assert len(topic_table(tmp_path).query) == 12


def test_a_cached_table_is_read_again_when_it_is_old() -> None:
    now = [100.0]
    reads: list[float] = []

    def read(spark: Any) -> Any:
        reads.append(now[0])
        return f"rows {len(reads)}"

    spark: Any = None
    table: Any = CachedTable(read, 10.0, clock=lambda: now[0])
    assert table.version() == 1
    assert table.frame(spark) == "rows 1"
    assert table.version() == 1
    now[0] = 109.9
    assert table.frame(spark) == "rows 1"
    now[0] = 110.0
    assert table.version() == 2
    assert table.frame(spark) == "rows 2"
    assert (table.version(), reads) == (2, [100.0, 110.0])
