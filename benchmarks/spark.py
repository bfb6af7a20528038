"""How fast do registered payloads become rows in Spark, beside what people use today?

(a) Framed payloads in Parquet, against spark-avro's `from_avro` with a CASE over the schema ids: all fifteen fields,
and five of them, which `from_avro` is asked for by a query, or by a reader's schema made for it by hand. Ours in both
forms: `parquet_…` is the frame's (`decode_frame`), `column_…` the column's (`from_registry_avro`).
(b) A topic, through the `headgate` source, against spark-sql-kafka and `from_avro`: on the embedded broker and on
Apache Kafka 4.3.1. (c) The Parquet of (a), against fastavro in a pandas UDF.

One session on `local[2]` to the `noop` sink; the same bytes and the same output columns (the fields; for topics the
value, partition and offset; ours with each row's reason on top); three writer versions; warm and in turn. Without
poison, and with 8 % of it, of eight kinds that the peers survive; what they do not survive is read by ours alone. Where
ours gives a reason, the peers give null or a row that is wrong. Processor time is that of the JVM and of Python's
workers, without the brokers. Memory is the peak of a separate session with a heap of 2 GB.

    python -m benchmarks.spark [--quick] [--only NAMES]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import spark_contenders as ways
from benchmarks.harness import Contender, Report
from benchmarks.spark_data import FEW_FIELDS, POISON_SHARE, SUBJECT, killers, payloads, texts, write_parquet
from headgate.serdes import RegistryClient, avro_schema
from tests.live.apache_kafka import KafkaNode
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT
from tests.live.spark_jars import spark_jars
from tests.live.spark_meter import CpuClock, Metered, jvm_of, watched
from tests.live.topics import create_topic, produce

FROM_AVRO = "from_avro"
NARROW_FROM_AVRO = "from_avro, told a reader's schema of the five"
SPARK_KAFKA = "spark-sql-kafka + from_avro"
PANDAS_UDF = "pandas UDF + fastavro"
ROWS = 1_000_000
QUICK_ROWS = 200_000
PANDAS_SHARE = 10
"""fastavro is much slower, so a tenth of the rows is enough. The benchmark compares rates, not times."""
PARTITIONS = 2
"""One partition per core, for both contenders."""
HEAP_MB = 1024
POISONS = (("clean", 0.0), ("poison_8", POISON_SHARE))
KAFKA = "kafka"
EMBEDDED = "embedded"
MEMORY_RUNS = 3
WARM_UPS = 6
"""The JIT compiler needs many runs: the rates still rise after three runs of a million rows."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Locations of the input: Parquet folders, topics, and the registry with their schemas."""

    folder: Path
    registry_url: str
    schema_ids: tuple[int, ...]
    brokers: dict[str, str]

    def parquet(self, spark: SparkSession, name: str) -> DataFrame:
        return spark.read.parquet(str(self.folder / name))

    def ours_on_parquet(self, spark: SparkSession, name: str, fields: Sequence[str] | None = None) -> DataFrame:
        return ways.ours_on_frame(self.parquet(spark, name), self.registry_url, fields)

    def peer_on_parquet(
        self, spark: SparkSession, name: str, fields: Sequence[str] | None = None, *, is_narrow: bool = False
    ) -> DataFrame:
        return ways.peer_on_frame(self.parquet(spark, name), self.schema_ids, fields, is_narrow=is_narrow)

    def pandas_on_parquet(self, spark: SparkSession, name: str) -> DataFrame:
        result = self.peer_on_parquet(spark, name).schema
        return ways.pandas_on_frame(self.parquet(spark, f"{name}_few"), self.schema_ids, result)

    def ours_on_topic(self, spark: SparkSession, broker: str, topic: str) -> DataFrame:
        return ways.ours_on_topic(spark, self.brokers[broker], topic, self.registry_url)

    def peer_on_topic(self, spark: SparkSession, broker: str, topic: str) -> DataFrame:
        return ways.peer_on_topic(spark, self.brokers[broker], topic, self.schema_ids)


def memory_cases(ground: Ground) -> dict[str, Callable[[SparkSession], DataFrame]]:
    """Return the queries that run in a separate session each, to measure peak memory."""
    return {
        "parquet_ours": lambda spark: ground.ours_on_parquet(spark, "clean"),
        "parquet_peer": lambda spark: ground.peer_on_parquet(spark, "clean"),
        "topic_ours": lambda spark: ground.ours_on_topic(spark, EMBEDDED, "clean"),
        "topic_peer": lambda spark: ground.peer_on_topic(spark, EMBEDDED, "clean"),
        "pandas_peer": lambda spark: ground.pandas_on_parquet(spark, "clean"),
    }


class Bench:
    def __init__(self, ground: Ground, spark: SparkSession, report: Report, *, rows: int, rounds: int) -> None:
        self.ground = ground
        self.spark = spark
        self.report = report
        self.rows = rows
        self.rounds = rounds
        self.clock = CpuClock(jvm_of(spark))

    def compare(
        self, metric: str, ours: DataFrame, peer: DataFrame, peer_name: str, *, peer_rows: int, warm_ups: int = WARM_UPS
    ) -> None:
        """Report the rate and the CPU time per row of the same runs."""
        our_runs = Metered(self.clock, lambda: ways.drain(ours), self.rows)
        peer_runs = Metered(self.clock, lambda: ways.drain(peer), peer_rows)
        self.report.compare(
            metric,
            Contender("headgate", our_runs, self.rows),
            Contender(peer_name, peer_runs, peer_rows),
            rounds=self.rounds,
            warm_ups=warm_ups,
        )
        self.report.record_rounds(
            f"{metric}_cpu",
            our_runs.cpu_us_per_row[warm_ups:],
            peer_runs.cpu_us_per_row[warm_ups:],
            unit="µs/row",
            peer_name=peer_name,
            higher_is_better=False,
        )

    def parquet(self, name: str) -> None:
        ours = self.ground.ours_on_parquet(self.spark, name)
        peer = self.ground.peer_on_parquet(self.spark, name)
        check(ours, peer, self.rows, is_clean=name == "clean")
        self.compare(f"parquet_15_{name}", ours, peer, FROM_AVRO, peer_rows=self.rows)

    def few(self, name: str, *, is_narrow: bool) -> None:
        ours = self.ground.ours_on_parquet(self.spark, name, FEW_FIELDS)
        peer = self.ground.peer_on_parquet(self.spark, name, FEW_FIELDS, is_narrow=is_narrow)
        check(ours, peer, self.rows, is_clean=name == "clean")
        peer_name = NARROW_FROM_AVRO if is_narrow else FROM_AVRO
        label = "_narrow" if is_narrow else ""
        self.compare(f"parquet_5_of_15{label}_{name}", ours, peer, peer_name, peer_rows=self.rows)

    def topic(self, broker: str, name: str) -> None:
        ours = self.ground.ours_on_topic(self.spark, broker, name)
        peer = self.ground.peer_on_topic(self.spark, broker, name)
        check(ours, peer, self.rows, is_clean=name == "clean", id_column="value.id")
        self.compare(f"topic_{broker}_{name}", ours, peer, SPARK_KAFKA, peer_rows=self.rows)

    def pandas(self, name: str) -> None:
        ours = self.ground.ours_on_parquet(self.spark, name)
        peer = self.ground.pandas_on_parquet(self.spark, name)
        peer_rows = self.rows // PANDAS_SHARE
        if name == "clean":
            few = self.ground.ours_on_parquet(self.spark, f"{name}_few")
            check(few, peer, peer_rows, is_clean=True)
        self.compare(f"pandas_15_{name}", ours, peer, PANDAS_UDF, peer_rows=peer_rows, warm_ups=1)

    def killers(self) -> None:
        """Measure payloads that end the peer's JVM. Ours reports a reason for each and does not slow down."""
        ours = self.ground.ours_on_topic(self.spark, EMBEDDED, "killers")
        runs = [seconds(lambda: ways.drain(ours)) for _ in range(self.rounds + 1)]
        rate = self.rows / statistics.median(runs[1:])
        self.report.state(
            "topic_embedded_killers", rate, "rows/s",
            "8 % poison, counts of 10^9, lengths of 2^31 and a megabyte of 0xFF among it: from_avro ends the JVM",
        )  # fmt: skip

    def column(self, name: str, fields: Sequence[str] | None, label: str) -> None:
        """Measure `from_registry_avro`, the column function like `from_avro`. `decode_frame` is faster."""
        ours = ways.ours_as_column(self.ground.parquet(self.spark, name), self.ground.registry_url, fields)
        peer = self.ground.peer_on_parquet(self.spark, name, fields)
        check(ours, peer, self.rows, is_clean=name == "clean")
        self.compare(f"column_{label}_{name}", ours, peer, FROM_AVRO, peer_rows=self.rows)


def seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def check(ours: DataFrame, peer: DataFrame, rows: int, *, is_clean: bool, id_column: str = "id") -> None:
    """Check that both sides return the same columns, the same number of rows and, without poison, the same values."""
    ours = ours.select(*peer.columns)
    assert ours.schema.simpleString() == peer.schema.simpleString(), f"{ours.schema} is not {peer.schema}"

    def digest(frame: DataFrame) -> tuple[int, int | None, int]:
        prints = frame.select(
            F.col(id_column).alias("id"), F.xxhash64(*frame.columns).cast("decimal(38,0)").alias("print")
        )
        found = prints.agg(F.count("*"), F.sum("print"), F.count("id")).collect()[0]
        return int(found[0]), found[1], int(found[2])

    our_count, our_prints, our_good = digest(ours)
    peer_count, peer_prints, _ = digest(peer)
    assert our_count == peer_count == rows, f"{our_count} and {peer_count} rows of {rows}"
    if is_clean:
        assert our_prints == peer_prints, "the values differ from the peer's"
    good = rows if is_clean else rows - int(rows * POISON_SHARE)
    assert our_good == good, f"{our_good} good rows of {good}"


def lay_ground(folder: Path, stack: ExitStack, rows: int, *, with_kafka: bool) -> Ground:
    """Start the servers, register the schema versions, and write the same payloads to Parquet and to topics."""
    registry = HeadgateRegistry(folder / "registry")
    registry.start()
    stack.callback(registry.stop)
    broker = HeadgateBroker(folder / "broker")
    broker.start()
    stack.callback(broker.stop)
    brokers = {EMBEDDED: broker.address}
    if with_kafka:
        node = KafkaNode(folder / "kafka", heap_mb=HEAP_MB)
        node.start()
        stack.callback(node.stop)
        brokers[KAFKA] = node.address
    schema_ids = []
    with RegistryClient(registry.url) as client:
        for text in texts():
            schema_id = client.register(SUBJECT, avro_schema(text)).id
            assert schema_id is not None
            schema_ids.append(schema_id)
    for name, share in POISONS:
        made = payloads(rows, schema_ids, poison=share)
        write_parquet(made, folder / name)
        write_parquet(made[: rows // PANDAS_SHARE], folder / f"{name}_few")
        for address in brokers.values():
            create_topic(address, name, PARTITIONS)
            produce(address, name, made, partitions=PARTITIONS)
    create_topic(broker.address, "killers", PARTITIONS)
    produce(broker.address, "killers", killers(made, schema_ids[-1]), partitions=PARTITIONS)
    return Ground(folder, registry.url, tuple(schema_ids), brokers)


def peak_of(ground: Ground, case: str) -> tuple[float, float]:
    """Return the peak memory of the JVM and of the Python workers in MB.

    Each case runs in a new process, because a JVM heap that has grown does not shrink.
    """
    given = json.dumps(
        [str(ground.folder), ground.registry_url, ground.schema_ids, {EMBEDDED: ground.brokers[EMBEDDED]}]
    )
    command = [sys.executable, "-m", "benchmarks.spark", "--memory", case, "--ground", given]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    jvm_mb, python_mb = json.loads(done.stdout.splitlines()[-1])
    return float(jvm_mb), float(python_mb)


def measure_memory(case: str, given: str) -> None:
    folder, registry_url, schema_ids, brokers = json.loads(given)
    ground = Ground(Path(folder), registry_url, tuple(schema_ids), brokers)
    with tempfile.TemporaryDirectory() as own:
        spark = ways.session(spark_jars(), Path(own))
        frame = memory_cases(ground)[case](spark)
        with watched(jvm_of(spark)) as peak:
            for _ in range(MEMORY_RUNS):
                ways.drain(frame)
        print(json.dumps([peak.jvm_mb, peak.python_mb]))
        spark.stop()


def memory(report: Report, ground: Ground, *, quick: bool) -> None:
    pairs = [
        ("memory_topic", "topic_ours", "topic_peer", SPARK_KAFKA),
        ("memory_parquet", "parquet_ours", "parquet_peer", FROM_AVRO),
        ("memory_pandas", "parquet_ours", "pandas_peer", PANDAS_UDF),
    ][: 1 if quick else None]
    peaks = {case: peak_of(ground, case) for case in dict.fromkeys(case for pair in pairs for case in pair[1:3])}
    for metric, ours, peer, peer_name in pairs:
        (our_jvm, our_python), (peer_jvm, peer_python) = peaks[ours], peaks[peer]
        report.record(
            metric, our_jvm + our_python, peer_jvm + peer_python, unit="MB", peer_name=peer_name,
            higher_is_better=False,
            note=f"JVM {our_jvm:.0f} and Python {our_python:.0f} against {peer_jvm:.0f} and {peer_python:.0f}",
        )  # fmt: skip


def progress(text: str, started: float) -> None:
    print(f"{time.monotonic() - started:5.0f} s  {text}", file=sys.stderr, flush=True)


def run(*, quick: bool = False, only: str = "", rows: int = ROWS) -> Report:
    report = Report("spark", __doc__ or "")
    started = time.monotonic()
    wanted = set(filter(None, only.split(",")))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        progress("the servers, and the data", started)
        ground = lay_ground(folder, stack, rows, with_kafka=not wanted or KAFKA in wanted)
        progress("a Spark session", started)
        spark = ways.session(spark_jars(), folder)
        stack.callback(spark.stop)
        bench = Bench(ground, spark, report, rows=rows, rounds=3 if quick else 5)
        questions: dict[str, Callable[[], None]] = {}
        for name, _ in POISONS:
            questions[f"parquet {name}"] = lambda name=name: bench.parquet(name)  # type: ignore[misc]
            questions[f"few {name}"] = lambda name=name: bench.few(name, is_narrow=False)  # type: ignore[misc]
            questions[f"narrow {name}"] = lambda name=name: bench.few(name, is_narrow=True)  # type: ignore[misc]
            questions[f"column {name}"] = lambda name=name: bench.column(name, None, "15")  # type: ignore[misc]
            questions[f"column few {name}"] = lambda name=name: bench.column(name, FEW_FIELDS, "5_of_15")  # type: ignore[misc]
            questions[f"embedded {name}"] = lambda name=name: bench.topic(EMBEDDED, name)  # type: ignore[misc]
            questions[f"kafka {name}"] = lambda name=name: bench.topic(KAFKA, name)  # type: ignore[misc]
            questions[f"pandas {name}"] = lambda name=name: bench.pandas(name)  # type: ignore[misc]
        questions["killers"] = bench.killers
        questions["memory"] = lambda: memory(report, ground, quick=quick)
        chosen = [name for name in questions if not wanted or name.split(" ", maxsplit=1)[0] in wanted]
        for number, name in enumerate(chosen, 1):
            progress(f"[{number}/{len(chosen)}] {name}", started)
            questions[name]()
        progress("done", started)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work and fewer rounds")
    parser.add_argument(
        "--only", default="", help="some of: parquet, few, narrow, embedded, kafka, pandas, killers, column, memory"
    )
    parser.add_argument("--rows", type=int, help=f"instead of {ROWS}, or {QUICK_ROWS} where it is to be quick")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--ground", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # Workers use this interpreter and this repository, and suppress PySpark's warnings about pandas 3.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ["PYTHONWARNINGS"] = "ignore"
    if arguments.memory:
        measure_memory(arguments.memory, arguments.ground)
        return
    rows = arguments.rows or (QUICK_ROWS if arguments.quick else ROWS)
    report = run(quick=arguments.quick, only=arguments.only, rows=rows)
    if not arguments.quick and not arguments.only and not arguments.rows:
        report.write()


if __name__ == "__main__":
    main()
