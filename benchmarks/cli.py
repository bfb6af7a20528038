"""How fast is the command line?

| metric | compared with |
|---|---|
| consume_raw, export_raw: all records of a topic | kcat |
| consume_avro: decoded to JSON | kcat with `-s value=avro`, if it has Avro |
| help | - |
| plugin_start: the services of `headgate.testing` | - |

    python -m benchmarks.cli [--quick]
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.harness import Contender, Report, seconds_of
from headgate.serdes import RegistryClient, RegistrySettings, Serializer, avro_schema
from headgate.testing import Headgate

RECORDS = 300_000
QUICK_RECORDS = 50_000
ORDER = avro_schema(
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type":'
    ' "string"}, {"name": "price", "type": "double"}, {"name": "note", "type": ["null", "string"]}]}'
)
HEADGATE = str(Path(sys.executable).with_name("headgate"))


def fill(headgate: Headgate, count: int) -> None:
    producer = Producer({"bootstrap.servers": headgate.bootstrap_servers, "linger.ms": 20, "log_level": 0})
    with RegistryClient(RegistrySettings(urls=(headgate.registry_url,))) as registry:
        serializer = Serializer(registry, ORDER)
        for number in range(count):
            value = {"id": number, "customer": f"customer {number % 1000}", "price": number / 7, "note": "x" * 40}
            producer.produce("orders", serializer.serialize(value, topic="orders"))
            if number % 10_000 == 0:
                producer.poll(0)
    assert producer.flush(120) == 0


def output(command: list[str], wanted_lines: int | None = None) -> None:
    done = subprocess.run(command, check=True, capture_output=True, timeout=600)
    if wanted_lines is not None:
        assert done.stdout.count(b"\n") >= wanted_lines, done.stdout[-500:]


def run(*, quick: bool = False) -> Report:
    report = Report("cli", __doc__ or "")
    count, rounds = (QUICK_RECORDS, 3) if quick else (RECORDS, 5)
    kcat = shutil.which("kcat")
    if kcat is None:
        raise SystemExit("kcat is not installed; run make system")
    has_avro = b"Avro" in subprocess.run([kcat, "-V"], check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder, Headgate(Path(folder) / "data") as headgate:
        fill(headgate, count)
        at = ["-b", headgate.bootstrap_servers]
        read = [kcat, "-C", *at, "-t", "orders", "-e", "-q", "-o", "beginning"]
        peer = Contender("kcat", lambda: output(read, count), count)
        consume = [HEADGATE, "consume", "orders", "-e", *at, "--registry", headgate.registry_url]
        ours = Contender("headgate", lambda: output([*consume, "--raw"], count), count)
        report.compare("consume_raw", ours, peer, unit="records/s", rounds=rounds)
        target = Path(folder) / "export"
        export = [HEADGATE, "topic", "export", "orders", str(target), *at, "--raw", "-f", "parquet"]
        ours = Contender("headgate", lambda: output(export), count, lambda: shutil.rmtree(target, ignore_errors=True))
        report.compare("export_raw", ours, peer, unit="records/s", rounds=rounds, note="Parquet; kcat prints")
        if has_avro:
            avro = Contender(
                "kcat", lambda: output([*read, "-s", "value=avro", "-r", headgate.registry_url], count), count
            )
            ours = Contender("headgate", lambda: output(consume, count), count)
            report.compare("consume_avro", ours, avro, unit="records/s", rounds=rounds)
        else:
            output(consume, count)
            seconds = seconds_of(lambda: output(consume, count))
            report.state("consume_avro", count / seconds, "records/s", "this kcat has no Avro")
    report.state("help", min(seconds_of(lambda: output([HEADGATE, "--help"])) for _ in range(5)), "s")
    starts = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            started = Headgate(Path(folder))
            starts.append(seconds_of(started.start))
            started.stop()
    report.state("plugin_start", min(starts), "s")
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer records and rounds")
    quick = parser.parse_args().quick
    report = run(quick=quick)
    if not quick:
        report.write()


if __name__ == "__main__":
    main()
