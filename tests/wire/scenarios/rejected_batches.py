"""Batches that Kafka rejects for their format, codec or size."""

import gzip

from tests.wire.produce_steps import LOG_APPEND_TIME, produce_step, read_step
from tests.wire.record_batches import Batch, NewRecord, old_message_set, varint
from tests.wire.transcript import Wire

TRANSACTIONAL = 16
CONTROL = 32


def zstd_before_it_was_known(wire: Wire) -> None:
    """Kafka checks the codec before the number of batches, the checksum and the records."""
    topic = wire.topic("early")
    good, plain = Batch(codec="zstd"), Batch()
    for version in (3, 6, 7):
        produce_step(wire, topic, good, good, label="two zstd batches", version=version)
        produce_step(wire, topic, good, plain, label="zstd, then none", version=version)
        produce_step(wire, topic, plain, good, label="none, then zstd", version=version)
        produce_step(wire, topic, Batch(codec="zstd", crc=1), label="zstd with a wrong CRC", version=version)
        produce_step(wire, topic, Batch(codec="zstd", count=5), label="zstd with a wrong count", version=version)
        produce_step(wire, topic, Batch(codec="zstd", magic=1), label="zstd with magic 1", version=version)
        produce_step(wire, topic, Batch(codec="zstd", magic=3), label="zstd with magic 3", version=version)
        produce_step(wire, topic, Batch(codec="zstd", length=10), label="zstd with a short length", version=version)
        produce_step(wire, topic, good.encode()[:-3], label="zstd that is cut short", version=version)
        produce_step(wire, topic, good.encode() + b"tail", label="zstd with bytes after it", version=version)
    data = [{"index": 0, "records": good.encode()}, {"index": 9, "records": good.encode()}]
    body = {"acks": -1, "timeout": 5000, "topic_data": [{"name": topic, "partition_data": data}]}
    wire.ask("produce", 5, body, label="one zstd batch for a partition that is not there")
    read_step(wire, topic)


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
        produce_step(wire, topic, batch, label=label, partition=partition)
    produce_step(wire, topic, Batch(crc=12345), label="wrong CRC before record errors were reported", version=7)
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
            produce_step(wire, topic, batch, label=f"{codec}: {label}", partition=partition)


def too_large(wire: Wire) -> None:
    topic = wire.topic("large", configs={"max.message.bytes": "1000"})
    for size in (900, 931, 932, 1000, 5000):
        produce_step(
            wire, topic, Batch([NewRecord(b"x" * size)]), label=f"a value of {size} bytes where 1000 are allowed"
        )
    produce_step(wire, topic, Batch([NewRecord(b"x" * 5000)], codec="gzip"), label="5000 bytes that compress well")
    produce_step(
        wire, topic, Batch([NewRecord(b"x" * 500)]), Batch([NewRecord(b"x" * 600)]), label="two that fit alone"
    )
    usual = wire.topic("usual")
    produce_step(wire, usual, Batch([NewRecord(b"x" * 1_048_500)]), label="1048500 bytes by default")
    produce_step(wire, usual, Batch([NewRecord(b"x" * 1_048_588)]), label="1048588 bytes by default")


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
        produce_step(wire, topic, batch, label=label, partition=partition)
