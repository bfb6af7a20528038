"""Partition placement: leader elections, reassignments, log directories and the cluster description."""

from collections.abc import Callable
from typing import Any

from tests.wire.entities import Plain
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire


def describe_cluster(wire: Wire) -> None:
    for version in range(3):
        wire.ask("describe_cluster", version, {"endpoint_type": 1})
        body = {"endpoint_type": 1, "include_cluster_authorized_operations": True}
        wire.ask("describe_cluster", version, body, label="with operations")
    wire.ask("describe_cluster", 2, {"endpoint_type": 1, "include_fenced_brokers": True}, label="with fenced brokers")
    wire.ask("describe_cluster", 1, {"endpoint_type": 9}, label="no such kind of endpoint")


def describe_log_dirs(wire: Wire) -> None:
    name = wire.topic("sized", 2)
    wire.produce(name, Batch([NewRecord(b"0123456789" * 10)]))
    for version in range(1, 6):
        body = {"topics": [{"topic": name, "partitions": [0, 1]}]}
        wire.ask("describe_log_dirs", version, body)
    wire.ask("describe_log_dirs", 4, {"topics": [{"topic": wire.name("absent"), "partitions": [0]}]}, label="unknown")
    wire.ask("describe_log_dirs", 4, {"topics": [{"topic": name, "partitions": [9]}]}, label="unknown partition")


def list_partition_reassignments(wire: Wire) -> None:
    name = wire.topic("still")
    body: Plain = {"timeout": 10_000, "topics": None}
    wire.ask("list_partition_reassignments", 0, body, label="all")
    body = {"timeout": 10_000, "topics": [{"name": name, "partition_indexes": [0]}]}
    wire.ask("list_partition_reassignments", 0, body, label="one")
    body = {"timeout": 10_000, "topics": [{"name": wire.name("absent"), "partition_indexes": [0]}]}
    wire.ask("list_partition_reassignments", 0, body, label="unknown")


def _elect(kind: int, asked: dict[str, list[int]] | None) -> Plain:
    topics = None if asked is None else [{"topic": name, "partitions": parts} for name, parts in asked.items()]
    return {"election_type": kind, "topic_partitions": topics, "timeout": 10_000}


def _only(name: str) -> Callable[[Plain], Plain]:
    """Return a filter that keeps only the results of one topic."""

    def of_the_topic(answer: Plain) -> Plain:
        results = [result for result in answer["replica_election_results"] if result["topic"] == name]
        return {**answer, "replica_election_results": results}

    return of_the_topic


def elect_leaders(wire: Wire) -> None:
    name, absent = wire.topic("led", 2), wire.name("absent")
    for version in range(3):
        wire.ask("elect_leaders", version, _elect(0, {name: [0, 1]}), label="preferred")
        wire.ask("elect_leaders", version, _elect(0, {absent: [0]}), label="unknown topic")
        wire.ask("elect_leaders", version, _elect(0, {name: [0, 9, -1]}), label="unknown partitions among good")
        wire.ask("elect_leaders", version, _elect(0, {}), label="none")
        wire.ask("elect_leaders", version, _elect(0, {name: []}), label="no partition of a topic")
        wire.ask("elect_leaders", version, _elect(0, None), label="all that need one", keep=_only(name))
    for version in (1, 2):
        wire.ask("elect_leaders", version, _elect(1, {name: [0], absent: [0]}), label="unclean")
        wire.ask("elect_leaders", version, _elect(1, None), label="unclean, all that need one", keep=_only(name))
        for kind in (2, -1, 127):
            wire.ask("elect_leaders", version, _elect(kind, {name: [0]}), label=f"no such kind of election: {kind}")
            wire.ask("elect_leaders", version, _elect(kind, {name: []}), label=f"no such kind, no partition: {kind}")
            wire.ask("elect_leaders", version, _elect(kind, {}), label=f"no such kind of election, of nothing: {kind}")
            wire.ask("elect_leaders", version, _elect(kind, None), label=f"no such kind of election, of all: {kind}")
    wire.ask("elect_leaders", 2, _elect(0, {name: [1, 1]}), label="the same partition twice")
    twice = _elect(0, {name: [0]})
    twice["topic_partitions"] *= 2
    wire.ask("elect_leaders", 2, twice, label="the same topic twice")
    wire.ask("elect_leaders", 2, _elect(0, {"": [0], "bad name!": [0]}), label="names that no topic has")


def _move(*topics: tuple[str, dict[int, list[int] | None]], **more: Any) -> Plain:
    asked = [
        {
            "name": name,
            "partitions": [{"partition_index": index, "replicas": replicas} for index, replicas in parts.items()],
        }
        for name, parts in topics
    ]
    return {"timeout": 10_000, "topics": asked, **more}


def alter_partition_reassignments(wire: Wire) -> None:
    name, absent = wire.topic("moved", 2), wire.name("absent")

    def ask(label: str, *topics: tuple[str, dict[int, list[int] | None]], **more: Any) -> None:
        for version in (0, 1):
            wire.ask("alter_partition_reassignments", version, _move(*topics, **more), label=label)

    ask("to where it is", (name, {0: [1]}))
    ask("cancel what is not under way", (name, {0: None}))
    ask("to a broker that is not there", (name, {0: [2]}))
    ask("to one more broker", (name, {0: [1, 2]}))
    ask("to the same broker twice", (name, {0: [1, 1]}))
    ask("to no broker", (name, {0: []}))
    ask("to a negative broker", (name, {0: [-1]}))
    ask("good and bad", (name, {0: [1], 1: [7], 9: [1], -1: [1]}))
    ask("an unknown topic", (absent, {0: [1], 1: None, 2: [5]}))
    ask("an unknown partition", (name, {9: [1]}))
    ask("cancel on an unknown partition", (name, {9: None}))
    ask("nothing")
    ask("no partition of a topic", (name, {}))
    ask("names that no topic has", ("", {0: [1]}), ("bad name!", {0: [1]}))
    ask("the same topic twice", (name, {0: [1]}), (name, {1: [1]}))
    for allowed in (True, False):
        more = {"allow_replication_factor_change": allowed}
        wire.ask("alter_partition_reassignments", 1, _move(**more), label=f"nothing, {allowed}")
        wire.ask("alter_partition_reassignments", 1, _move((name, {0: [1]}), **more), label=f"as it is, {allowed}")
        wire.ask("alter_partition_reassignments", 1, _move((name, {0: [1, 2]}), **more), label=f"one more, {allowed}")
        wire.ask("alter_partition_reassignments", 1, _move((name, {0: None}), **more), label=f"cancel, {allowed}")
    twice = _move((name, {0: [1]}))
    twice["topics"][0]["partitions"] += [{"partition_index": 0, "replicas": [9]}]
    wire.ask("alter_partition_reassignments", 0, twice, label="the same partition twice")
    body: Plain = {"timeout": 10_000, "topics": [{"name": name, "partition_indexes": [0, 1]}]}
    wire.ask("list_partition_reassignments", 0, body, label="nothing is under way")


def alter_replica_log_dirs(wire: Wire) -> None:
    name, absent, elsewhere = wire.topic("settled", 2), wire.name("absent"), "/no/such/directory"
    here: str = wire.main.ask("describe_log_dirs", 4, {"topics": []})["results"][0]["log_dir"]
    wire.learn(here, "<the directory>")

    def ask(label: str, *moves: tuple[str, list[tuple[str, list[int]]]]) -> None:
        for version in (1, 2):
            dirs = [
                {"path": path, "topics": [{"name": topic, "partitions": indexes} for topic, indexes in topics]}
                for path, topics in moves
            ]
            wire.ask("alter_replica_log_dirs", version, {"dirs": dirs}, label=label)

    ask("to where they are", (here, [(name, [0, 1])]))
    ask("to where it is, spelled in another way", (f"{here}/", [(name, [0])]))
    for path in (elsewhere, "relative", ""):
        ask(f"to '{path}'", (path, [(name, [0])]))
    ask("unknown partitions", (here, [(name, [9, -1, 0])]))
    ask("an unknown topic", (here, [(absent, [0])]))
    ask("unknown ones to elsewhere", (elsewhere, [(absent, [0]), (name, [9])]))
    ask("names that no topic has", (here, [("", [0]), ("bad name!", [0])]))
    ask("here, then elsewhere", (here, [(name, [0])]), (elsewhere, [(name, [0, 1])]))
    ask("elsewhere, then here", (elsewhere, [(name, [0, 1])]), (here, [(name, [0])]))
    ask("a partition twice", (here, [(name, [0, 0])]))
    ask("a topic twice", (here, [(name, [0]), (name, [1])]))
    ask("nothing")
    ask("no topic", (here, []))
    ask("no partition", (here, [(name, [])]))
