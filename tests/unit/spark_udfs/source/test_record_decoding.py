"""Decoded keys and values of records: reasons, positions of bad parts, raw bytes."""

from dataclasses import replace
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes import PoisonError
from headgate.serdes.columnar import RecordRows, scan_batches
from headgate.serdes.framing import KEY_HEADER, VALUE_HEADER
from headgate.spark_udfs.source.columns import arrow_schema
from headgate.spark_udfs.source.record_decoding import RecordDecoding
from headgate.spark_udfs.spec.policy import OnPoison
from tests.unit.columnar.test_batches import Header, Record, batch_of, record_bytes
from tests.unit.spark_udfs.plans import decoding, payload, record

KEY = record(("k", "long"), name="Key")
ORDER = record(("id", "long"))
GOOD_KEY, GOOD = payload(KEY, {"k": 1}, 2), payload(ORDER, {"id": 7})
ALL = ["key", "value", "reason", "schema_id", "raw", "part", "key_raw"]
VALUES = decoding(ORDER)
KEYS = replace(decoding(KEY, {2: KEY}), is_key=True)
RECORDS: list[Record] = [
    (GOOD_KEY, GOOD, []),
    (None, GOOD, []),
    (b"bad key", GOOD, []),
    (GOOD_KEY, b"bad", []),
    (b"bad key", None, []),
]


def rows(*records: Record) -> RecordRows:
    data = b"".join(record_bytes(delta, one) for delta, one in enumerate(records))
    return scan_batches(memoryview(batch_of(data, len(records))), 0).rows


def outcome(plan: RecordDecoding, *records: Record, names: list[str] = ALL) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for taken, columns in plan.for_topic("t").outcomes(rows(*records), names):
        for name, column in columns.items():
            assert len(column) == len(taken)
            found.setdefault(name, []).extend(column.to_pylist())
    return found


def test_keys_and_values_are_decoded_and_the_bad_part_is_named() -> None:
    plan = RecordDecoding(VALUES, KEYS)
    assert plan.outcome_names == ("reason", "schema_id", "raw", "part", "key_raw")
    assert plan.any is VALUES
    found = outcome(plan, *RECORDS)
    assert found["value"] == [{"id": 7}, {"id": 7}, {"id": 7}, None, None]
    assert found["key"] == [{"k": 1}, None, None, {"k": 1}, None]
    # The reason of the value takes precedence over the reason of the key.
    assert found["reason"] == [None, None, "BAD_MAGIC", "TOO_SHORT", "NULL"]
    assert found["part"] == [None, None, "key", "value", "value"]
    assert found["schema_id"] == [1, 1, None, None, None]
    assert found["raw"] == [None, None, GOOD, b"bad", None]
    assert found["key_raw"] == [None, None, b"bad key", GOOD_KEY, b"bad key"]


def test_only_keys_are_decoded() -> None:
    plan = RecordDecoding(None, KEYS)
    assert plan.any is KEYS
    found = outcome(plan, *RECORDS)
    assert "value" not in found
    assert found["reason"] == [None, None, "BAD_MAGIC", None, "BAD_MAGIC"]
    assert found["part"] == [None, None, "key", None, "key"]
    assert found["schema_id"] == [2, None, None, 2, None]
    assert found["raw"] == [None, None, GOOD, None, None]
    assert found["key_raw"] == [None, None, b"bad key", None, b"bad key"]
    schema = arrow_schema(plan, has_headers=False)
    assert (schema.field("key").type, schema.field("value").type) == (pa.struct([("k", pa.int64())]), pa.binary())


def test_good_records_have_no_raw_bytes() -> None:
    found = outcome(RecordDecoding(VALUES, KEYS), (GOOD_KEY, GOOD, []), (None, GOOD, []))
    assert found["raw"] == found["key_raw"] == found["part"] == found["reason"] == [None, None]
    only_values = outcome(RecordDecoding(VALUES), (None, GOOD, []), (None, b"bad", []))
    assert only_values["raw"] == [None, b"bad"]
    assert "key" not in only_values


def test_raw_bytes_are_copied_only_if_they_are_selected() -> None:
    found = outcome(RecordDecoding(VALUES, KEYS), *RECORDS, names=["value", "reason"])
    assert "key_raw" not in found
    assert found["raw"] == [None] * 5
    assert outcome(RecordDecoding(VALUES), (None, b"bad", []), names=["value"])["raw"] == [None]


def test_without_dead_letters_there_are_no_raw_columns() -> None:
    null = OnPoison.NULL
    plan = RecordDecoding(replace(VALUES, on_poison=null), replace(KEYS, on_poison=null))
    assert plan.outcome_names == ("reason", "schema_id", "part")
    assert RecordDecoding(replace(VALUES, on_poison=null)).outcome_names == ("reason", "schema_id")


@pytest.mark.parametrize(
    ("bad", "quoted"), [((GOOD_KEY, b"bad value", []), b"bad value"), ((b"bad key", GOOD, []), b"bad key")]
)
def test_a_bad_part_fails_the_task_and_is_quoted(bad: Record, quoted: bytes) -> None:
    fail = OnPoison.FAIL
    plan = RecordDecoding(replace(VALUES, on_poison=fail), replace(KEYS, on_poison=fail))
    assert outcome(plan, (GOOD_KEY, GOOD, []), names=["value"])["reason"] == [None]
    with pytest.raises(PoisonError) as caught:
        outcome(plan, (GOOD_KEY, GOOD, []), bad, names=["value"])
    assert quoted.hex() in str(caught.value)


def test_schema_ids_may_be_in_headers() -> None:
    headers: list[Header] = [(VALUE_HEADER, b"\0" + (1).to_bytes(4)), (KEY_HEADER, b"\0" + (2).to_bytes(4))]
    found = outcome(RecordDecoding(VALUES, KEYS), (GOOD_KEY[5:], GOOD[5:], headers), (GOOD_KEY, GOOD, []))
    assert found["reason"] == [None, None]
    assert found["value"] == [{"id": 7}, {"id": 7}]
    assert found["key"] == [{"k": 1}, {"k": 1}]


def test_keys_and_values_of_several_batches_stay_together() -> None:
    small = RecordDecoding(replace(VALUES, batch_bytes_max=48), replace(KEYS, batch_bytes_max=16))
    records: list[Record] = [
        (payload(KEY, {"k": at}, 2), payload(ORDER, {"id": at}), []) if at % 3 else (None, b"bad", [])
        for at in range(20)
    ]
    pieces = list(small.outcomes(rows(*records), ALL))
    assert len(pieces) > 5
    found = outcome(small, *records)
    assert [None if each is None else each["id"] for each in found["value"]] == [
        at if at % 3 else None for at in range(20)
    ]
    assert [None if each is None else each["k"] for each in found["key"]] == [
        at if at % 3 else None for at in range(20)
    ]
    assert found["reason"] == [None if at % 3 else "TOO_SHORT" for at in range(20)]
