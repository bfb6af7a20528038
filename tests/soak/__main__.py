"""Run a pipeline at a steady rate with faults, then compare every record: `python -m tests.soak MINUTES [FOLDER]`.

The faults repeat until the time is over: a new schema version, a restarted registry, a restarted broker, a killed
broker, a killed driver. At the end, each acknowledged record is in the table or in the dead letters exactly once, and
memory has not grown. FOLDER gets `soak.csv` and `soak.svg`.
"""

import argparse
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT
from tests.live.process import ServerProcess
from tests.live.topics import create_topic
from tests.soak.chart import line_chart
from tests.soak.memory import Samples, resident_mib
from tests.soak.producer import PARTITIONS, POISON_EACH, SteadyProducer

TOPIC = "soak"
RATE = 200
"""Records per second."""
SAMPLE_SECONDS = 2.0
FAULT_SECONDS = 60.0
"""Interval between faults. Shorter if the run is short, so that each fault happens at least once."""
DRAIN_SECONDS_MAX = 600
PIPELINE = """
name = "soak"
checkpoint = "state"
on_new_version = "RESTART"
[kafka]
bootstrap.servers = "{broker}"
[registry]
url = "{registry}"
[spark]
master = "local[2]"
driver.memory = "1g"
[sources.soak]
type = "topic"
[sinks.rows]
type = "jdbc"
from = "soak"
url = "sqlite:rows.db"
table = "events"
evolve = true
[dead_letters]
type = "jdbc"
url = "sqlite:letters.db"
table = "letters"
"""


class Soak:
    def __init__(self, folder: Path, minutes: float) -> None:
        self.folder = folder
        self.seconds = minutes * 60
        self.broker = HeadgateBroker(folder / "broker")
        self.registry = HeadgateRegistry(folder / "registry")
        self.broker.start()
        self.registry.start()
        create_topic(self.broker.address, TOPIC, PARTITIONS)
        self.producer = SteadyProducer(self.broker.address, self.registry.url, TOPIC, RATE)
        text = PIPELINE.format(broker=self.broker.address, registry=self.registry.url)
        (folder / "soak.toml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "headgate", "pipeline", "run", str(folder / "soak.toml")]
        environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        self.driver = ServerProcess(command, folder / "driver.log", cwd=ROOT, environment=environment)
        self.samples = Samples()
        self.events: list[tuple[float, str]] = []
        self.unexpected_exits = 0
        self.started = time.monotonic()

    def run(self) -> None:
        self.driver.start(lambda: True)
        self.producer.start()
        faults: list[tuple[str, Callable[[], object]]] = [
            ("schema", self.producer.evolve),
            ("registry", self._restart_registry),
            ("broker", self._restart_broker),
            ("kill broker", self._kill_broker),
            ("kill driver", self._kill_driver),
        ]
        interval = min(FAULT_SECONDS, self.seconds / (len(faults) + 2))
        number = 0
        while (now := time.monotonic() - self.started) < self.seconds:
            self._observe(now)
            # The last interval is without faults.
            if now >= interval * (number + 1) and now < self.seconds - interval:
                name, act = faults[number % len(faults)]
                self.events.append((now, name))
                print(f"{now:6.0f} s  {name}; sent {self.producer.sent:,}, stored {self.stored():,}", flush=True)
                act()
                number += 1
            time.sleep(SAMPLE_SECONDS)
        self.producer.finish()
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        while self.stored() < self.producer.sent:
            assert time.monotonic() < deadline, f"{self.stored():,} of {self.producer.sent:,}: {self.driver.tail()}"
            self._observe(time.monotonic() - self.started)
            time.sleep(SAMPLE_SECONDS)

    def _observe(self, now: float) -> None:
        if not self.driver.running:
            self.unexpected_exits += 1
            print(f"{now:6.0f} s  the pipeline ended: {self.driver.tail()}", flush=True)
            self.driver.start(lambda: True)
        driver = resident_mib(self.driver.pid)
        found = {"Spark JVM": driver.get("java", 0.0), "Spark Python": driver.get("python", 0.0)}
        for name, process in (("broker", self.broker.process), ("registry", self.registry.process)):
            assert process is not None
            found[name] = sum(resident_mib(process.pid).values())
        self.samples.add(now, {name: mib for name, mib in found.items() if mib})

    def _restart_registry(self) -> None:
        self.registry.stop()
        self.registry.start()

    def _restart_broker(self) -> None:
        self.broker.stop()
        self.broker.start()

    def _kill_broker(self) -> None:
        self.broker.kill()
        self.broker.start()

    def _kill_driver(self) -> None:
        self.driver.kill()
        self.driver.start(lambda: True)

    def ids(self) -> list[int]:
        return [row[0] for row in self._query("rows.db", "SELECT id FROM events")]

    def letters(self) -> list[tuple[str, int, int]]:
        return self._query("letters.db", 'SELECT reason, "partition", "offset" FROM letters')

    def stored(self) -> int:
        counts = [
            *self._query("rows.db", "SELECT count(*) FROM events"),
            *self._query("letters.db", "SELECT count(*) FROM letters"),
        ]
        return sum(count for (count,) in counts)

    def _query(self, file: str, sql: str) -> list[Any]:
        """Empty until the pipeline has created the table."""
        if not (self.folder / file).exists():
            return []
        with closing(sqlite3.connect(self.folder / file, timeout=60)) as connection:
            try:
                return connection.execute(sql).fetchall()
            except sqlite3.OperationalError:
                return []

    def check(self) -> list[str]:
        """Every mistake. A list without entries is a success."""
        sent = self.producer.sent
        bad = [number for number in range(sent) if number % POISON_EACH == 0]
        good = [number for number in range(sent) if number % POISON_EACH]
        wrong = []
        if sorted(self.ids()) != good:
            wrong.append(
                f"the table has {len(self.ids()):,} rows, {len(set(self.ids())):,} distinct; not {len(good):,}"
            )
        letters = self.letters()
        places = sorted((number % PARTITIONS, number // PARTITIONS) for number in bad)
        if sorted((partition, offset) for _, partition, offset in letters) != places:
            wrong.append(f"{len(letters):,} dead letters, {len(set(letters)):,} distinct; not {len(bad):,}")
        if {reason for reason, _, _ in letters} != {"TRUNCATED"}:
            wrong.append(f"reasons: {sorted({reason for reason, _, _ in letters})}")
        for name in self.samples.names:
            early, late = self.samples.growth(name)
            print(f"{name}: {early:.0f} MiB, later {late:.0f} MiB")
            if not self.samples.is_flat(name):
                wrong.append(f"memory of {name} grew from {early:.0f} to {late:.0f} MiB")
        if self.unexpected_exits:
            wrong.append(f"the pipeline ended {self.unexpected_exits} times by itself")
        return wrong

    def stop(self) -> None:
        self.driver.stop()
        self.registry.stop()
        self.broker.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("minutes", type=float)
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as temporary:
        soak = Soak(Path(temporary), given.minutes)
        try:
            soak.run()
            minutes = (time.monotonic() - soak.started) / 60
            wrong = soak.check()
        finally:
            soak.stop()
    counts = f"{soak.producer.sent:,} records, {soak.producer.version} schema versions, {len(soak.events)} faults"
    given.folder.mkdir(parents=True, exist_ok=True)
    soak.samples.write(given.folder / "soak.csv")
    lines = {name: soak.samples.series(name) for name in soak.samples.names}
    chart = line_chart(f"Soak test, {minutes:.0f} minutes: {counts}", "MiB", lines, soak.events)
    (given.folder / "soak.svg").write_text(chart, encoding="utf-8")
    print(f"{minutes:.1f} minutes: {counts}; {'; '.join(wrong) or 'every record is stored exactly once'}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
