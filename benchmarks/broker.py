"""Is the embedded broker as fast as Apache Kafka on one machine?

One node of Kafka 4.3.1 with its defaults beside ours, the same client programs against both in turn. acks=1 on both
sides compares page cache with page cache; acks=all, which here means fsynced, is compared with Kafka told to do the
same (flush.messages=1). Run alone: `python -m benchmarks.broker [--quick]`.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from benchmarks import raw_load, rdkafka_load
from benchmarks.cold_load import FETCH_BYTES, cold_consumers
from benchmarks.greedy_load import greedy_clients
from benchmarks.harness import Contender, Report
from tests.live.apache_kafka import KafkaNode
from tests.live.headgate import HeadgateBroker

KAFKA = "Apache Kafka 4.3.1"
KAFKA_HEAP_MB = 1024  # the default of kafka-server-start.sh
MEGABYTE = 1_000_000
STORED_BATCH_BYTES = 256_000
"""Total size of the values in one batch of the consumed topics."""
DIFFERENT_VALUES = 1_000
GREEDY_CLIENTS = (1, 10, 100)
CLIENT_ROUNDS_MORE = 12
"""Additional rounds for client libraries, because their times vary more than those of the brokers."""


@dataclass
class Broker:
    name: str
    address: str
    pid: int
    data: Path
    """The directory with the partitions."""

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def resident_mb(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("no VmRSS")


class Bench:
    def __init__(self, ours: Broker, kafka: Broker, report: Report, *, quick: bool) -> None:
        self.ours = ours
        self.kafka = kafka
        self.report = report
        self.scale = 0.1 if quick else 1.0
        self.rounds = 2 if quick else 5
        self._numbers = count()

    @property
    def brokers(self) -> tuple[Broker, Broker]:
        return self.ours, self.kafka

    def amount(self, full: int) -> int:
        return max(int(full * self.scale), 10)

    @contextmanager
    def topic(self, broker: Broker, **configs: str) -> Iterator[str]:
        name = f"bench-{next(self._numbers)}"
        settings = [(key.replace("_", "."), value) for key, value in configs.items()]
        raw_load.create_topic(broker.address, name, configs=settings)
        try:
            yield name
        finally:
            raw_load.delete_topic(broker.address, name)

    def throughput(self, metric: str, work: float, run: Callable[[Broker, str], None], **topic: str) -> None:
        """Compare the MB/s of `run(broker, topic)`. Each run uses a new topic."""

        def once(broker: Broker) -> Callable[[], None]:
            def measured() -> None:
                with self.topic(broker, **topic) as name:
                    run(broker, name)

            return measured

        self.report.compare(
            metric,
            Contender(self.ours.name, once(self.ours), work / MEGABYTE),
            Contender(self.kafka.name, once(self.kafka), work / MEGABYTE),
            unit="MB/s",
            rounds=self.rounds,
        )

    def clients(self) -> None:
        """Produce and consume with librdkafka, which most applications use."""
        for size, records in ((100, self.amount(2_000_000)), (1024, self.amount(600_000))):
            for codec in ("none", "lz4"):
                self.client_pair(f"{size}B_{codec}", size, records, codec, partitions=1)
        self.client_pair("1024B_100_partitions", 1024, self.amount(400_000), "none", partitions=100)

    def client_pair(self, label: str, size: int, records: int, codec: str, partitions: int) -> None:
        topics: list[tuple[Broker, str]] = []
        # Use enough distinct values to exceed the codec's window.
        values = half_random(size, DIFFERENT_VALUES)

        def produce(broker: Broker, client: Executor) -> None:
            name = f"bench-{next(self._numbers)}"
            raw_load.create_topic(broker.address, name, partitions)
            topics.append((broker, name))
            client.submit(rdkafka_load.produce, broker.address, name, values, records, codec, partitions).result()

        self.compare_clients(f"rdkafka_produce_{label}", produce, size * records)
        for broker, name in topics:
            arrived = raw_load.count_records(broker.address, name, partitions)
            assert arrived == records, f"{arrived} of {records} records arrived at {broker.name}"
            raw_load.delete_topic(broker.address, name)
        stored = self.stored(size, records, codec, partitions)

        def consume(broker: Broker, client: Executor) -> None:
            client.submit(rdkafka_load.consume, broker.address, stored[broker.name], records, partitions).result()

        self.compare_clients(f"rdkafka_consume_{label}", consume, size * records)
        for broker in self.brokers:
            raw_load.delete_topic(broker.address, stored[broker.name])

    def compare_clients(self, metric: str, once: Callable[[Broker, Executor], None], work: float) -> None:
        # Use a new client process. A process that has produced a gigabyte consumes 20 % slower.
        with rdkafka_load.allocator() as allocator, ProcessPoolExecutor(1, get_context("spawn")) as client:
            self.report.compare(
                metric,
                Contender(self.ours.name, partial(once, self.ours, client), work / MEGABYTE, settle_the_disk),
                Contender(self.kafka.name, partial(once, self.kafka, client), work / MEGABYTE, settle_the_disk),
                unit="MB/s",
                rounds=self.rounds + CLIENT_ROUNDS_MORE,
                note=f"client with {allocator}",
            )

    def stored(self, size: int, records: int, codec: str, partitions: int) -> dict[str, str]:
        """Create the topics to consume, with the same bytes on both brokers.

        A producer that waits longer for its broker builds larger batches, which are cheaper to consume.
        """
        in_partition = -(-records // partitions)
        each = min(STORED_BATCH_BYTES // size, in_partition)
        batch = raw_load.batch_with(half_random(size, each), codec)
        topics = {broker.name: f"bench-{next(self._numbers)}" for broker in self.brokers}
        for broker in self.brokers:
            raw_load.create_topic(broker.address, topics[broker.name], partitions)
            for partition in range(partitions):
                raw_load.produce(broker.address, topics[broker.name], batch, -(-in_partition // each), 1, partition)
        return topics

    def sockets(self) -> None:
        """Measure the protocol without a client library: large batches, large fetches, and the broker's CPU time."""
        batch = raw_load.batch_of(256, 1000)
        batches = self.amount(2_000)
        work = len(batch) * batches
        spent: dict[str, dict[str, list[float]]] = {
            broker.name: {"produce": [], "fetch": []} for broker in self.brokers
        }
        seconds: dict[str, dict[str, list[float]]] = {
            broker.name: {"produce": [], "fetch": []} for broker in self.brokers
        }
        for _ in range(self.rounds + 1):
            for broker in self.brokers:
                with self.topic(broker) as name:
                    for verb in ("produce", "fetch"):
                        settle_the_disk()
                        cpu, started = broker.cpu_seconds(), time.perf_counter()
                        if verb == "produce":
                            raw_load.produce(broker.address, name, batch, batches, 1)
                        else:
                            raw_load.consume(broker.address, name, len(batch), 256, batches, 1 << 20)
                        seconds[broker.name][verb].append(time.perf_counter() - started)
                        spent[broker.name][verb].append(broker.cpu_seconds() - cpu)
        for verb in ("produce", "fetch"):
            names = (self.ours.name, KAFKA)
            rates = [[work / MEGABYTE / taken for taken in seconds[name][verb][1:]] for name in names]
            self.report.record_rounds(f"socket_{verb}_256KiB", *rates, unit="MB/s", peer_name=KAFKA)
            costs = [[cpu / (work / 1e9) for cpu in spent[name][verb][1:]] for name in names]
            self.report.record_rounds(
                f"cpu_{verb}", *costs, unit="s/GB", peer_name=KAFKA, higher_is_better=False, note="broker process"
            )

    def connections(self) -> None:
        """Run 200 clients with one in-flight request each."""
        batch = raw_load.batch_of(10, 100)
        requests = self.amount(200)
        work = 200 * requests

        def produce(broker: Broker) -> Callable[[], None]:
            def run() -> None:
                with self.topic(broker) as name:
                    raw_load.produce_over_many(broker.address, name, batch, 200, requests)

            return run

        names: dict[str, str] = {}
        for broker in self.brokers:
            names[broker.name] = f"bench-{next(self._numbers)}"
            raw_load.create_topic(broker.address, names[broker.name])
            raw_load.produce(broker.address, names[broker.name], batch, 200 * requests, 1)

        def consume(broker: Broker) -> Callable[[], None]:
            name = names[broker.name]
            return lambda: raw_load.consume_over_many(broker.address, name, 10, len(batch), 200, requests)

        for verb, once in (("produce", produce), ("fetch", consume)):
            self.report.compare(
                f"200_connections_{verb}",
                Contender(self.ours.name, once(self.ours), work),
                Contender(self.kafka.name, once(self.kafka), work),
                unit="requests/s",
                rounds=self.rounds,
                # After three runs, the JIT compiler of Kafka's JVM has compiled this code path.
                warm_ups=3,
            )

    def latency(self, acks: int, label: str, **configs: str) -> None:
        """Measure the latency of one record at a time."""
        batch = raw_load.batch_of(1, 100)
        taken: dict[str, list[float]] = {self.ours.name: [], self.kafka.name: []}
        requests = self.amount(3_000)
        for number in range(self.rounds + 1):
            for broker in self.brokers:
                with self.topic(broker, **(configs if broker is self.kafka else {})) as name:
                    measured = raw_load.latencies(broker.address, name, batch, requests, acks)
                    if number:
                        taken[broker.name] += measured[requests // 10 :]
        for quantile, text in ((50, "p50"), (99, "p99")):
            values = [statistics.quantiles(taken[name], n=100)[quantile - 1] * 1e6 for name in (self.ours.name, KAFKA)]
            self.report.record(f"latency_{label}_{text}", *values, unit="µs", peer_name=KAFKA, higher_is_better=False)

    def fairness(self) -> None:
        """Measure the latency with acks=1 while other clients pipeline requests without waiting for responses."""
        batch = raw_load.batch_of(1, 100)
        for clients in GREEDY_CLIENTS:
            taken: dict[str, list[float]] = {broker.name: [] for broker in self.brokers}
            for number in range(min(self.rounds, 3) + 1):
                for broker in self.brokers:
                    with self.topic(broker) as name, greedy_clients(broker.address, clients):
                        measured = raw_load.latencies(broker.address, name, batch, self.amount(1_000), 1)
                        if number:
                            taken[broker.name].append(statistics.median(measured) * 1e6)
            self.report.record_rounds(
                f"latency_beside_{clients}_pipelining_clients_p50",
                taken[self.ours.name],
                taken[KAFKA],
                unit="µs",
                peer_name=KAFKA,
                higher_is_better=False,
            )

    def cold_consumers(self, acks: int, label: str, **configs: str) -> None:
        """Measure the latency while two consumers read data that is not in the page cache."""
        batch = raw_load.batch_of(1, 100)
        stored = raw_load.batch_of(256, 1000)
        batches = self.amount(2_000)
        # A fetch returns as many whole batches as fit.
        offsets = range(0, 256 * (batches - 4), 256 * (FETCH_BYTES // len(stored)))
        requests = self.amount(1_000)
        taken: dict[str, list[float]] = {broker.name: [] for broker in self.brokers}
        with ExitStack() as stack:
            cold = {broker.name: stack.enter_context(self.topic(broker)) for broker in self.brokers}
            for broker in self.brokers:
                raw_load.produce(broker.address, cold[broker.name], stored, batches, 1)
            for number in range(min(self.rounds, 3) + 1):
                for broker in self.brokers:
                    folder = broker.data / f"{cold[broker.name]}-0"
                    with (
                        self.topic(broker, **(configs if broker is self.kafka else {})) as name,
                        cold_consumers(broker.address, cold[broker.name], folder, offsets),
                    ):
                        measured = raw_load.latencies(broker.address, name, batch, requests, acks)
                        if number:
                            taken[broker.name].append(statistics.median(measured) * 1e6)
        self.report.record_rounds(
            f"latency_{label}_beside_2_cold_consumers_p50",
            taken[self.ours.name],
            taken[KAFKA],
            unit="µs",
            peer_name=KAFKA,
            higher_is_better=False,
        )

    def durable(self) -> None:
        """Measure acks=all with an fsync before each response. Kafka runs with flush.messages=1."""
        batch = raw_load.batch_of(16, 1000)
        requests = self.amount(2_000)
        self.throughput(
            "durable_produce_16KiB",
            len(batch) * requests,
            lambda broker, name: raw_load.produce(broker.address, name, batch, requests, -1),
            flush_messages="1",
        )


def settle_the_disk() -> None:
    """Flush earlier writes to disk before a run. Otherwise the run measures the wait for a full disk queue."""
    os.sync()


def half_random(size: int, number: int) -> list[bytes]:
    """Return values that are half random bytes, half zeros. They compress about two to one, as text does."""
    return [os.urandom(size // 2).ljust(size, b"\x00") for _ in range(number)]


def start_times(folder: Path, report: Report, rounds: int) -> None:
    """Measure the time from an empty data directory to the first acknowledged record."""
    taken: dict[str, list[float]] = {"ours": [], "kafka": []}
    for number in range(rounds):
        for name, seconds in taken.items():
            node = _node(name, folder / f"start-{name}-{number}")
            started = time.perf_counter()
            node.start()
            raw_load.create_topic(node.address, "first")
            raw_load.produce(node.address, "first", raw_load.batch_of(1, 100), 1, 1)
            seconds.append(time.perf_counter() - started)
            node.stop()
    report.record_rounds(
        "start_to_first_record",
        taken["ours"],
        taken["kafka"],
        unit="s",
        peer_name=KAFKA,
        higher_is_better=False,
        note="formatting included",
    )


def _node(name: str, folder: Path) -> HeadgateBroker | KafkaNode:
    return HeadgateBroker(folder) if name == "ours" else KafkaNode(folder, heap_mb=KAFKA_HEAP_MB)


def run(*, quick: bool = False) -> Report:
    report = Report("broker", f"The embedded broker against one node of {KAFKA} with its defaults, same clients.")
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        folder = Path(name)
        start_times(folder, report, 1 if quick else 3)
        nodes = [_node("ours", folder / "ours"), _node("kafka", folder / "kafka")]
        try:
            for node in nodes:
                node.start()
            brokers = [
                Broker(label, node.address, node.process.pid, node.folder / "data")
                for label, node in zip(("headgate", KAFKA), nodes, strict=True)
                if node.process is not None
            ]
            time.sleep(2 if quick else 10)
            _memory(report, "memory_idle", brokers)
            bench = Bench(brokers[0], brokers[1], report, quick=quick)
            bench.latency(1, "acks_1")
            bench.fairness()
            bench.cold_consumers(1, "acks_1")
            bench.cold_consumers(-1, "acks_all_fsync", flush_messages="1")
            bench.sockets()
            bench.connections()
            bench.clients()
            bench.latency(-1, "acks_all_fsync", flush_messages="1")
            bench.durable()
            _memory(report, "memory_loaded", brokers)
        finally:
            for node in nodes:
                node.stop()
    return report


def _memory(report: Report, metric: str, brokers: list[Broker]) -> None:
    ours, kafka = (broker.resident_mb() for broker in brokers)
    report.record(metric, ours, kafka, unit="MB", peer_name=KAFKA, higher_is_better=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, two rounds")
    print(run(quick=parser.parse_args().quick).write())


if __name__ == "__main__":
    main()
