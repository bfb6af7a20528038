"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords and the APIs that describe topics."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.record_batches import Batch, NewRecord
from tests.wire.transcript import Wire

NOBODY = "00000000-0000-4000-8000-00000000dead"


def topic(name: str, partitions: int = 1, replication: int = 1, **more: Any) -> Plain:
    return {"name": name, "num_partitions": partitions, "replication_factor": replication, **more}


def create(*topics: Plain, validate_only: bool = False) -> Plain:
    return {"topics": list(topics), "timeout": 10_000, "validate_only": validate_only}


def assign(*partitions: tuple[int, list[int]]) -> Plain:
    listed = [{"partition_index": index, "broker_ids": brokers} for index, brokers in partitions]
    return {"assignments": listed}


def setting(name: str, value: str | None) -> Plain:
    return {"configs": [{"name": name, "value": value}]}


def create_topics_at_every_version(wire: Wire) -> None:
    for version in range(2, 8):
        name = wire.name(f"made-v{version}")
        body = create(topic(name, 3, **setting("retention.ms", "12345")))
        wire.ask("create_topics", version, body)
        wire.await_topic(name)
        wire.ask("create_topics", version, body, label="again")
        trial = create(topic(wire.name(f"trial-v{version}"), 2), validate_only=True)
        wire.ask("create_topics", version, trial, label="validate only")
        wire.ask(
            "metadata",
            9,
            {"topics": [{"name": wire.name(f"trial-v{version}")}], "allow_auto_topic_creation": False},
            label="a trial makes nothing",
        )


def create_topics_with_defaults(wire: Wire) -> None:
    wire.ask("create_topics", 7, create(topic(wire.name("defaults"), -1, -1)))
    wire.ask("create_topics", 7, create(topic(wire.name("defaults-trial"), -1, -1), validate_only=True))
    wire.ask("create_topics", 7, create(), label="no topics")


BAD_NAMES = (
    "",
    ".",
    "..",
    "white space",
    "slash/ed",
    "back\\slash",
    "colon:ed",
    "comma,ed",
    "quote'd",
    "new\nline",
    "nul\x00",
    "ünïcode",
    "x" * 250,
)


def create_topics_with_bad_names(wire: Wire) -> None:
    for name in BAD_NAMES:
        wire.ask("create_topics", 7, create(topic(name)), label=repr(name[:20]))
    longest = wire.name("x" * 240)
    wire.ask("create_topics", 7, create(topic(longest), validate_only=True), label="249 characters are allowed")
    for name in ("__cluster_metadata",):
        wire.ask("create_topics", 7, create(topic(name), validate_only=True), label=f"internal {name}")


def create_topics_whose_names_collide(wire: Wire) -> None:
    wire.topic("colliding.name")
    wire.ask("create_topics", 7, create(topic(wire.name("colliding_name"))), label="differs by _ for . alone")


def create_topics_with_bad_numbers(wire: Wire) -> None:
    for partitions, replication in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (1, 32767), (0, 0)):
        body = create(topic(wire.name("numbers"), partitions, replication))
        wire.ask("create_topics", 7, body, label=f"{partitions} partitions, {replication} replicas")
        trial = create(topic(wire.name("numbers"), partitions, replication), validate_only=True)
        wire.ask("create_topics", 7, trial, label=f"trial of {partitions} partitions, {replication} replicas")


def create_topics_with_assignments(wire: Wire) -> None:
    def ask(label: str, **more: Any) -> None:
        wire.ask("create_topics", 7, create(topic(wire.name("assigned"), **more), validate_only=True), label=label)

    ask("right", partitions=-1, replication=-1, **assign((0, [1]), (1, [1])))
    ask("no such broker", partitions=-1, replication=-1, **assign((0, [99])))
    ask("a gap", partitions=-1, replication=-1, **assign((0, [1]), (2, [1])))
    ask("does not start at 0", partitions=-1, replication=-1, **assign((1, [1])))
    ask("a broker twice", partitions=-1, replication=-1, **assign((0, [1, 1])))
    ask("a partition twice", partitions=-1, replication=-1, **assign((0, [1]), (0, [1])))
    ask("no broker", partitions=-1, replication=-1, **assign((0, [])))
    ask("negative partition", partitions=-1, replication=-1, **assign((-1, [1])))
    ask("uneven", partitions=-1, replication=-1, **assign((0, [1]), (1, [1, 2])))
    ask("a number of partitions as well", partitions=1, replication=-1, **assign((0, [1])))
    ask("a replication factor as well", partitions=-1, replication=1, **assign((0, [1])))
    body = create(topic(wire.name("assigned"), -1, -1, **assign((0, [1]), (1, [1]))))
    wire.ask("create_topics", 7, body, label="made")
    wire.ask("create_topics", 2, create(topic(wire.name("assigned2"), -1, -1, **assign((0, [1])))), label="made")


def create_topics_with_bad_settings(wire: Wire) -> None:
    for name, value in (
        ("retention.ms", "soon"),
        ("retention.ms", None),
        ("no.such.setting", "1"),
        ("cleanup.policy", "shred"),
        ("segment.bytes", "1"),
        ("min.insync.replicas", "0"),
        ("", "x"),
    ):
        body = create(topic(wire.name("settings"), **setting(name, value)))
        wire.ask("create_topics", 7, body, label=f"{name}={value!r}")
    twice: Plain = {"configs": [{"name": "retention.ms", "value": "1"}, {"name": "retention.ms", "value": "2"}]}
    wire.ask("create_topics", 7, create(topic(wire.name("settings-twice"), **twice)), label="a setting twice")


def one_bad_topic_among_good(wire: Wire) -> None:
    good, bad, twice = wire.name("good"), "bad name", wire.name("twice")
    body = create(topic(good), topic(bad), topic(wire.name("many"), 1, 3), topic(twice), topic(twice))
    wire.ask("create_topics", 7, body)
    wire.await_topic(good)
    listed = {"topics": [{"name": good}, {"name": twice}], "allow_auto_topic_creation": False}
    wire.ask("metadata", 9, listed)


def delete_topics_at_every_version(wire: Wire) -> None:
    for version in range(1, 6):
        name = wire.topic(f"gone-v{version}")
        body = {"topic_names": [name, wire.name("absent")], "timeout": 10_000}
        wire.ask("delete_topics", version, body)
        wire.await_topic(name, present=False)
        wire.ask("delete_topics", version, {"topic_names": [name], "timeout": 10_000}, label="again")
        wire.ask("delete_topics", version, {"topic_names": ["bad name"], "timeout": 10_000}, label="invalid name")
        twice = wire.topic(f"twice-v{version}")
        wire.ask("delete_topics", version, {"topic_names": [twice, twice], "timeout": 10_000}, label="named twice")


def delete_topics_by_id(wire: Wire) -> None:
    by_name, by_id, twice = wire.topic("by-name"), wire.topic("by-id"), wire.topic("twice")
    ids = {name: wire.topic_id(name) for name in (by_id, twice)}

    def ask(label: str, *topics: Plain) -> None:
        wire.ask("delete_topics", 6, {"topics": list(topics), "timeout": 10_000}, label=label)

    ask("name and id", {"name": by_name}, {"topic_id": ids[by_id], "name": None})
    wire.await_topic(by_name, present=False)
    wire.await_topic(by_id, present=False)
    ask("gone already", {"name": by_name}, {"topic_id": ids[by_id], "name": None})
    ask("unknown id", {"topic_id": NOBODY, "name": None})
    ask("neither", {"name": None})
    ask("both", {"name": twice, "topic_id": ids[twice]})
    ask("the same by name and by id", {"name": twice}, {"topic_id": ids[twice], "name": None})
    ask("the same id twice", {"name": None, "topic_id": ids[twice]}, {"topic_id": ids[twice], "name": None})


def a_topic_made_again_has_a_new_id(wire: Wire) -> None:
    name = wire.topic("reborn")
    old = wire.topic_id(name)
    wire.learn(old, "<old id>")
    wire.produce(name, Batch())
    wire.ask("delete_topics", 6, {"topics": [{"name": name}], "timeout": 10_000})
    wire.await_topic(name, present=False)
    made = wire.main.ask("create_topics", 7, create(topic(name)))["topics"][0]
    wire.await_topic(name)
    wire.note("create_topics", 7, {}, {"same id": made["topic_id"] == old})
    wire.ask("metadata", 12, {"topics": [{"name": None, "topic_id": old}]}, label="by its old id")
    offsets = {"topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}], "replica_id": -1}
    wire.ask("list_offsets", 7, offsets, label="it is empty", settled=lambda answer: _first_error(answer) == "NONE")


def _first_error(answer: Plain) -> Any:
    return answer["topics"][0]["partitions"][0]["error_code"]


def create_partitions_at_every_version(wire: Wire) -> None:
    for version in range(4):
        name = wire.topic(f"grows-v{version}", 2)

        def ask(label: str, count: int, of: str, at: int = version, **more: Any) -> None:
            entry = {"name": of, "count": count, "assignments": None, **more}
            validate_only = label.startswith("trial")
            body = {"topics": [entry], "timeout": 10_000, "validate_only": validate_only}
            wire.ask("create_partitions", at, body, label=label)

        ask("the same number", 2, name)
        ask("fewer", 1, name)
        ask("zero", 0, name)
        ask("negative", -1, name)
        ask("unknown topic", 5, wire.name("absent"))
        ask("invalid name", 5, "bad name")
        ask("trial of more", 4, name)
        wire.ask("metadata", 9, {"topics": [{"name": name}]}, label="a trial makes nothing")
        ask("right assignment", 3, name, assignments=[{"broker_ids": [1]}])
        ask("too few assignments", 6, name, assignments=[{"broker_ids": [1]}])
        ask("too many assignments", 4, name, assignments=[{"broker_ids": [1]}, {"broker_ids": [1]}])
        ask("no such broker", 4, name, assignments=[{"broker_ids": [9]}])
        ask("a broker twice", 4, name, assignments=[{"broker_ids": [1, 1]}])
        ask("more", 5, name)
        wire.ask(
            "metadata",
            9,
            {"topics": [{"name": name}]},
            settled=lambda answer: len(answer["topics"][0]["partitions"]) == 5,
        )
        wire.await_partition(name, 4)
        wire.produce(name, Batch(), partition=4)
    name = wire.topic("twice", 1)
    body = {"topics": [{"name": name, "count": 2, "assignments": None}] * 2, "timeout": 10_000}
    wire.ask("create_partitions", 3, body, label="the same topic twice")


def delete_records_at_every_version(wire: Wire) -> None:
    for version in range(3):
        name = wire.topic(f"trimmed-v{version}", 2)
        for _ in range(2):
            wire.produce(name, Batch([NewRecord(b"x") for _ in range(5)]))

        def ask(label: str, offset: int, of: str = name, partition: int = 0, at: int = version) -> None:
            partitions = [{"partition_index": partition, "offset": offset}]
            body = {"topics": [{"name": of, "partitions": partitions}], "timeout": 10_000}
            wire.ask("delete_records", at, body, label=label)

        ask("inside a batch", 3)
        wire.ask("list_offsets", 7, _earliest(name), label="the log starts there")
        ask("before the start", 2)
        ask("at the start", 3)
        ask("past the end", 11)
        ask("negative", -2)
        ask("unknown partition", 0, partition=7)
        ask("unknown topic", 0, of=wire.name("absent"))
        ask("an empty partition", 0, partition=1)
        ask("an empty partition, to the end", -1, partition=1)
        ask("to the end", -1)
        ask("to the end again", -1)
        wire.ask("list_offsets", 7, _earliest(name), label="all gone")
        wire.produce(name, Batch())
        wire.ask("list_offsets", 7, _earliest(name), label="offsets go on")
    kept = wire.topic("kept", configs={"cleanup.policy": "compact"})
    partitions = [{"partition_index": 0, "offset": 0}]
    body = {"topics": [{"name": kept, "partitions": partitions}], "timeout": 10_000}
    wire.ask("delete_records", 2, body, label="a topic that is only compacted")


def _earliest(name: str) -> Plain:
    return {
        "replica_id": -1,
        "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -2}]}],
    }


def describe_topic_partitions(wire: Wire) -> None:
    one, two = wire.topic("dtp-a", 3), wire.topic("dtp-b", 2)

    def ask(label: str, *names: str, limit: int = 2000, cursor: Plain | None = None) -> Plain:
        body = {"topics": [{"name": name} for name in names], "response_partition_limit": limit, "cursor": cursor}
        return wire.ask("describe_topic_partitions", 0, body, label=label)

    ask("both", one, two)
    ask("unknown", wire.name("absent"))
    ask("invalid name", "bad name")
    ask("one page of two partitions", one, two, limit=2)
    ask("the next page", one, two, limit=2, cursor={"topic_name": one, "partition_index": 2})
    ask("a cursor past the topics", one, cursor={"topic_name": two, "partition_index": 0})
    ask("the same name twice", one, one)


def _trim(name: str, *cuts: tuple[int, int]) -> Plain:
    partitions = [{"partition_index": index, "offset": offset} for index, offset in cuts]
    return {"topics": [{"name": name, "partitions": partitions}], "timeout": 10_000}


def odd_deletions_of_records(wire: Wire) -> None:
    name = wire.topic("cut", 2)
    wire.produce(name, Batch([NewRecord(b"x") for _ in range(5)]))
    wire.ask("delete_records", 2, _trim(name, (0, 2), (0, 4)), label="a partition twice")
    wire.ask("delete_records", 2, _trim(name, (0, 2), (5, 4), (1, 0)), label="one bad among good")
    both = _trim(name, (0, 3))
    both["topics"] += _trim(name, (1, 0))["topics"]
    wire.ask("delete_records", 2, both, label="a topic twice")
    wire.ask("delete_records", 2, _trim(name), label="no partition")
    wire.ask("delete_records", 2, {"topics": [], "timeout": 1}, label="nothing")
    wire.ask("delete_records", 2, _trim("bad name!", (0, 0)), label="an invalid name")
    wire.ask("delete_records", 2, _trim("", (0, 0)), label="an empty name")
    wire.ask("delete_records", 2, _trim(name, (0, -5), (-1, 0), (1, 2**63 - 1)), label="impossible numbers")
    wire.ask("delete_records", 2, {**_trim(name, (0, 5)), "timeout": -1}, label="no time at all")
    kept = wire.topic("cut-and-kept", configs={"cleanup.policy": "compact,delete"})
    wire.ask("delete_records", 2, _trim(kept, (0, 0)), label="compacted and deleted")
    free = wire.topic("cut-and-free", configs={"cleanup.policy": ""})
    wire.produce(free, Batch([NewRecord(b"x") for _ in range(5)]))
    wire.ask("delete_records", 2, _trim(free, (0, 3)), label="neither compacted nor deleted")


def odd_partitions(wire: Wire) -> None:
    one, two = wire.topic("odd-one"), wire.topic("odd-two")

    def ask(label: str, *topics: tuple[str, int, list[list[int]] | None], validate_only: bool = False) -> None:
        asked: list[Plain] = [{"name": name, "count": count, "assignments": None} for name, count, _ in topics]
        for entry, (_, _, brokers) in zip(asked, topics, strict=True):
            if brokers is not None:
                entry["assignments"] = [{"broker_ids": ids} for ids in brokers]
        body = {"topics": asked, "timeout": 10_000, "validate_only": validate_only}
        wire.ask("create_partitions", 3, body, label=label)

    ask("good and bad", (one, 2, None), (wire.name("absent"), 3, None), (two, 0, None))
    ask("nothing")
    ask("no broker", (two, 2, [[]]))
    ask("a negative broker", (two, 2, [[-1]]))
    ask("one broker too many", (two, 2, [[1, 2]]))
    ask("an assignment for no more", (two, 1, [[1]]))
    ask("an empty name", ("", 2, None))
    ask("a topic twice, and another", (one, 5, None), (one, 6, None), (two, 9, None), validate_only=True)


def pages_of_partitions(wire: Wire) -> None:
    three, two, one = wire.topic("page-a", 3), wire.topic("page-b", 2), wire.topic("page-c", 1)

    def ask(label: str, *names: str, limit: int = 100, cursor: tuple[str, int] | None = None) -> None:
        body: Plain = {"topics": [{"name": name} for name in names], "response_partition_limit": limit}
        body["cursor"] = cursor and {"topic_name": cursor[0], "partition_index": cursor[1]}
        wire.ask("describe_topic_partitions", 0, body, label=label)

    for limit in (1, 2, 3, 4, 5, 6, 7, 0, -1):
        ask(f"{limit} at a time", one, three, two, limit=limit)
    for index in (0, 1, 3, 99, -1):
        for limit in (2, 100):
            ask(f"from partition {index} on, {limit} at a time", two, three, one, limit=limit, cursor=(three, index))
    for name in (wire.name("page-aa"), wire.name("zz"), ""):
        ask("from a topic that is not there on", two, three, one, cursor=(name, 0))
    ask("from a topic that was not asked for on", two, cursor=(three, 1))
    ask("an unknown one among them", three, wire.name("page-ab"), two, limit=4)
    ask("an invalid one among them", three, "bad name!", two, limit=4)
    ask("from an unknown one on", wire.name("page-ab"), two, limit=4, cursor=(wire.name("page-ab"), 0))
