"""How long does a new process or a new Spark executor need for its first and for its last row?

(a) New Python processes with the decoder alone: imports, first batch and last row, without compiled code (`cold`: plain
Python decodes until the compiler is ready) and with stored code (`stored`). (b) New Spark sessions on `local[2]`, with
Parquet of 1, 1,000 and 1,000,000 framed payloads, against spark-avro's `from_avro`. The JVM has run a query without
Python before. The clock starts when the query is planned. The first row is that of `head(1)`, the last row that of a
`noop` write after it.

    python -m benchmarks.cold_start [--quick]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import Report
from tests.live.installation import ROOT

SIZES = (1, 1_000, 1_000_000)
QUICK_SIZES = (1, 1_000, 100_000)
ROUNDS = 3
CODE_DIRECTORY = "HEADGATE_CODE_DIR"
COLD = "cold"
STORED = "stored"
FROM_AVRO = "from_avro"

PROCESS = """
import sys, time
started = time.perf_counter()
import numpy as np
from pyarrow import lib as pa
from headgate.spark_udfs.executor.arrow_functions import DecodeFrame
from headgate.spark_udfs.executor.avro_columns import AvroColumns
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions
imported = time.perf_counter()
rows = int(sys.argv[1])
fields = '[{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]'
schema = SchemaText("AVRO", '{"type": "record", "name": "R", "fields": %s}' % fields)
decoding = Decoding(Reader(schema, writers=((1, schema),)), RegistryOptions())
payload = b"\\0\\0\\0\\0\\1\\xaa\\x04\\x0ca name"
offsets = np.arange(rows + 1, dtype=np.int32) * len(payload)
buffers = [None, pa.py_buffer(offsets), pa.py_buffer(payload * rows)]
payloads = pa.Array.from_buffers(pa.binary(), rows, buffers)
first = None
begun = time.perf_counter()
for start in range(0, rows, 10_000):
    columns = decoding.decode(payloads.slice(start, 10_000))
    assert columns.reasons.null_count == len(columns.reasons)
    first = first or time.perf_counter() - begun
print(imported - started, first, time.perf_counter() - begun)
"""
"""A new process: prints the seconds of the imports, and from there to the first batch and to the last row."""


def process_seconds(rows: int, directory: str) -> tuple[float, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, str(rows)],
        cwd=ROOT,
        env={**os.environ, CODE_DIRECTORY: directory},
        capture_output=True,
        text=True,
        check=True,
    )
    imports, first, last = map(float, done.stdout.split())
    return imports, first, last


def processes(report: Report, stored: str, sizes: tuple[int, ...], rounds_count: int) -> None:
    imports: list[float] = []
    for rows in sizes:
        for state in (COLD, STORED):
            rounds = []
            for _ in range(rounds_count):
                with tempfile.TemporaryDirectory() as empty:
                    rounds.append(process_seconds(rows, empty if state == COLD else stored))
                    wait_for_compiler(empty)
            imports += [one[0] for one in rounds]
            note = "plain Python until the compiler is ready" if state == COLD else "compiled code from the store"
            report.state(f"process_{state}_{rows}_first_batch", statistics.median(one[1] for one in rounds), "s", note)
            report.state(f"process_{state}_{rows}_last_row", statistics.median(one[2] for one in rounds), "s", note)
    report.state("imports", statistics.median(imports), "s", "Arrow and the decoder, without Spark and Numba")


def wait_for_compiler(directory: str) -> None:
    """Wait until the child process that compiles has ended: it must not slow down the next measurement."""
    from headgate.serdes.columnar.native.code_store import LOCK_NAME, locked

    if (Path(directory) / LOCK_NAME).exists():
        with locked(Path(directory)):
            pass


def session_seconds(case: str, folder: str, registry_url: str, schema_ids: list[int]) -> None:
    """Run in a new process: print the seconds to the first and to the last row."""
    from benchmarks import spark_contenders as ways
    from tests.live.spark_jars import spark_jars

    with tempfile.TemporaryDirectory() as own:
        spark = ways.session(spark_jars(), Path(own))
        frame = spark.read.parquet(folder)
        ways.drain(frame)
        started = time.perf_counter()
        decoded = (
            ways.peer_on_frame(frame, schema_ids) if case == FROM_AVRO else ways.ours_on_frame(frame, registry_url)
        )
        assert len(decoded.head(1)) == 1
        first = time.perf_counter() - started
        ways.drain(decoded)
        print(json.dumps([first, time.perf_counter() - started]))
        spark.stop()


def sessions(report: Report, stored: str, sizes: tuple[int, ...], stack: ExitStack, rounds_count: int) -> None:
    from benchmarks.spark_data import SUBJECT, payloads, texts, write_parquet
    from headgate.serdes import RegistryClient, avro_schema
    from tests.live.headgate_registry import HeadgateRegistry

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    registry = HeadgateRegistry(folder / "registry")
    registry.start()
    stack.callback(registry.stop)
    with RegistryClient(registry.url) as client:
        schema_ids = [client.register(SUBJECT, avro_schema(text)).id or 0 for text in texts()]
    for rows in sizes:
        name = folder / f"rows-{rows}"
        write_parquet(payloads(rows, schema_ids), name)
        times: dict[str, list[list[float]]] = {COLD: [], STORED: [], FROM_AVRO: []}
        for _ in range(rounds_count):
            for case, kept in times.items():
                with tempfile.TemporaryDirectory() as empty:
                    environment = {**os.environ, CODE_DIRECTORY: empty if case == COLD else stored}
                    given = json.dumps([case, str(name), registry.url, schema_ids])
                    command = [sys.executable, "-m", "benchmarks.cold_start", "--session", given]
                    done = subprocess.run(
                        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
                    )
                    kept.append(json.loads(done.stdout.splitlines()[-1]))
                    wait_for_compiler(empty)
        for place, what in enumerate(("first_row", "last_row")):
            for case in (COLD, STORED):
                report.record_rounds(
                    f"spark_{case}_{rows}_{what}",
                    [one[place] for one in times[case]],
                    [one[place] for one in times[FROM_AVRO]],
                    unit="s",
                    peer_name=FROM_AVRO,
                    higher_is_better=False,
                )


def compile_time(report: Report, directory: str) -> None:
    """Fill the store, and report the time of the compiler."""
    done = subprocess.run(
        [sys.executable, "-m", "headgate", "warm", "--directory", directory, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report.state("compile", json.loads(done.stdout)["seconds"], "s", "headgate warm: all kernels, in a child process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work and fewer rounds")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"new processes per case, {ROUNDS} by default")
    parser.add_argument("--session", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    # Workers use this interpreter and this repository, and suppress PySpark's warnings about pandas 3.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ["PYTHONWARNINGS"] = "ignore"
    if chosen.session:
        session_seconds(*json.loads(chosen.session))
        return
    sizes = QUICK_SIZES if chosen.quick else SIZES
    report = Report("cold_start", __doc__ or "")
    with ExitStack() as stack:
        stored = stack.enter_context(tempfile.TemporaryDirectory())
        compile_time(report, stored)
        rounds = 1 if chosen.quick else chosen.rounds
        processes(report, stored, sizes, rounds)
        sessions(report, stored, sizes, stack, rounds)
    if not chosen.quick:
        report.write()


if __name__ == "__main__":
    main()
