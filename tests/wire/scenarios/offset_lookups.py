"""ListOffsets and OffsetForLeaderEpoch: offsets of timestamps, ends of logs and ends of epochs."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.filled_topics import T0, bounds_of, filled
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire, fetch_body

SPECIAL = {-1: "latest", -2: "earliest", -3: "max timestamp", -4: "earliest local", -5: "latest tiered", -6: "pending"}


def list_offsets_at_every_version(wire: Wire) -> None:
    topic = filled(wire, "listed")
    for version in range(1, 12):

        def ask(label: str, timestamp: int, at: int = version, name: str = topic, **more: Any) -> None:
            part = {"partition_index": more.pop("partition", 0), "timestamp": timestamp, "current_leader_epoch": -1}
            body = {"replica_id": -1, "topics": [{"name": name, "partitions": [part]}], **more}
            wire.ask("list_offsets", at, body, label=label)

        for timestamp, label in SPECIAL.items():
            ask(label, timestamp)
        for timestamp in (0, T0, T0 + 1, T0 + 5000, T0 + 5001, T0 + 11_000, T0 + 11_001):
            ask(f"time {timestamp}", timestamp)
        ask("a time that is none", -99)
        ask("latest, committed only", -1, isolation_level=1)
        ask("unknown partition", -1, partition=9)
        ask("unknown topic", -1, name=wire.name("absent"))
        for timestamp in (-3, -6):
            ask(f"{SPECIAL[timestamp]} of an unknown partition", timestamp, partition=9)


def list_offsets_of_an_empty_log(wire: Wire) -> None:
    topic = wire.topic("empty")
    for version in (1, 3, 7, 11):
        for timestamp in (-1, -2, -3, 0, T0):
            part = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
            body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}
            wire.ask("list_offsets", version, body, label=SPECIAL.get(timestamp, f"time {timestamp}"))
    for epoch in (0, 1, 5):
        for timestamp in (-1, -6):
            part = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": epoch}
            body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}
            wire.ask("list_offsets", 7, body, label=f"{SPECIAL[timestamp]}, current leader epoch {epoch}")
    part = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part, {**part, "timestamp": -2}]}]}
    wire.ask("list_offsets", 7, body, label="the same partition twice")
    wire.ask("list_offsets", 7, {"replica_id": -1, "topics": []}, label="no topics")


def times_out_of_order(wire: Wire) -> None:
    topic = wire.topic("disorder")
    for stamps in ((50, 10, 90), (20, 95), (70,), (90,)):
        wire.produce(topic, Batch([NewRecord(b"x", timestamp=T0 + stamp) for stamp in stamps]))
    for stamp in (0, 10, 11, 51, 60, 90, 91, 95, 96):
        part = {"partition_index": 0, "timestamp": T0 + stamp}
        body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}
        wire.ask("list_offsets", 7, body, label=f"the first record from time {stamp} on")
    part = {"partition_index": 0, "timestamp": -3}
    wire.ask("list_offsets", 7, {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}, label="newest")


def times_in_compressed_batches(wire: Wire) -> None:
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        topic = wire.topic(f"times-{codec}")
        for first in (0, 3):
            made = [NewRecord(b"x", timestamp=T0 + 10 * (first + i)) for i in range(3)]
            wire.produce(topic, Batch(made, codec=codec))
        for stamp in (0, 11, 20, 21, 41, 51):
            part = {"partition_index": 0, "timestamp": T0 + stamp}
            body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}
            wire.ask("list_offsets", 7, body, label=f"{codec}: time {stamp}")
        part = {"partition_index": 0, "timestamp": -3}
        wire.ask(
            "list_offsets", 7, {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}, label="newest"
        )


def offsets_after_records_were_deleted(wire: Wire) -> None:
    topic = filled(wire, "trimmed")
    partitions = [{"partition_index": 0, "offset": 6}]
    wire.ask("delete_records", 2, {"topics": [{"name": topic, "partitions": partitions}], "timeout": 10_000})
    for offset in (0, 4, 5, 6, 7, 12):
        wire.ask("fetch", 11, fetch_body(topic, offset), label=f"offset {offset}", keep=bounds_of)
    for timestamp in (-2, -1, -3, T0, T0 + 5000, T0 + 6000, T0 + 6001):
        part = {"partition_index": 0, "timestamp": timestamp}
        body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}
        wire.ask("list_offsets", 7, body, label=SPECIAL.get(timestamp, f"time {timestamp}"))


def odd_lookups(wire: Wire) -> None:
    topic = wire.topic("lookups", 2)
    wire.produce(topic, Batch([NewRecord(b"x", timestamp=5), NewRecord(b"y", timestamp=7)]))

    def named(*indexes: int, timestamp: int = -1, epoch: int = -1, name: str = topic) -> Plain:
        parts = [{"partition_index": index, "timestamp": timestamp, "current_leader_epoch": epoch} for index in indexes]
        return {"name": name, "partitions": parts}

    def ask(label: str, *topics: Plain, version: int = 7, replica: int = -1) -> None:
        wire.ask("list_offsets", version, {"replica_id": replica, "topics": list(topics)}, label=label)

    for version in (4, 7, 8, 9, 11):
        for timestamp in (*SPECIAL, 0, 6, 8):
            for index in (0, 1):
                ask(f"{SPECIAL.get(timestamp, timestamp)}", named(index, timestamp=timestamp), version=version)
    for replica in (-2, 0, 1, 5):
        ask(f"in the name of replica {replica}", named(0), replica=replica)
    ask("no partition", named())
    ask("a topic twice", named(0), named(1))
    ask("a partition in two topics that are one", named(0), named(0, 1, timestamp=-2))
    ask("an invalid name", named(0, name="bad name!"))
    ask("an empty name, partition -1", named(-1, name=""), version=11)
    for epoch in (-2, -3):
        ask(f"current leader epoch {epoch}", named(0, epoch=epoch))


def ends_of_epochs(wire: Wire) -> None:
    topic = filled(wire, "epochs", 1, 2)

    def ask(label: str, *parts: tuple[int, int, int], name: str = topic, version: int = 4, replica: int = -1) -> None:
        asked = [
            {"partition": index, "current_leader_epoch": current, "leader_epoch": epoch}
            for index, current, epoch in parts
        ]
        body = {"replica_id": replica, "topics": [{"topic": name, "partitions": asked}]}
        wire.ask("offset_for_leader_epoch", version, body, label=label)

    for version in (2, 3, 4):
        for epoch in (-1, 0, 1, 5, -2, 2**31 - 1):
            for current in (-1, 0, 1, -3):
                ask(f"of epoch {epoch} in epoch {current}", (0, current, epoch), version=version)
        ask("unknown topic", (0, -1, 0), name=wire.name("absent"), version=version)
        ask("unknown partition", (9, -1, 0), version=version)
    ask("a partition twice", (0, -1, 0), (0, -1, 1))
    ask("no partition")
    ask("in the name of a replica", (0, -1, 0), replica=1)
    empty = wire.topic("epochs-empty")
    for epoch in (-2, -1, 0, 1):
        ask(f"of epoch {epoch} in an empty log", (0, -1, epoch), name=empty)
    trimmed = filled(wire, "epochs-trimmed", 2, 2)
    body = {"topics": [{"name": trimmed, "partitions": [{"partition_index": 0, "offset": 3}]}], "timeout": 10_000}
    wire.ask("delete_records", 2, body)
    for epoch in (-2, 0):
        ask(f"of epoch {epoch} where records were deleted", (0, -1, epoch), name=trimmed)
