"""Batches with false headers: the broker rejects them with a Kafka error, or every consumer can read them."""

import asyncio
import struct
from typing import Any

import cramjam
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import Consumer, TopicPartition
from crc32c import crc32c

from tests.hostile.broker.witness import create_topic, fetch, produce, resident_bytes
from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import CODECS, LZ4_FRAME_HEADER, Batch, NewRecord, old_message_set

PLAIN, COMPACTED = "batches", "batches-compacted"
INT64_MAX, INT64_MIN, INT32_MAX = 2**63 - 1, -(2**63), 2**31 - 1
REFUSALS = {
    "CORRUPT_MESSAGE", "INVALID_RECORD", "INVALID_TIMESTAMP", "MESSAGE_TOO_LARGE", "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "UNSUPPORTED_COMPRESSION_TYPE",
}  # fmt: skip
NOW = 1_700_000_000_000


def record(
    offset_delta: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    headers: bytes = b"\x00",
    timestamp: bytes = b"\x00",
    length: bytes | None = None,
) -> bytes:
    """Encode a record by hand. All numbers are zigzag varints, as in the wire format."""
    inner = b"\x00" + timestamp + offset_delta + key + value + headers
    return (bytes([2 * len(inner)]) if length is None else length) + inner


MANY_BYTES = b"\xff" * 10 + b"\x01"
WRONG: dict[str, Batch | bytes] = {
    "wrong crc": Batch(crc=1),
    "no records": Batch([], last_offset_delta=0, count=0),
    "negative count": Batch(count=-1),
    "largest count": Batch(count=INT32_MAX, last_offset_delta=INT32_MAX - 1),
    "largest count, compressed": Batch(count=INT32_MAX, last_offset_delta=INT32_MAX - 1, codec="zstd"),
    "count below": Batch([NewRecord(b"a"), NewRecord(b"b")], count=1, last_offset_delta=0),
    "count above": Batch(count=2, last_offset_delta=1),
    "negative last delta": Batch(last_offset_delta=-1),
    "last delta apart from count": Batch(last_offset_delta=5),
    "delta out of order": Batch(body=record(offset_delta=b"\x02")),
    "negative delta": Batch(body=record(offset_delta=b"\x01")),
    "delta of eleven bytes": Batch(body=record(offset_delta=MANY_BYTES)),
    "timestamp of eleven bytes": Batch(body=record(timestamp=MANY_BYTES)),
    "negative record length": Batch(body=record(length=b"\x0d")),
    "record length zero": Batch(body=record(length=b"\x00")),
    "record length beyond": Batch(body=record(length=b"\x7e")),
    "record length of eleven bytes": Batch(body=record(length=MANY_BYTES)),
    "key length beyond": Batch(body=record(key=b"\x7ek")),
    "value length beyond": Batch(body=record(value=b"\x7ev")),
    "value length largest": Batch(body=record(value=b"\xfe\xff\xff\xff\x0fv")),
    "headers that are not there": Batch(body=record(headers=b"\x04")),
    "largest header count": Batch(body=record(headers=b"\xfe\xff\xff\xff\x0f")),
    "negative header count": Batch(body=record(headers=b"\x01")),
    "header without a key": Batch(body=record(headers=b"\x02\x01\x00")),
    "header value beyond": Batch(body=record(headers=b"\x02\x02h\x7e")),
    "bytes after the records": Batch(body=record() + b"\x00\x00"),
    "negative length": Batch(length=-1),
    "length zero": Batch(length=0),
    "largest length": Batch(length=INT32_MAX),
    "magic 0": old_message_set(0),
    "magic 1": old_message_set(1),
    "magic 0 in a v2 header": Batch(magic=0),
    "magic 1 in a v2 header": Batch(magic=1),
    "magic 3": Batch(magic=3),
    "magic -1": Batch(magic=-1),
    "all attributes": Batch(attributes=-1),
    "codec 5": Batch(attributes=5),
    "codec 7": Batch(attributes=7),
    "control": Batch(attributes=0x20),
    "transactional": Batch(attributes=0x10, producer_id=1, producer_epoch=0, base_sequence=0),
    "sequence -1 of a producer": Batch(producer_id=1, producer_epoch=0, base_sequence=-1),
    "base offset": Batch(base_offset=INT64_MAX),
    "nothing": b"",
    "one byte": b"\x00",
    "a header and no more": Batch().encode()[:60],
    "two batches": Batch().encode() * 2,
    **{f"garbage as {codec}": Batch(codec=codec, body=b"\xde\xad\xbe\xef" * 8) for codec in CODECS if codec != "none"},
    **{f"nothing as {codec}": Batch(codec=codec, body=b"") for codec in CODECS if codec != "none"},
}


@pytest.fixture
def connection(attacked: HeadgateBroker) -> Any:
    with RawConnection(attacked.address, 60) as opened:
        create_topic(opened, PLAIN, message_timestamp_after_max_ms=str(INT64_MAX))
        create_topic(opened, COMPACTED, cleanup_policy="compact")
        yield opened


@pytest.mark.parametrize("topic", [PLAIN, COMPACTED])
def test_a_batch_that_lies_is_refused_with_an_error(connection: RawConnection, topic: str) -> None:
    taken = {}
    for name, batch in WRONG.items():
        answer = produce(connection, topic, batch.encode() if isinstance(batch, Batch) else batch)
        if answer["error_code"] not in REFUSALS:
            taken[name] = answer["error_code"]
    assert taken == {}


def zigzag(number: int) -> bytes:
    value = number << 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def bomb(codec: str, inflated_bytes: int, count: int = 1) -> bytes:
    """Return a batch of zeros that decompresses to about `inflated_bytes` bytes."""
    each = inflated_bytes // count
    records = []
    for index in range(count):
        inner = b"\x00\x00" + zigzag(index) + b"\x02k" + zigzag(each) + bytes(each) + b"\x00"
        records.append(zigzag(len(inner)) + inner)
    plain = b"".join(records)
    match codec:
        case "gzip":
            body = bytes(cramjam.gzip.compress(plain))
        case "zstd":
            body = bytes(cramjam.zstd.compress(plain))
        case "lz4":
            body = LZ4_FRAME_HEADER
            for start in range(0, len(plain), 65536):
                block = bytes(cramjam.lz4.compress_block(plain[start : start + 65536], store_size=False))
                body += struct.pack("<I", len(block)) + block
            body += bytes(4)
        case _:
            body = bytes(cramjam.snappy.compress_raw(plain))
    return Batch([NewRecord(b"")] * count, codec, body=body, max_timestamp=NOW + 10).encode()


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_bombs_cost_bounded_memory(attacked: HeadgateBroker, connection: RawConnection, codec: str) -> None:
    # Snappy compresses zeros to only a twentieth, so its bombs are small.
    megabytes = 12 if codec == "snappy" else 150
    expected = {"NONE"} if codec == "snappy" else {"INVALID_RECORD", "MESSAGE_TOO_LARGE"}
    many, few = bomb(codec, megabytes << 20, 40), bomb(codec, 8 << 20, 1)
    for _ in range(3):
        assert produce(connection, COMPACTED, many)["error_code"] in expected
        assert produce(connection, PLAIN, many)["error_code"] in {"NONE", "MESSAGE_TOO_LARGE"}
        assert produce(connection, PLAIN, few)["error_code"] == "NONE"
    # The headers claim a timestamp that no record has, so each lookup would scan all batches.
    for timestamp in (NOW + 1, NOW + 10, -3):
        asked = {"name": PLAIN, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        answer = connection.ask("list_offsets", 7, {"topics": [asked]})["topics"][0]["partitions"][0]
        assert answer["error_code"] == "NONE"
    assert resident_bytes(attacked) < 700 * 1024 * 1024


def test_extremes_that_are_allowed_are_read_by_real_consumers(
    attacked: HeadgateBroker, connection: RawConnection
) -> None:
    create_topic(connection, "extremes", message_timestamp_after_max_ms=str(INT64_MAX))
    edges = [
        Batch(base_timestamp=0, max_timestamp=0),
        Batch(base_timestamp=-1, max_timestamp=-1),
        Batch(base_timestamp=INT64_MAX - 10, max_timestamp=INT64_MAX - 10, body=record()),
        Batch(max_timestamp=INT64_MIN),
        Batch(leader_epoch=INT32_MAX),
        Batch(producer_id=INT64_MAX, producer_epoch=32767, base_sequence=INT32_MAX),
        Batch(producer_id=INT64_MAX, producer_epoch=32767, base_sequence=0),
        Batch(producer_id=0, producer_epoch=0, base_sequence=5),
        Batch(producer_id=-1, producer_epoch=-1, base_sequence=7),
        Batch([NewRecord(None, None)]),
        Batch([NewRecord(b"", b"", (("", None), ("h", b"")))]),
        Batch([NewRecord(b"v")] * 33),
        *(Batch([NewRecord(b"v")] * 5, codec) for codec in CODECS),
    ]
    accepted = 0
    for batch in edges:
        answer = produce(connection, "extremes", batch.encode())
        assert answer["error_code"] in {"NONE", *REFUSALS}, batch
        accepted += len(batch.records) if answer["error_code"] == "NONE" else 0
    assert accepted >= 60
    assert len(consumed(attacked, "extremes", accepted)) == accepted
    assert len(asyncio.run(consumed_by_aiokafka(attacked, "extremes", accepted))) == accepted


async def consumed_by_aiokafka(broker: HeadgateBroker, topic: str, count: int) -> list[int]:
    # The library has no type annotations.
    untyped: Any = AIOKafkaConsumer
    consumer = untyped(bootstrap_servers=broker.address, auto_offset_reset="earliest", check_crcs=True)
    await consumer.start()
    try:
        partition = AiokafkaPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        return [(await asyncio.wait_for(consumer.getone(), 20)).offset for _ in range(count)]
    finally:
        await consumer.stop()


def consumed(broker: HeadgateBroker, topic: str, count: int) -> list[int]:
    consumer = Consumer({
        "bootstrap.servers": broker.address, "group.id": "reader", "enable.auto.commit": False, "check.crcs": True,
        "auto.offset.reset": "error",
    })  # fmt: skip
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        offsets: list[int] = []
        while len(offsets) < count:
            messages = consumer.consume(count - len(offsets), timeout=20)
            assert messages, f"{len(offsets)} of {count} records came"
            for message in messages:
                assert message.error() is None, message.error()
                offsets.append(message.offset() or 0)
        return offsets
    finally:
        consumer.close()


def test_a_header_that_claims_a_time_to_come_is_refused(connection: RawConnection) -> None:
    """A future timestamp would exempt the segment from time-based retention."""
    create_topic(connection, "future")
    answer = produce(connection, "future", Batch(max_timestamp=INT64_MAX - 1).encode())
    assert answer["error_code"] == "INVALID_TIMESTAMP"


def test_an_opaque_batch_of_garbage_harms_no_lookup(attacked: HeadgateBroker, connection: RawConnection) -> None:
    """The broker stores large compressed batches unparsed. Invalid content must not affect other batches."""
    create_topic(connection, "opaque")
    garbage = Batch([NewRecord(b"")] * 100, "zstd", body=b"\xab" * 5000)
    raw = bytearray(garbage.encode())
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    assert produce(connection, "opaque", bytes(raw))["error_code"] == "NONE"
    assert produce(connection, "opaque", Batch([NewRecord(b"behind")]).encode())["base_offset"] == 100
    for timestamp in (0, NOW, -3, -1, -2):
        asked = {"name": "opaque", "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        answer = connection.ask("list_offsets", 7, {"topics": [asked]})["topics"][0]["partitions"][0]
        assert answer["error_code"] == "NONE"
    behind = fetch(connection, "opaque", 100)["records"]
    assert isinstance(behind, list)
    assert behind[0]["base_offset"] == 100
