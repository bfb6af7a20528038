"""Damaged payloads in one Spark job: no task fails, the counts are consistent, good rows are unchanged.

A `local[2]` session does not retry tasks, so a successful job had no failed task.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from pyarrow import lib as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.serdes import Decoded, Deserializer, DeserializerOptions, Poison, RegistryClient, avro_schema
from headgate.serdes.framing import frame
from headgate.spark_udfs import decode_frame
from tests.hostile.columnar.test_mutations import EVENT, EVOLVED
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.spark_meter import jvm_of, watched
from tests.rounds import rounds
from tests.spark.hostile.mutations import Originals
from tests.spark.registering import registered
from tests.unit.columnar.generation import Bodies

write: Any = pyarrow.parquet.write_table
read: Any = pyarrow.parquet.read_table

MUTATIONS = rounds(60_000, 1_000_000)
CHUNK = 100_000
ORIGINALS = 1000
GOOD_EACH = 5
"""One good row per this many damaged rows."""
SAMPLE_EACH = 40
"""One of this many rows is compared with the row-by-row decoder."""
WORKER_MB_MAX = 700
"""Memory limit of a worker: libraries (about 250 MB), compiled code, and the current batches."""
SUBJECT = "spark-mutations-value"
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "bytes"}]}


class MutatedPayloads:
    """Damaged and good payloads in Parquet files."""

    def __init__(self, folder: Path, client: RegistryClient) -> None:
        self.folder = folder
        self.client = client
        self.schema_id = registered(self.client, SUBJECT, EVENT)
        self.other_id = registered(self.client, "spark-mutations-other", OTHER)
        self.payloads = good_payloads(self.client, self.schema_id)
        originals = Originals.of(self.payloads)
        self.rows = 0
        for number, first in enumerate(range(0, MUTATIONS, CHUNK)):
            self._write(originals, number, min(CHUNK, MUTATIONS - first))

    def _write(self, originals: Originals, number: int, count: int) -> None:
        rng = np.random.default_rng(number)
        chosen = rng.integers(0, ORIGINALS, count)
        good = rng.integers(0, ORIGINALS, count // GOOD_EACH)
        column = pa.concat_arrays(
            [originals.damaged(chosen, rng, [self.other_id, self.schema_id + 1000]), originals.copies(good)]
        )
        # Mix good and damaged rows.
        order = rng.permutation(len(column))
        is_good = np.arange(len(column)) >= count
        table = pa.Table.from_arrays(
            [
                pa.array(np.arange(len(column)) + self.rows),
                pa.array(np.concatenate([chosen, good])[order]),
                pa.array(is_good[order]),
                column.take(pa.array(order)),
            ],
            names=["row", "original", "is_good", "value"],
        )
        self.rows += len(column)
        write(table, self.folder / f"{number}.parquet")

    def payload_of(self, rows: list[int]) -> list[bytes]:
        tables = [read(path, columns=["row", "value"]) for path in self.folder.glob("*.parquet")]
        values = pa.concat_tables(tables).sort_by("row").column("value")
        return [values[row].as_py() for row in rows]


def good_payloads(client: RegistryClient, schema_id: int) -> list[bytes]:
    """Generated payloads that decode. The generator also writes invalid ones, such as dates after the year 9999."""
    bodies, row_wise = Bodies(Random(20261116), EVENT), Deserializer(client)
    made = (frame(schema_id, bodies.body()) for _ in range(10 * ORIGINALS))
    return list(islice((payload for payload in made if isinstance(row_wise.decode(payload), Decoded)), ORIGINALS))


@pytest.fixture(scope="module")
def mutated(registry: HeadgateRegistry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MutatedPayloads]:
    with RegistryClient(registry.url) as client:
        yield MutatedPayloads(tmp_path_factory.mktemp("mutations"), client)


def summary(decoded: DataFrame) -> DataFrame:
    """One pass over the data: counts, sampled reasons, and the smallest and largest hash of equal payloads."""
    value_hash = F.when(F.col("reason").isNull(), F.xxhash64(F.to_json("value")))
    sampled = F.when(F.col("row") % SAMPLE_EACH == 0, F.struct("row", "reason"))
    return decoded.groupBy(F.when(F.col("is_good"), F.col("original")).alias("original"), "reason").agg(
        F.count("*").alias("rows"),
        F.min(value_hash).alias("least"),
        F.max(value_hash).alias("most"),
        F.collect_list(sampled).alias("sample"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["same", "evolved"])
def test_damaged_payloads_fail_no_task(spark: SparkSession, mutated: MutatedPayloads, reader: str) -> None:
    text = json.dumps(EVENT if reader == "same" else EVOLVED)
    frame_ = spark.read.parquet(str(mutated.folder))
    if reader == "evolved":
        frame_ = frame_.where("row % 5 = 0")
    decoded = decode_frame(frame_, schema=text, subject=SUBJECT, registry=mutated.client.settings.urls[0])
    with watched(jvm_of(spark)) as peak:
        groups = summary(decoded).collect()
    expected = frame_.count()
    print(
        f"{expected} payloads; peak of the JVM {peak.jvm_mb:.0f} MB, of Python's processes {peak.python_mb:.0f} MB, "
        f"of the largest {peak.largest_python_mb:.0f} MB"
    )
    assert 0 < peak.largest_python_mb < WORKER_MB_MAX
    assert sum(group["rows"] for group in groups) == expected
    counts = Counter[str | None]()
    for group in groups:
        counts[group["reason"]] += group["rows"]
    print(dict(counts))
    for reason in ("TOO_SHORT", "BAD_MAGIC", "UNKNOWN_SCHEMA", "TRUNCATED", "CORRUPT", "UNRESOLVABLE", "INVALID_VALUE"):
        assert counts[reason] > 0, reason

    options = DeserializerOptions(reader=avro_schema(text))
    row_wise = Deserializer(mutated.client, options)
    sample = sorted((taken["row"], taken["reason"]) for group in groups for taken in group["sample"])
    assert len(sample) >= expected // SAMPLE_EACH
    for (row, reason), payload in zip(sample, mutated.payload_of([row for row, _ in sample]), strict=True):
        outcome = row_wise.decode(payload)
        assert reason == (outcome.reason.name if isinstance(outcome, Poison) else None), (row, payload)

    check_good_rows(spark, mutated, text, [group.asDict() for group in groups if group["original"] is not None])


def check_good_rows(spark: SparkSession, mutated: MutatedPayloads, text: str, groups: list[dict[str, object]]) -> None:
    """Good rows between damaged ones have the same values as alone."""
    alone = spark.createDataFrame(
        [(number, True, number, payload) for number, payload in enumerate(mutated.payloads)],
        "row long, is_good boolean, original long, value binary",
    )
    decoded = decode_frame(alone, schema=text, subject=SUBJECT, registry=mutated.client.settings.urls[0])
    expected = {(group["original"], group["reason"]): group["least"] for group in summary(decoded).collect()}
    assert len(expected) == ORIGINALS
    assert len(groups) > ORIGINALS // 2
    for group in groups:
        assert group["least"] == group["most"] == expected[group["original"], group["reason"]], group
