"""Produce: accepted and rejected batches, idempotence, and timestamp rules."""

import time
from typing import Any

from tests.wire.entities import Plain
from tests.wire.produce_steps import LOG_APPEND_TIME, produce_step, read_step
from tests.wire.record_batches import CODECS, Batch, NewRecord, varint
from tests.wire.transcript import Wire, fetch_body, produce_body

NOBODY = "00000000-0000-4000-8000-00000000dead"


def every_version(wire: Wire) -> None:
    topic = wire.topic("versions")
    topic_id = wire.topic_id(topic)
    for version in range(3, 14):
        for acks in (-1, 1):
            body = produce_body(topic, Batch(), topic_id=topic_id, acks=acks)
            wire.ask("produce", version, body, label=f"acks={acks}")
        absent = produce_body(wire.name("absent"), Batch(), topic_id=NOBODY)
        wire.ask("produce", version, absent, label="unknown topic")
        wire.ask("produce", version, produce_body(topic, Batch(), partition=9, topic_id=topic_id), label="partition 9")
        refused = produce_body(topic, Batch(crc=1), topic_id=topic_id)
        wire.ask("produce", version, refused, label="wrong CRC")
    read_step(wire, topic, 20)


def acknowledgements(wire: Wire) -> None:
    topic = wire.topic("acks")
    for acks in (2, -2, 32767):
        produce_step(wire, topic, Batch(), acks=acks, label=f"acks={acks}")
        produce_step(wire, topic, Batch(), acks=acks, partition=9, label=f"acks={acks}, unknown partition")
        produce_step(wire, wire.name("absent"), Batch(), acks=acks, label=f"acks={acks}, unknown topic")
    connection = wire.connect()
    connection.send("produce", 9, produce_body(topic, Batch([NewRecord(b"unanswered")]), acks=0), answered=False)
    latest = {"replica_id": -1, "topics": [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]}
    wire.ask(
        "list_offsets",
        7,
        latest,
        on=connection,
        label="acks=0 is not answered but appended",
        settled=lambda answer: answer["topics"][0]["partitions"][0]["offset"] == 1,
    )
    connection.send("produce", 9, produce_body(topic, Batch(crc=1), acks=0), answered=False)
    wire.ask("list_offsets", 7, latest, on=connection, label="after acks=0 of a bad batch")
    wire.ask("produce", 9, {"acks": -1, "timeout": 1000, "topic_data": []}, label="nothing to append")
    read_step(wire, topic)


def every_codec_passes_through(wire: Wire) -> None:
    topic = wire.topic("codecs")
    for codec in CODECS:
        records = [NewRecord(f"{codec} {i}".encode() * 20, key=f"k{i}".encode()) for i in range(3)]
        produce_step(wire, topic, Batch(records, codec=codec), label=codec, version=9)
        produce_step(wire, topic, Batch(records, codec=codec), label=f"{codec} before zstd was known", version=5)
    read_step(wire, topic)


def what_a_record_may_hold(wire: Wire) -> None:
    topic = wire.topic("contents")
    records = [
        NewRecord(None),
        NewRecord(None, key=b"tombstone"),
        NewRecord(b"", key=b""),
        NewRecord(b"v", headers=(("h", b"1"), ("h", None), ("", b""))),
        NewRecord(bytes(range(256))),
    ]
    produce_step(wire, topic, Batch(records), label="nulls, empties, headers and any byte")
    read_step(wire, topic)
    read_step(wire, topic, 3, "from the middle of the batch")


def several_batches_and_partitions(wire: Wire) -> None:
    topic = wire.topic("several", 2)
    produce_step(wire, topic, Batch(), Batch(), label="two batches for one partition")
    data = [
        {"index": 0, "records": Batch().encode()},
        {"index": 1, "records": Batch().encode()},
        {"index": 7, "records": Batch().encode()},
        {"index": 1, "records": Batch(crc=5).encode()},
    ]
    body = {"acks": -1, "timeout": 5000, "topic_data": [{"name": topic, "partition_data": data[:3]}]}
    wire.ask("produce", 9, body, label="one bad partition among good")
    body = {"acks": -1, "timeout": 5000, "topic_data": [{"name": topic, "partition_data": [data[1], data[3]]}]}
    wire.ask("produce", 9, body, label="the same partition twice")
    read_step(wire, topic)


def what_is_named_twice(wire: Wire) -> None:
    """The response contains each topic and partition once. Kafka appends only the last batch for a partition."""
    for version in (7, 9, 13):
        names = {part: wire.topic(f"twice-{part}{version}", 2) for part in ("a", "b")}
        ids = {part: wire.topic_id(name) for part, name in names.items()}
        names["x"], ids["x"] = wire.name("absent"), NOBODY

        def data(
            part: str, *batches: tuple[int, bytes], names: dict[str, str] = names, ids: dict[str, str] = ids
        ) -> Plain:
            made = [{"index": index, "records": Batch([NewRecord(value)]).encode()} for index, value in batches]
            return {"name": names[part], "topic_id": ids[part], "partition_data": made}

        for label, topics in {
            "a topic, another, the first again": (data("a", (0, b"1")), data("b", (0, b"1")), data("a", (1, b"1"))),
            "a partition twice": (data("a", (0, b"lost"), (0, b"kept")),),
            "a partition in a topic named twice": (data("a", (0, b"lost")), data("b"), data("a", (0, b"kept"))),
            "an unknown partition twice": (data("a", (9, b"")), data("a", (0, b"3"), (9, b""))),
            "an unknown topic twice": (data("x", (0, b"")), data("a", (0, b"4")), data("x", (0, b""), (1, b""))),
            "no partition": (data("a"), data("b", (0, b"2"))),
            "nothing but no partition": (data("a"),),
        }.items():
            body = {"acks": -1, "timeout": 5000, "topic_data": list(topics)}
            wire.ask("produce", version, body, label=label)
        wire.ask("fetch", 11, fetch_body(names["a"], 0), label=f"what v{version} appended", keep=_values)


def times_that_only_records_tell(wire: Wire) -> None:
    free = wire.topic("time-free")
    future = 1_700_000_000_000 + 100 * 365 * 24 * 3_600_000
    then = _record(b"\x00\x00\x01\x01\x00")
    one = [NewRecord(None)]
    for label, batch in {
        "the first time is far ahead, and so is the record's": Batch(one, base_timestamp=future, body=then),
        "nothing is told of the last": Batch(one, base_timestamp=future, max_timestamp=-1, body=then),
        "the first time is far ahead, the record's is not": Batch(one, base_timestamp=future),
        "there is no first time": Batch(one, base_timestamp=-1),
        "neither first nor last": Batch(one, base_timestamp=-1, max_timestamp=-1, body=then),
    }.items():
        produce_step(wire, free, batch, label=label)
    own = wire.topic("time-own", configs={"message.timestamp.type": "LogAppendTime"})
    produce_step(wire, own, Batch(one, base_timestamp=future, body=then), label="where the broker's time counts")


def _record(behind_attributes: bytes) -> bytes:
    return varint(1 + len(behind_attributes)) + b"\x00" + behind_attributes


def timestamps_too_far_away(wire: Wire) -> None:
    now = int(time.time() * 1000)
    day = 24 * 3600 * 1000
    topic = wire.topic("times", configs={"message.timestamp.before.max.ms": "3600000"})
    produce_step(wire, topic, Batch([NewRecord(b"x", timestamp=now)]), label="now")
    _far(wire, topic, now - 2 * day, "two days old where an hour is allowed")
    _far(wire, topic, now + 2 * day, "in two days where an hour is the default")
    _far(wire, topic, -1, "no timestamp")
    mixed = Batch([NewRecord(b"x", timestamp=now), NewRecord(b"old", timestamp=now - 2 * day)])
    answer = wire.main.ask("produce", 9, produce_body(topic, mixed))
    wire.note("produce", 9, {}, answer, "one record too old among two")
    free = wire.topic("free")
    _far(wire, free, now + 2 * day, "in two days, by default")
    _far(wire, free, 0, "1970, by default")
    _far(wire, free, -1, "no timestamp, by default")
    _far(wire, free, -5, "a negative timestamp, by default")
    future = wire.topic("future", configs={"message.timestamp.after.max.ms": str(10 * day)})
    _far(wire, future, now + 2 * day, "in two days where ten are allowed")


def _far(wire: Wire, topic: str, timestamp: int, label: str) -> None:
    body = produce_body(topic, Batch([NewRecord(b"x", timestamp=timestamp)]))
    answer = wire.main.ask("produce", 9, body)
    # The request contains the current time, so record only the response.
    wire.note("produce", 9, {}, answer, label)


def log_append_time(wire: Wire) -> None:
    topic = wire.topic("appended", configs={"message.timestamp.type": "LogAppendTime"})
    records = [NewRecord(b"a", timestamp=5), NewRecord(b"b", timestamp=10)]
    for version in (3, 7, 9):
        produce_step(wire, topic, Batch(records), label="the broker's clock is the timestamp", version=version)
    produce_step(wire, topic, Batch(records, codec="gzip"), label="compressed")
    wire.ask("fetch", 11, fetch_body(topic, 0), keep=_batch_times, label="what consumers see")
    by_time = {"replica_id": -1, "topics": [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": 7}]}]}
    wire.ask("list_offsets", 7, by_time, label="all were appended after time 7")


def log_append_time_that_the_client_claims(wire: Wire) -> None:
    records = [NewRecord(b"a", timestamp=5), NewRecord(b"b", timestamp=10)]
    for kind in ("LogAppendTime", "CreateTime"):
        topic = wire.topic(f"claimed-{kind}", configs={"message.timestamp.type": kind})
        for codec in ("none", "gzip"):
            batch = Batch(records, codec=codec, attributes=LOG_APPEND_TIME)
            for version in (7, 9):
                produce_step(wire, topic, batch, label=f"to a topic with {kind}, {codec}", version=version)
        wire.ask("fetch", 11, fetch_body(topic, 0), keep=_batch_times, label=f"read from the topic with {kind}")
        part = {"partition_index": 0, "timestamp": 7}
        body = {"replica_id": -1, "topics": [{"name": topic, "partitions": [part]}]}
        wire.ask("list_offsets", 7, body, label=f"time 7 in the topic with {kind}")


def _batch_times(answer: Plain) -> Any:
    batches = answer["responses"][0]["partitions"][0]["records"]
    return [
        {
            name: batch[name]
            for name in ("base_offset", "timestamp_type", "base_timestamp", "max_timestamp", "crc_is_right")
        }
        for batch in batches
    ]


def keyless_records_on_a_compacted_topic(wire: Wire) -> None:
    topic = wire.topic("compacted", configs={"cleanup.policy": "compact"})
    produce_step(wire, topic, Batch([NewRecord(b"x", key=b"k")]), label="with a key")
    for version in (7, 8, 9):
        produce_step(wire, topic, Batch([NewRecord(b"x")]), label="without a key", version=version)
    two = [NewRecord(b"x", key=b"k"), NewRecord(b"x"), NewRecord(b"y")]
    produce_step(wire, topic, Batch(two), label="one of three with a key")
    produce_step(wire, topic, Batch(two, codec="gzip"), label="one of three with a key, compressed")
    both = wire.topic("both", configs={"cleanup.policy": "compact,delete"})
    produce_step(wire, both, Batch([NewRecord(b"x")]), label="compacted and deleted, without a key")


def topic_names_and_ids(wire: Wire) -> None:
    topic = wire.topic("named")
    topic_id = wire.topic_id(topic)
    wire.ask("produce", 13, produce_body(topic, Batch(), topic_id=topic_id), label="by id")
    wire.ask("produce", 13, produce_body(topic, Batch(), topic_id=NOBODY), label="unknown id")
    wire.ask("produce", 13, produce_body(topic, Batch()), label="no id")
    wire.ask("produce", 9, produce_body("bad name", Batch()), label="invalid name")
    wire.ask("produce", 9, produce_body("", Batch()), label="empty name")
    wire.ask("produce", 9, produce_body(topic, Batch(), partition=-1), label="partition -1")


def a_topic_is_not_made_by_producing(wire: Wire) -> None:
    name = wire.name("not-made")
    produce_step(wire, name, Batch(), label="unknown topic")
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    wire.ask("metadata", 9, asked, label="still unknown")


def compression_of_the_topics_own(wire: Wire) -> None:
    topic = wire.topic("squeezed", configs={"compression.type": "gzip"})
    produce_step(
        wire, topic, Batch([NewRecord(b"x" * 200), NewRecord(b"y" * 200)]), label="plain to a topic that is gzip"
    )
    produce_step(wire, topic, Batch([NewRecord(b"x" * 200)], codec="lz4"), label="lz4 to a topic that is gzip")
    read_step(wire, topic, label="read from the gzip topic")
    plain = wire.topic("unsqueezed", configs={"compression.type": "uncompressed"})
    produce_step(wire, plain, Batch([NewRecord(b"x" * 200)], codec="gzip"), label="gzip to a topic without compression")
    read_step(wire, plain, label="read from the topic without compression")


def produce_requests_in_a_row(wire: Wire) -> None:
    topic = wire.topic("row")
    connection = wire.connect()
    for i in range(30):
        connection.send("produce", 9, produce_body(topic, Batch([NewRecord(f"{i}".encode())]), acks=-1 if i % 2 else 1))
    offsets = [connection.receive()["responses"][0]["partition_responses"][0]["base_offset"] for _ in range(30)]
    wire.note("produce", 9, {}, {"records": offsets}, "thirty sent before the first answer is read")
    wire.ask("fetch", 11, fetch_body(topic, 0), label="in the order sent", keep=_values)


def _values(answer: Plain) -> Any:
    batches = answer["responses"][0]["partitions"][0]["records"]
    return {"records": [record["value"] for batch in batches for record in batch["records"]]}
