"""The fast path of rows, compared with the rendering of each record: both return the same bytes."""

import asyncio
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest
from crc32c import crc32c

from headgate.kafka_client.errors import BrokerError
from headgate.kafka_client.fetch import Fetched, Isolation
from headgate.proxy.reading import rows
from headgate.proxy.reading.batches import LIST_RECORDS_MAX, Chunk, ParsedRecord, in_lists, parse, record_lists, records
from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.proxy.reading.payloads import KafkaRecord, Payloads, UnreadableRecord
from headgate.proxy.reading.rows import SLICE_BYTES_MAX, V2_ROWS, V3_ROWS, Row, Rows, Shape, make_rows
from headgate.serdes import AsyncRegistryClient, RegistrySettings
from headgate.serdes.framing import frame
from headgate.wire.expansion import Unreadable, UnreadableReason
from tests.wire.record_batches import Batch, NewRecord

SCHEMA_ID = 7
TOPIC = "100%s%d"
"""Kafka rejects this name. A template must not interpret it."""
GOOD: Final = (
    b'{"id":1}',
    b"[1, 2.5e3]",
    b'"text"',
    b"null",
    b" true ",
    b"-0",
    b"12345678901234567890123",
    '"é"'.encode(),
)
HOSTILE: Final = (
    # Valid only between two other values.
    *(b"1,2", b"[1", b"2]", b'{"a":1', b'"b":2}', b'"x', b'y"', b"1 2", b"1\n2", b",", b"[", b"]", b'"', b"\\"),
    *(b"", b" ", b"\n", b"\r", b"{\n}", b"[1,\r\n2]", b"\x00", b"\x00\x00\x00\x00\x07", b"\xef\xbb\xbf1"),
    *(b"1e999", b"-1E+400", b"1" * 400, b"[1e999]", b"1e-999", b"NaN", b"Infinity", b"01", b"+1", b".5", b"1."),
    *(b'"\xff"', b'{"\xc3":1}', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\x"', b'"\x01"', b"\xff", b"plain text", b"%s%d%"),
    *(b"[" * 1023 + b"]" * 1023, b"[" * 1025 + b"]" * 1025, frame(SCHEMA_ID, b"\x02a"), frame(SCHEMA_ID, b"\xff")),
    *(frame(SCHEMA_ID + 1, b"\x02a"), b"x" * 5000, b'{"e":"' + b"x" * 5000 + b'"}', '"\\u00e9 \\" \u2028"'.encode()),
)
ENCODED: Final = (frame(SCHEMA_ID, b"\x02a"), frame(SCHEMA_ID, b"\x00"), frame(SCHEMA_ID, b"\x04\xc3\xa9"))


def render(shape: Shape, kind: ReadFormat, lists: Sequence[Sequence[KafkaRecord]]) -> Rows:
    def registry(request: httpx.Request) -> httpx.Response:
        if request.url.path == f"/schemas/ids/{SCHEMA_ID}":
            return httpx.Response(200, json={"schema": '"string"'})
        return httpx.Response(404, json={"error_code": 40403, "message": "Schema not found"})

    async def make() -> Rows:
        client = AsyncRegistryClient(RegistrySettings(("http://registry",)), transport=httpx.MockTransport(registry))
        try:
            payloads, formats = Payloads(client), Formats(kind, kind)
            warm = ParsedRecord(0, 0, ENCODED[0], ENCODED[0], [])
            await make_rows(payloads, formats, shape, TOPIC, 3, [[warm]])  # Loads the schema.
            return await make_rows(payloads, formats, shape, TOPIC, 3, lists)
        finally:
            await client.close()

    return asyncio.run(make())


def render_each(shape: Shape, kind: ReadFormat, lists: Sequence[Sequence[KafkaRecord]]) -> Rows:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "read_fields", lambda *_: None)
        return render(shape, kind, lists)


def text(row: Row) -> bytes:
    return row if isinstance(row, bytes) else b"poison: " + row.row


def assert_same(shape: Shape, kind: ReadFormat, lists: Sequence[Sequence[KafkaRecord]]) -> None:
    fast, slow = render(shape, kind, lists), render_each(shape, kind, lists)
    assert fast.offsets == slow.offsets == [record.offset for taken in lists for record in taken]
    assert list(map(text, fast.rows)) == list(map(text, slow.rows))
    assert not any(b"\n" in text(row) or b"\r" in text(row) for row in fast.rows)


@dataclass(frozen=True, slots=True)
class Mix:
    """Payloads of one list of records."""

    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: int = 0
    """Percentage of the records with headers."""


MIXES: Final = {
    "good values": Mix([None], GOOD),
    "good keys": Mix(GOOD, GOOD),
    "encoded": Mix([None], ENCODED),
    "one key": Mix([None, None, b"1"], GOOD),
    "null values": Mix([None], [*GOOD, None]),
    "headers": Mix([None], GOOD, headers=5),
    "hostile values": Mix([None], HOSTILE),
    "hostile keys": Mix(HOSTILE, GOOD),
    "everything": Mix([*GOOD, *HOSTILE, None], [*GOOD, *HOSTILE, *ENCODED, None], headers=20),
}


def some_records(random_source: random.Random, mix: Mix, first_offset: int) -> list[KafkaRecord]:
    found: list[KafkaRecord] = []
    offset = first_offset
    for _ in range(random_source.choice([1, 2, 30])):
        key, value = random_source.choice(mix.keys), random_source.choice(mix.values)
        moment = random_source.choice([-1, 0, 999, 1_700_000_000_000 + random_source.randrange(5_000), 2**62])
        headers = [("h", b"1"), ("n", None)] if random_source.randrange(100) < mix.headers else []
        found.append(ParsedRecord(offset, moment, key, value, headers))
        offset += random_source.choice([1, 1, 1, 1000])  # Compaction leaves gaps.
    return found


@pytest.mark.parametrize("shape", [V2_ROWS, V3_ROWS], ids=["v2", "v3"])
@pytest.mark.parametrize("kind", list(ReadFormat))
@pytest.mark.parametrize("name", list(MIXES))
def test_both_ways_return_the_same_rows(name: str, kind: ReadFormat, shape: Shape) -> None:
    random_source = random.Random(f"{name} {kind}")
    lists = [some_records(random_source, MIXES[name], 100_000 * number) for number in range(12)]
    assert_same(shape, kind, lists)


@pytest.mark.parametrize("shape", [V2_ROWS, V3_ROWS], ids=["v2", "v3"])
@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_value_does_not_change_the_rows_around_it(shape: Shape, payload: bytes) -> None:
    for hostile in ([payload], [b"1", payload, b"2"], [b"[1", payload, b"2]"], [b'"a', payload, b'b"']):
        taken = [ParsedRecord(offset, 0, None, value, []) for offset, value in enumerate(hostile)]
        for kind in (ReadFormat.JSON, ReadFormat.AUTO):
            assert_same(shape, kind, [taken])


@pytest.mark.parametrize("shape", [V2_ROWS, V3_ROWS], ids=["v2", "v3"])
@pytest.mark.parametrize(
    ("kind", "payloads"),
    [
        (ReadFormat.JSON, GOOD),
        (ReadFormat.AUTO, GOOD),
        (ReadFormat.AUTO, (b"plain text", b"1", b"\xff")),
        (ReadFormat.STRING, (b"plain text", b'"\n')),
        (ReadFormat.BINARY, HOSTILE),
        (ReadFormat.AVRO, ENCODED),
    ],
)
def test_readable_records_take_the_fast_path(shape: Shape, kind: ReadFormat, payloads: Sequence[bytes]) -> None:
    for keys in (payloads, [None] * len(payloads)):
        taken = [
            ParsedRecord(at, at, key, value, []) for at, (key, value) in enumerate(zip(keys, payloads, strict=True))
        ]
        made = render(shape, kind, [taken])
        assert made.texts is not None
        assert len(made.texts) == 1
        assert made.texts[0].count(b"\n") == len(payloads) == len(made.rows)


def test_large_payloads_are_rendered_in_several_time_slices() -> None:
    large = b'"' + b"x" * (SLICE_BYTES_MAX // 4) + b'"'
    taken = [ParsedRecord(offset, 0, None, large, []) for offset in range(6)]
    made = render(V3_ROWS, ReadFormat.JSON, [taken])
    assert made.texts is None
    assert len(made.rows) == 6


def test_an_unreadable_batch_is_a_poison_row_between_the_others() -> None:
    unreadable = UnreadableRecord(1, -1, Unreadable(1, 5, -1, UnreadableReason.CORRUPT, "because"))
    lists: list[list[KafkaRecord]] = [
        [ParsedRecord(0, 0, None, b"1", [])],
        [unreadable],
        [ParsedRecord(6, 0, None, b"2", [])],
    ]
    for shape in (V2_ROWS, V3_ROWS):
        assert_same(shape, ReadFormat.JSON, lists)
        assert text(render(shape, ReadFormat.JSON, lists).rows[1]).startswith(b"poison: ")


def test_a_poison_row_with_a_line_feed_in_the_key_is_one_line() -> None:
    poisoned = ParsedRecord(0, 0, b'{\n"a":1}', b"{", [])
    for shape in (V2_ROWS, V3_ROWS):
        assert_same(shape, ReadFormat.JSON, [[poisoned]])


def fields_of(record: KafkaRecord) -> tuple[Any, ...]:
    unreadable = record.unreadable if isinstance(record, UnreadableRecord) else None
    return record.offset, record.timestamp, record.key, record.value, list(record.headers), unreadable


def one_by_one(chunk: Chunk) -> list[KafkaRecord]:
    """Parse with lists of one record: an error affects no record before it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.proxy.reading.batches._list_length", lambda _: 1)
        return list(records(chunk))


def test_damaged_batches_yield_the_same_records_in_lists_of_any_length() -> None:
    random_source = random.Random(1)
    headers = (("name", b"value"), ("null", None))
    new = [NewRecord(b"value", b"key" if at % 2 else None, headers if at % 3 == 0 else ()) for at in range(20)]
    whole = Batch(new, base_offset=50).encode()
    damaged_count = 0
    for _ in range(2_000):
        damaged = bytearray(whole)
        for _ in range(random_source.choice([1, 1, 2, 5])):
            damaged[random_source.randrange(57, len(damaged))] = random_source.randrange(256)
        struct.pack_into(">I", damaged, 17, crc32c(bytes(damaged[21:])))
        try:
            chunk = parse(Fetched(bytes(damaged), 100, 100, 0), 50, Isolation.READ_UNCOMMITTED)
        except BrokerError:
            continue
        found = list(map(fields_of, records(chunk)))
        damaged_count += found[-1][-1] is not None
        assert found == list(map(fields_of, one_by_one(chunk)))
    assert damaged_count > 100


def test_lists_of_records_are_short() -> None:
    many = Batch([NewRecord(b"1")] * (LIST_RECORDS_MAX + 1)).encode()
    large = Batch([NewRecord(b"x" * 100_000)] * 10, base_offset=LIST_RECORDS_MAX + 1).encode()
    chunk = parse(Fetched(many + large, 10**6, 10**6, 0), 0, Isolation.READ_UNCOMMITTED)
    lengths = [len(taken) for taken in record_lists(chunk)]
    assert lengths == [LIST_RECORDS_MAX, 1, *[1] * 10]
    assert [len(taken) for taken in in_lists(records(chunk))] == [LIST_RECORDS_MAX, 11]
