"""Three Apache Kafka nodes on loopback: combined-mode KRaft, replication factor 3, min.insync.replicas 2.

Tests kill nodes with SIGKILL and restart them on the same ports and data. Session timeouts are short, so that the
cluster replaces a killed node within about three seconds.
"""

import os
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.live.apache_kafka import SERVER, SHORT_LIVED, KafkaNode, java_command
from tests.live.ports import accepts
from tests.live.process import ServerDied, ServerProcess

NODE_IDS = (1, 2, 3)
HEAP_MB = 192
START_SECONDS_MAX = 120.0

SETTINGS: Mapping[str, str] = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "400",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    # The default of 128 MiB does not fit the heap.
    "log.cleaner.dedupe.buffer.size": str(4 * 1024 * 1024),
    "num.network.threads": "2",
    "num.io.threads": "4",
}


class ClusterNode(KafkaNode):
    def __init__(self, node_id: int, folder: Path) -> None:
        super().__init__(folder, heap_mb=HEAP_MB, flags=(*SHORT_LIVED, "-Xss512k"))
        self.node_id = node_id

    @property
    def voter(self) -> str:
        return f"{self.node_id}@127.0.0.1:{self.controller_port}"

    def configure(self, voters: str) -> None:
        self._settings = {**SETTINGS, "node.id": str(self.node_id), "controller.quorum.voters": voters}

    def launch(self) -> None:
        """Start without waiting: a node accepts clients only when a majority of the nodes runs."""
        command = java_command(SERVER, str(self.folder / "server.properties"), flags=self._java_flags)
        self.process = ServerProcess(command, self.folder / "node.log", environment={"LOG_DIR": str(self.folder)})
        self.process.start(lambda: True)

    def is_accepting(self) -> bool:
        """Return whether the node accepts connections. Raises ServerDied if the node has exited."""
        if self.process is None or not self.process.running:
            raise ServerDied(f"node {self.node_id} ended: {self.process.tail() if self.process else ''}")
        return accepts(self.address)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()

    def pause(self) -> None:
        """Suspend the node: connections stay open, but the node does not respond."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)


class KafkaCluster:
    def __init__(self, folder: Path) -> None:
        self.nodes = [ClusterNode(node_id, folder / f"node-{node_id}") for node_id in NODE_IDS]
        voters = ",".join(node.voter for node in self.nodes)
        for node in self.nodes:
            node.configure(voters)

    @property
    def address(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def node(self, node_id: int) -> ClusterNode:
        return next(node for node in self.nodes if node.node_id == node_id)

    def start(self) -> None:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: node.format(), self.nodes))
        for node in self.nodes:
            node.launch()
        self.wait_until_in_sync()

    def stop(self) -> None:
        """Kill all nodes. A controlled shutdown of the last nodes would wait for a majority that no longer exists."""
        for node in self.nodes:
            if node.process is not None:
                node.process.kill()
                node.process.stop()

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def restart(self, node: ClusterNode) -> None:
        node.launch()
        self.wait_until_in_sync()

    def wait_until_in_sync(self) -> None:
        """Wait until every node accepts clients and all replicas of every partition are in sync."""
        wait_for(lambda: all(node.is_accepting() for node in self.nodes), "all nodes accept clients")
        admin = self.admin()
        wait_for(lambda: self._is_in_sync(admin), "all replicas are in sync")

    def wait_until_fenced(self, node: ClusterNode) -> None:
        """Wait until the stopped node leads no partition."""
        admin = self.admin()

        def is_replaced() -> bool:
            try:
                found = admin.list_topics(timeout=5)
            except KafkaException:
                return False
            partitions = [one for topic in found.topics.values() for one in topic.partitions.values()]
            return node.node_id not in found.brokers and all(one.leader not in (-1, node.node_id) for one in partitions)

        wait_for(is_replaced, f"node {node.node_id} is replaced")

    def _is_in_sync(self, admin: AdminClient) -> bool:
        try:
            found = admin.list_topics(timeout=5)
        except KafkaException:
            return False
        partitions = [one for topic in found.topics.values() for one in topic.partitions.values()]
        return len(found.brokers) == len(self.nodes) and all(
            len(one.isrs) == len(one.replicas) and one.leader != -1 for one in partitions
        )


def wait_for(condition: Callable[[], bool], what: str, seconds: float = START_SECONDS_MAX) -> None:
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, f"not in {seconds:.0f} s: {what}"
        sleep(0.1)
