"""Duration of one event-loop iteration during the longest-running work of the broker.

The unit is CPU time of the event-loop thread, which does not depend on other processes.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.broker.server.server import Server
from headgate.broker.state.settings import BrokerSettings
from tests.live.ports import free_port
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

# A time slice is 5 ms for long-running work and 10 ms for ready sockets. Steps may end a little late.
# On shared CPUs, everything takes several times longer.
ITERATION_CPU_SECONDS_MAX = 0.2
SEGMENTS = 40
OLD_MS = 1_000


class MeasuredServer:
    """A server in a thread. Its event loop records the CPU time of the longest iteration."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.longest_seconds = 0.0
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._folder = folder
        self._started = threading.Event()
        self._stopping: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="loop")

    def start(self) -> None:
        self._thread.start()
        assert self._started.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        host, _, port = self.address.rpartition(":")
        self.server = Server(self._folder, BrokerSettings(self._settings), host, int(port))
        self.server.start()
        self._last = time.thread_time()
        self._measure()
        self._started.set()
        await self._stopping.wait()
        self.server.stop()

    def _measure(self) -> None:
        """Record the CPU time since the last call. Runs once per iteration."""
        now = time.thread_time()
        self.longest_seconds = max(self.longest_seconds, now - self._last)
        self._last = now
        if not self._stopping.is_set():
            self._loop.call_soon(self._measure)


@contextmanager
def measured(folder: Path, **settings: str) -> Iterator[MeasuredServer]:
    server = MeasuredServer(folder, **settings)
    server.start()
    # A garbage collection would scan all objects that earlier tests left in memory.
    gc.disable()
    try:
        yield server
    finally:
        gc.enable()
        server.stop()


def test_creating_topics_with_many_partitions_does_not_stall_the_event_loop(tmp_path: Path) -> None:
    with measured(tmp_path) as server, RawConnection(server.address, 120) as client:
        wanted = [{"name": "wide", "num_partitions": 1_000, "replication_factor": 1}]
        (created,) = client.ask("create_topics", 7, {"topics": wanted})["topics"]
        assert created["error_code"] == "NONE"
        grown = [{"name": "wide", "count": 1_500, "assignments": None}]
        (result,) = client.ask("create_partitions", 3, {"topics": grown, "timeout": 60_000})["results"]
        assert result["error_code"] == "NONE"
        assert server.longest_seconds < ITERATION_CPU_SECONDS_MAX


def test_auto_created_topics_do_not_stall_the_event_loop(tmp_path: Path) -> None:
    with measured(tmp_path, num_partitions="20") as server, RawConnection(server.address, 120) as client:
        names = [{"name": f"auto-{number}"} for number in range(100)]
        topics = client.ask("metadata", 9, {"topics": names, "allow_auto_topic_creation": True})["topics"]
        assert [(topic["error_code"], len(topic["partitions"])) for topic in topics] == [("NONE", 20)] * 100
        assert server.longest_seconds < ITERATION_CPU_SECONDS_MAX


def test_retention_of_many_segments_does_not_stall_the_event_loop(tmp_path: Path) -> None:
    with (
        measured(tmp_path, log_retention_check_interval_ms="100") as server,
        RawConnection(server.address, 120) as client,
    ):
        configs = [{"name": "segment.bytes", "value": "1048576"}, {"name": "retention.ms", "value": "-1"}]
        topic = {"name": "old", "num_partitions": 1, "replication_factor": 1, "configs": configs}
        client.ask("create_topics", 7, {"topics": [topic]})
        batch = Batch([NewRecord(bytes(900_000), timestamp=OLD_MS)]).encode()
        data = [{"name": "old", "partition_data": [{"index": 0, "records": batch}]}]
        for _ in range(SEGMENTS):
            answer = client.ask("produce", 9, {"acks": 1, "timeout": 1000, "topic_data": data})
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE"
        found = server.server.broker.topics.find("old")
        assert found is not None
        log = found.partitions[0].log
        assert len(log.segments) == SEGMENTS
        lengths: list[int] = []
        remove = log.apply_retention

        def counted(now_ms: int, *limits: int, **named_limits: int) -> int:
            removed = remove(now_ms, *limits, **named_limits)
            lengths.append(removed)
            return removed

        log.apply_retention = counted  # type: ignore[method-assign]
        server.longest_seconds = 0.0
        change = {"name": "retention.ms", "config_operation": 0, "value": "1000"}
        asked = {"resources": [{"resource_type": 2, "resource_name": "old", "configs": [change]}]}
        client.ask("incremental_alter_configs", 1, asked)
        deadline = time.monotonic() + 120
        while len(log.segments) > 1 and time.monotonic() < deadline:
            client.ask("metadata", 9, {"topics": [{"name": "old"}]})
        assert sum(lengths) >= SEGMENTS - 1
        assert max(lengths) == 1
        assert server.longest_seconds < ITERATION_CPU_SECONDS_MAX
