"""Produce: accepted and rejected batches, idempotence, and timestamp rules."""

import gzip
import time
from typing import Any

from tests.wire.entities import Plain
from tests.wire.record_batches import CODECS, Batch, NewRecord, old_message_set, varint
from tests.wire.transcript import Wire, fetch_body, produce_body

NOBODY = "00000000-0000-4000-8000-00000000dead"
LOG_APPEND_TIME = 8
TRANSACTIONAL = 16
CONTROL = 32


def _produce(wire: Wire, topic: str, *batches: Batch | bytes, label: str, version: int = 9, **more: Any) -> Plain:
    return wire.ask("produce", version, produce_body(topic, *batches, **more), label=label)


def _read(wire: Wire, topic: str, offset: int = 0, label: str = "read back") -> None:
    wire.ask("fetch", 11, fetch_body(topic, offset), label=label, keep=_records_only)


def _records_only(answer: Plain) -> Any:
    return [part["records"] for topic in answer["responses"] for part in topic["partitions"]]


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
    _read(wire, topic, 20)


def acknowledgements(wire: Wire) -> None:
    topic = wire.topic("acks")
    for acks in (2, -2, 32767):
        _produce(wire, topic, Batch(), acks=acks, label=f"acks={acks}")
        _produce(wire, topic, Batch(), acks=acks, partition=9, label=f"acks={acks}, unknown partition")
        _produce(wire, wire.name("absent"), Batch(), acks=acks, label=f"acks={acks}, unknown topic")
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
    _read(wire, topic)


def every_codec_passes_through(wire: Wire) -> None:
    topic = wire.topic("codecs")
    for codec in CODECS:
        records = [NewRecord(f"{codec} {i}".encode() * 20, key=f"k{i}".encode()) for i in range(3)]
        _produce(wire, topic, Batch(records, codec=codec), label=codec, version=9)
        _produce(wire, topic, Batch(records, codec=codec), label=f"{codec} before zstd was known", version=5)
    _read(wire, topic)


def zstd_before_it_was_known(wire: Wire) -> None:
    """Kafka checks the codec before the number of batches, the checksum and the records."""
    topic = wire.topic("early")
    good, plain = Batch(codec="zstd"), Batch()
    for version in (3, 6, 7):
        _produce(wire, topic, good, good, label="two zstd batches", version=version)
        _produce(wire, topic, good, plain, label="zstd, then none", version=version)
        _produce(wire, topic, plain, good, label="none, then zstd", version=version)
        _produce(wire, topic, Batch(codec="zstd", crc=1), label="zstd with a wrong CRC", version=version)
        _produce(wire, topic, Batch(codec="zstd", count=5), label="zstd with a wrong count", version=version)
        _produce(wire, topic, Batch(codec="zstd", magic=1), label="zstd with magic 1", version=version)
        _produce(wire, topic, Batch(codec="zstd", magic=3), label="zstd with magic 3", version=version)
        _produce(wire, topic, Batch(codec="zstd", length=10), label="zstd with a short length", version=version)
        _produce(wire, topic, good.encode()[:-3], label="zstd that is cut short", version=version)
        _produce(wire, topic, good.encode() + b"tail", label="zstd with bytes after it", version=version)
    data = [{"index": 0, "records": good.encode()}, {"index": 9, "records": good.encode()}]
    body = {"acks": -1, "timeout": 5000, "topic_data": [{"name": topic, "partition_data": data}]}
    wire.ask("produce", 5, body, label="one zstd batch for a partition that is not there")
    _read(wire, topic)


def what_a_record_may_hold(wire: Wire) -> None:
    topic = wire.topic("contents")
    records = [
        NewRecord(None),
        NewRecord(None, key=b"tombstone"),
        NewRecord(b"", key=b""),
        NewRecord(b"v", headers=(("h", b"1"), ("h", None), ("", b""))),
        NewRecord(bytes(range(256))),
    ]
    _produce(wire, topic, Batch(records), label="nulls, empties, headers and any byte")
    _read(wire, topic)
    _read(wire, topic, 3, "from the middle of the batch")


def several_batches_and_partitions(wire: Wire) -> None:
    topic = wire.topic("several", 2)
    _produce(wire, topic, Batch(), Batch(), label="two batches for one partition")
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
    _read(wire, topic)


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


def broken_batches(wire: Wire) -> None:
    good = Batch([NewRecord(b"a"), NewRecord(b"b")])
    raw = good.encode()
    cases: list[tuple[str, Batch | bytes]] = [
        ("wrong CRC", Batch(crc=12345)),
        ("magic 0", old_message_set(0)),
        ("magic 1", old_message_set(1)),
        ("magic 3", Batch(magic=3)),
        ("magic -1", Batch(magic=-1)),
        ("record count too high", Batch([NewRecord(b"a")], count=2)),
        ("record count too low", Batch([NewRecord(b"a"), NewRecord(b"b")], count=1)),
        ("record count zero", Batch([NewRecord(b"a")], count=0)),
        ("record count negative", Batch([NewRecord(b"a")], count=-1)),
        ("last offset delta too high", Batch([NewRecord(b"a")], last_offset_delta=5)),
        ("last offset delta too low", Batch([NewRecord(b"a"), NewRecord(b"b")], last_offset_delta=0)),
        ("last offset delta negative", Batch([NewRecord(b"a")], last_offset_delta=-1)),
        ("record offset deltas with a gap", Batch([NewRecord(b"a"), NewRecord(b"b", offset_delta=5)])),
        (
            "record offset deltas out of order",
            Batch([NewRecord(b"a", offset_delta=1), NewRecord(b"b", offset_delta=0)]),
        ),
        ("no records", Batch([])),
        ("empty bytes", b""),
        ("cut short", raw[:-3]),
        ("cut in the header", raw[:40]),
        ("a few bytes", raw[:5]),
        ("bytes after the batch", raw + b"tail"),
        ("length too small", Batch(length=10)),
        ("length negative", Batch(length=-1)),
        ("length too large", Batch(length=1_000_000)),
        ("base offset not zero", Batch(base_offset=77)),
        ("base offset negative", Batch(base_offset=-1)),
        ("a leader epoch", Batch(leader_epoch=9)),
        ("control batch", Batch(attributes=CONTROL)),
        ("transactional without an id", Batch(attributes=TRANSACTIONAL)),
        ("unknown codec 5", Batch(attributes=5)),
        ("unknown codec 7", Batch(attributes=7)),
        ("log append time from the client", Batch(attributes=LOG_APPEND_TIME)),
        ("unused attribute bits", Batch(attributes=0x4000)),
        ("max timestamp too low", Batch([NewRecord(b"a", timestamp=1_700_000_000_500)], max_timestamp=1)),
        ("max timestamp -1", Batch([NewRecord(b"a")], max_timestamp=-1)),
        ("record length past the end", Batch([NewRecord(b"a")], body=varint(500) + b"\x00\x00\x00\x01\x02a\x00")),
        ("record length negative", Batch([NewRecord(b"a")], body=varint(-1) + b"\x00\x00\x00\x01\x02a\x00")),
        ("bytes after the last record", Batch([NewRecord(b"a")], body=b"\x0e\x00\x00\x00\x01\x02a\x00" + b"junk")),
        ("gzip that is no gzip", Batch([NewRecord(b"a")], codec="gzip", body=b"not gzip at all")),
        ("snappy that is no snappy", Batch([NewRecord(b"a")], codec="snappy", body=b"not snappy")),
        ("lz4 that is no lz4", Batch([NewRecord(b"a")], codec="lz4", body=b"not lz4 at all")),
        ("zstd that is no zstd", Batch([NewRecord(b"a")], codec="zstd", body=b"not zstd at all")),
        ("good", good),
    ]
    # One partition per case, so that an accepted batch does not shift the offsets of the next case.
    topic = wire.topic("broken", len(cases))
    for partition, (label, batch) in enumerate(cases):
        _produce(wire, topic, batch, label=label, partition=partition)
    _produce(wire, topic, Batch(crc=12345), label="wrong CRC before record errors were reported", version=7)
    parts = [{"partition_index": partition, "timestamp": -1} for partition in range(len(cases))]
    latest = {"replica_id": -1, "topics": [{"name": topic, "partitions": parts}]}
    ends = wire.main.ask("list_offsets", 7, latest)["topics"][0]["partitions"]
    for part in sorted(ends, key=lambda end: int(end["partition_index"])):
        wire.note(
            "list_offsets", 7, {}, {"offset": part["offset"]}, f"the end after: {cases[part['partition_index']][0]}"
        )


def records_that_are_not_whole(wire: Wire) -> None:
    good = b"\x0c\x00\x00\x00\x01\x01\x00"
    bodies: dict[str, bytes] = {
        "good": good,
        "no number of headers behind a value": b"\x0c\x00\x00\x00\x00\x02\x00",
        "no number of headers behind a key": b"\x0c\x00\x00\x00\x02x\x01",
        "no number of headers behind a long time": b"\x0c\x00\xff\x00\x00\x00\x00",
        "no number of headers in the second": good + b"\x0c\x00\x00\x02\x00\x02\x00",
        "one header too few": b"\x0c\x00\x00\x00\x01\x01\x02",
        "a negative number of headers": b"\x0c\x00\x00\x00\x01\x01\x01",
        "a header without a key": b"\x10\x00\x00\x00\x01\x01\x02\x01\x01",
        "a header whose value is cut off": b"\x12\x00\x00\x00\x01\x01\x02\x02h\x04",
        "a value longer than its record": b"\x0e\x00\x00\x00\x01\x08x\x00",
        "a byte left over in the record": b"\x0e\x00\x00\x00\x01\x01\x00\x00",
        "numbers longer than they need be": b"\x12\x00\x80\x00\x80\x00\x01\x81\x00\x00",
        "a time of eleven bytes": b"\x20\x00" + b"\xff" * 10 + b"\x01\x00\x01\x01\x00",
    }
    for codec in ("none", "gzip"):
        topic = wire.topic(f"unwhole-{codec}", len(bodies))
        for partition, (label, body) in enumerate(bodies.items()):
            count = 2 if "second" in label else 1
            packed = body if codec == "none" else gzip.compress(body, mtime=0)
            batch = Batch([NewRecord(None)] * count, codec=codec, body=packed)
            _produce(wire, topic, batch, label=f"{codec}: {label}", partition=partition)


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
        _produce(wire, free, batch, label=label)
    own = wire.topic("time-own", configs={"message.timestamp.type": "LogAppendTime"})
    _produce(wire, own, Batch(one, base_timestamp=future, body=then), label="where the broker's time counts")


def _record(behind_attributes: bytes) -> bytes:
    return varint(1 + len(behind_attributes)) + b"\x00" + behind_attributes


def too_large(wire: Wire) -> None:
    topic = wire.topic("large", configs={"max.message.bytes": "1000"})
    for size in (900, 931, 932, 1000, 5000):
        _produce(wire, topic, Batch([NewRecord(b"x" * size)]), label=f"a value of {size} bytes where 1000 are allowed")
    _produce(wire, topic, Batch([NewRecord(b"x" * 5000)], codec="gzip"), label="5000 bytes that compress well")
    _produce(wire, topic, Batch([NewRecord(b"x" * 500)]), Batch([NewRecord(b"x" * 600)]), label="two that fit alone")
    usual = wire.topic("usual")
    _produce(wire, usual, Batch([NewRecord(b"x" * 1_048_500)]), label="1048500 bytes by default")
    _produce(wire, usual, Batch([NewRecord(b"x" * 1_048_588)]), label="1048588 bytes by default")


def timestamps_too_far_away(wire: Wire) -> None:
    now = int(time.time() * 1000)
    day = 24 * 3600 * 1000
    topic = wire.topic("times", configs={"message.timestamp.before.max.ms": "3600000"})
    _produce(wire, topic, Batch([NewRecord(b"x", timestamp=now)]), label="now")
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
        _produce(wire, topic, Batch(records), label="the broker's clock is the timestamp", version=version)
    _produce(wire, topic, Batch(records, codec="gzip"), label="compressed")
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
                _produce(wire, topic, batch, label=f"to a topic with {kind}, {codec}", version=version)
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
    _produce(wire, topic, Batch([NewRecord(b"x", key=b"k")]), label="with a key")
    for version in (7, 8, 9):
        _produce(wire, topic, Batch([NewRecord(b"x")]), label="without a key", version=version)
    two = [NewRecord(b"x", key=b"k"), NewRecord(b"x"), NewRecord(b"y")]
    _produce(wire, topic, Batch(two), label="one of three with a key")
    _produce(wire, topic, Batch(two, codec="gzip"), label="one of three with a key, compressed")
    both = wire.topic("both", configs={"cleanup.policy": "compact,delete"})
    _produce(wire, both, Batch([NewRecord(b"x")]), label="compacted and deleted, without a key")


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
    _produce(wire, name, Batch(), label="unknown topic")
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    wire.ask("metadata", 9, asked, label="still unknown")


def compression_of_the_topics_own(wire: Wire) -> None:
    topic = wire.topic("squeezed", configs={"compression.type": "gzip"})
    _produce(wire, topic, Batch([NewRecord(b"x" * 200), NewRecord(b"y" * 200)]), label="plain to a topic that is gzip")
    _produce(wire, topic, Batch([NewRecord(b"x" * 200)], codec="lz4"), label="lz4 to a topic that is gzip")
    _read(wire, topic, label="read from the gzip topic")
    plain = wire.topic("unsqueezed", configs={"compression.type": "uncompressed"})
    _produce(wire, plain, Batch([NewRecord(b"x" * 200)], codec="gzip"), label="gzip to a topic without compression")
    _read(wire, plain, label="read from the topic without compression")


def long_batches(wire: Wire) -> None:
    """The same faults as in broken_batches, in batches of two hundred records."""
    good = [NewRecord(f"value {i:04}".encode() * 3, key=f"{i:04}".encode()) for i in range(200)]
    gap = [*good[:150], NewRecord(b"late", offset_delta=170), *good[151:]]
    cases: list[tuple[str, Batch]] = []
    for codec in ("none", "gzip", "lz4"):
        cases += [
            (f"{codec}: good", Batch(good, codec=codec)),
            (f"{codec}: claims one more", Batch(good, codec=codec, count=201, last_offset_delta=200)),
            (f"{codec}: claims one less", Batch(good, codec=codec, count=199, last_offset_delta=198)),
            (f"{codec}: claims ten times as many", Batch(good, codec=codec, count=2000, last_offset_delta=1999)),
            (f"{codec}: count against offsets", Batch(good, codec=codec, count=201)),
            (f"{codec}: a gap", Batch(gap, codec=codec)),
        ]
    topic = wire.topic("long", len(cases))
    for partition, (label, batch) in enumerate(cases):
        _produce(wire, topic, batch, label=label, partition=partition)


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
