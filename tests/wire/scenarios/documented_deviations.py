"""Inputs that the broker handles differently on purpose, as docs/deviations.md lists them. The golden file proves the
column "Kafka".
"""

from tests.wire.entities import Plain
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.scenarios.configs import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    change,
    describe,
    replace,
    value_of,
)
from tests.wire.scenarios.membership import join_body, subscription
from tests.wire.scenarios.offsets import commit_body
from tests.wire.transcript import Wire

MAX_TIMESTAMP = -3


def _lookup(topic: str, timestamp: int, isolation_level: int = 0) -> Plain:
    asked = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
    return {"replica_id": -1, "isolation_level": isolation_level, "topics": [asked]}


def lookups(wire: Wire) -> None:
    topic = wire.topic("looked-up")
    wire.produce(topic, Batch([NewRecord(b"newest", timestamp=1_700_000_000_900)]))
    wire.produce(topic, Batch([NewRecord(b"older", timestamp=1_700_000_000_100)]))
    wire.ask("list_offsets", 7, _lookup(topic, -1, isolation_level=9), label="an unknown isolation level")
    trim = {"topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": 1}]}], "timeout": 10_000}
    wire.ask("delete_records", 2, trim)
    wire.ask("list_offsets", 7, _lookup(topic, MAX_TIMESTAMP), label="the maximum timestamp of a deleted record")


def topics(wire: Wire) -> None:
    wanted = [
        {"name": wire.name(part), "num_partitions": 1, "replication_factor": 1, "configs": [], "assignments": []}
        for part in ("collides.here", "collides_here")
    ]
    wire.ask("create_topics", 4, {"topics": wanted, "timeout": 10_000}, label="two names that collide")
    grown = {"name": wire.topic("grown"), "count": 10_002, "assignments": None}
    body = {"topics": [grown], "timeout": 10_000, "validate_only": True}
    wire.ask("create_partitions", 3, body, label="more than 10,000 new partitions")
    body = {"topics": [{"name": ""}], "response_partition_limit": 10, "cursor": None}
    wire.ask("describe_topic_partitions", 0, body, label="an empty name")


def duplicates(wire: Wire) -> None:
    topic, group = wire.topic("named-twice"), wire.group("named-twice")
    wire.ask("offset_commit", 9, commit_body(group, topic))
    everything = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": None}
    wire.ask("offset_fetch", 9, {"groups": [everything, everything]}, label="a group twice")
    wire.ask("describe_groups", 5, {"groups": [group, group]}, label="a group twice")
    wire.ask("describe_producers", 0, {"topics": [{"name": topic, "partition_indexes": [0, 0]}]}, label="twice")


def protocols_of_a_member(wire: Wire) -> None:
    protocols = [(f"p{number}", subscription("plain")) for number in range(1001)]
    answer = wire.main.ask("join_group", 3, join_body(wire.group("protocols"), protocols=protocols))
    wire.note("join_group", 3, {}, {"error_code": answer["error_code"]}, "1,001 protocols")


def configs(wire: Wire) -> None:
    changes: tuple[tuple[str, int, str, str, str], ...] = (
        ("a group", GROUP, wire.name("configured"), "consumer.session.timeout.ms", "50000"),
        ("client metrics", CLIENT_METRICS, wire.name("metrics"), "interval.ms", "60000"),
        ("an unknown config of a broker", BROKER, "1", "acme.unknown", "1"),
        ("four times as many threads", BROKER, "1", "num.io.threads", "32"),
    )
    for label, kind, name, config, value in changes:
        body = change(kind, name, (config, SET, value), validate_only=True)
        wire.ask("incremental_alter_configs", 1, body, label=label)
        body = replace(kind, name, {config: value}, validate_only=True)
        wire.ask("alter_configs", 2, body, label=label)
    topic = wire.topic("spaces")
    for operation, value in ((APPEND, " compact "), (SUBTRACT, "compact")):
        body = change(TOPIC, topic, ("cleanup.policy", operation, value))
        wire.ask("incremental_alter_configs", 1, body, label=repr(value))
    # The change of another config shows that the broker has applied the changes above.
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, ("retention.ms", SET, "5000")))
    wire.ask(
        "describe_configs",
        4,
        describe(TOPIC, topic, ["cleanup.policy", "retention.ms"]),
        label="an item with spaces",
        settled=lambda answer: value_of(answer, "retention.ms") == "5000",
        keep=lambda answer: {"value": value_of(answer, "cleanup.policy")},
    )
