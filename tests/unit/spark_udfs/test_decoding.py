import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest
from pyarrow import lib as pa

from headgate.serdes import PoisonError, RegistryClient
from headgate.serdes.avro import Encoder, parse
from headgate.serdes.columnar import BatchTooLarge
from headgate.serdes.framing import VALUE_HEADER, guid_header
from headgate.spark_udfs.driver.restarts import is_new_version
from headgate.spark_udfs.executor.avro_columns import AvroColumns
from headgate.spark_udfs.executor.decoding import DETAILS_MAX, Columns, Decoding, pieces
from headgate.spark_udfs.executor.writer_schemas import UNKNOWN_GUIDS_MAX, WriterSchemas
from headgate.spark_udfs.spec.policy import NewVersionError, OnNewVersion, OnPoison
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions
from tests.unit.serdes.stub_registry import StubRegistry, guid
from tests.unit.spark_udfs.plans import binary, decoding, payload, record

ORDER = record(("id", "long"), ("note", ["null", "string"]), ("tags", {"type": "array", "items": "string"}))
VALUE = {"id": 7, "note": "thanks", "tags": ["a", "b"]}
GOOD = payload(ORDER, VALUE)


def reasons_of(spec: Decoding, rows: list[bytes | None]) -> list[str | None]:
    columns = spec.decode(binary(rows))
    columns.values.validate(full=True)
    assert [value is None for value in columns.values.to_pylist()] == [
        reason is not None for reason in columns.reasons.to_pylist()
    ]
    reasons: list[str | None] = columns.reasons.to_pylist()
    return reasons


def test_good_rows_are_decoded_and_bad_ones_have_a_reason() -> None:
    columns = decoding(ORDER).decode(binary([GOOD, None, b"", b"\0\0", b"\1" + GOOD[1:], GOOD[:-1], GOOD + b"!", GOOD]))
    assert columns.values.to_pylist() == [VALUE, *[None] * 6, VALUE]
    assert columns.reasons.to_pylist() == [
        None, "NULL", "TOO_SHORT", "TOO_SHORT", "BAD_MAGIC", "TRUNCATED", "TRAILING_BYTES", None,
    ]  # fmt: skip
    assert columns.schema_ids.to_pylist() == [1, None, None, None, None, 1, 1, 1]


KILLERS: dict[str, tuple[bytes, str]] = {
    "an array of a billion items": (b"\x0e\0" + Encoder(parse('"long"')).encode(10**9), "TRUNCATED"),
    "a string of two gigabytes": (b"\x0e\2" + Encoder(parse('"long"')).encode(2**31), "TRUNCATED"),
    "a string of a negative length": (b"\x0e\2" + Encoder(parse('"long"')).encode(-5), "CORRUPT"),
    "a megabyte of 0xFF": (b"\xff" * 1_000_000, "CORRUPT"),
    "invalid UTF-8": (b"\x0e\2\x04\xff\xfe\0", "CORRUPT"),
    "a branch that there is not": (b"\x0e\x10", "CORRUPT"),
    "nothing at all": (b"", "TRUNCATED"),
}


@pytest.mark.parametrize("name", KILLERS)
def test_malicious_payloads_affect_only_their_own_row(name: str) -> None:
    body, reason = KILLERS[name]
    assert reasons_of(decoding(ORDER), [GOOD, b"\0\0\0\0\1" + body, GOOD]) == [None, reason, None]


def test_deep_nesting_is_too_deep() -> None:
    tree: dict[str, Any] = record(("child", ["null", "Tree"]), name="Tree")
    assert reasons_of(decoding(tree), [b"\0\0\0\0\1" + b"\2" * 5000 + b"\0", b"\0\0\0\0\1\2\0"]) == ["TOO_DEEP", None]


def test_a_body_of_another_version_is_poison() -> None:
    newer = record(("id", "long"), ("name", "string"), ("note", ["null", "string"]))
    body = payload(newer, {"id": 1, "name": "abc", "note": None})
    assert reasons_of(decoding(ORDER), [body, GOOD])[0] is not None


def test_batches_of_only_poison_and_empty_batches_are_decoded() -> None:
    spec = decoding(ORDER)
    assert reasons_of(spec, [None, b"", b"\1"]) == ["NULL", "TOO_SHORT", "TOO_SHORT"]
    empty = spec.decode(binary([]))
    assert (len(empty.values), len(empty.reasons), len(empty.schema_ids)) == (0, 0, 0)
    assert empty.values.type == spec.decoder().type


def test_sliced_chunked_and_large_columns_are_decoded() -> None:
    rows = [None, GOOD, b"x", GOOD, GOOD[:-1], GOOD]
    spec = decoding(ORDER)
    whole = spec.decode(binary(rows))
    sliced = spec.decode(binary(rows).slice(2, 3))
    assert sliced.values.to_pylist() == whole.values.to_pylist()[2:5]
    assert sliced.reasons.to_pylist() == whole.reasons.to_pylist()[2:5]
    chunked = pa.chunked_array([binary(rows[:1]), binary([]), binary(rows[1:4]), binary(rows[4:])])
    for column in (chunked, binary(rows).cast(pa.large_binary())):
        assert spec.decode(column).values.to_pylist() == whole.values.to_pylist()
    assert spec.decode(pa.chunked_array([], pa.binary())).values.to_pylist() == []


def test_a_decoding_is_picklable_and_its_decoder_is_cached() -> None:
    spec = decoding(ORDER)
    arrived = pickle.loads(pickle.dumps(spec))
    assert arrived == spec
    assert arrived.decoder() is spec.decoder()


def test_the_outcome_has_raw_bytes_only_for_poison() -> None:
    spec = decoding(ORDER)
    rows = binary([GOOD, GOOD[:-1], None])
    assert spec.outcome_names == ("value", "reason", "schema_id", "raw")
    value, reason, schema_id, raw = spec.outcome(spec.decode(rows), rows)
    assert raw.to_pylist() == [None, GOOD[:-1], None]
    assert (value.null_count, reason.null_count, schema_id.to_pylist()) == (2, 1, [1, 1, None])
    assert decoding(ORDER, on_poison=OnPoison.NULL).outcome_names == ("value", "reason", "schema_id")


def test_fail_reports_the_reason_the_id_and_the_first_bytes() -> None:
    spec = decoding(ORDER, on_poison=OnPoison.FAIL)
    rows = binary([GOOD, GOOD[:-1]])
    with pytest.raises(PoisonError) as caught:
        spec.outcome(spec.decode(rows), rows)
    text = str(caught.value)
    assert text.startswith("TRUNCATED: tags[2]: ")
    assert "schema id 1" in text
    assert GOOD[:16].hex() in text or GOOD[:-1].hex() in text
    assert len(spec.outcome(spec.decode(binary([GOOD])), binary([GOOD]))) == 3


def test_details_describe_the_fault() -> None:
    spec = decoding(ORDER)
    rows = binary([GOOD, GOOD[:-1], b"\0\0\0\0\1\x0e\2\x04\xff\xfe\0", None])
    detail = spec.outcome(spec.decode(rows), rows, details=True)[-1].to_pylist()
    assert detail[0] is None
    assert detail[1].startswith("tags")
    assert "UTF-8" in detail[2]
    assert detail[3] == "no payload"


def test_details_are_limited_and_the_rest_have_a_general_message() -> None:
    spec = decoding(ORDER)
    rows = binary([GOOD[:-1]] * (DETAILS_MAX + 5))
    detail = spec.outcome(spec.decode(rows), rows, details=True)[-1].to_pylist()
    assert detail[0].startswith("tags")
    assert detail[-1] == "the body ends before the value is complete"
    assert None not in detail


def test_rows_are_decoded_in_pieces_of_limited_size() -> None:
    rows = binary([b"x" * 10, None, b"", b"y" * 25, b"z" * 5, b"w" * 4])
    found = list(pieces(rows, bytes_max=20))
    assert [start for start, _ in found] == [0, *(start + length for start, length in found[:-1])]
    assert sum(length for _, length in found) == len(rows)
    for start, length in found:
        assert length == 1 or sum(len(row or b"") for row in rows.slice(start, length).to_pylist()) <= 20
    assert list(pieces(binary([]))) == [(0, 0)]
    assert list(pieces(rows.slice(3), bytes_max=20)) == [(0, 1), (1, 2)]


def test_a_batch_that_is_too_large_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    decode: Callable[..., Columns] = AvroColumns.decode
    sizes: list[int] = []

    def grudging(self: AvroColumns, payloads: pa.Array, headers: pa.Array | None = None) -> Columns:
        sizes.append(len(payloads))
        if len(payloads) > 3 or b"never" in payloads.to_pylist():
            raise BatchTooLarge("too large")
        return decode(self, payloads, headers)

    monkeypatch.setattr(AvroColumns, "decode", grudging)
    spec = decoding(ORDER)
    rows = [payload(ORDER, {**VALUE, "id": number}) for number in range(10)] + [b"never"]
    found = list(spec.in_pieces(binary(rows)))
    assert [start for start, _ in found] == sorted(start for start, _ in found)
    columns = spec.decode(binary(rows))
    assert [value and value["id"] for value in columns.values.to_pylist()] == [*range(10), None]
    assert columns.reasons.to_pylist() == [*[None] * 10, "TOO_LARGE"]


def test_a_payload_with_gigabytes_of_nulls_is_limited() -> None:
    wide = record(*((f"f{number}", "long") for number in range(20)), name="Wide")
    lists = record(("items", {"type": "array", "items": ["null", wide]}))
    count = 3_000_000
    body = Encoder(parse('"long"')).encode(count) + b"\0" * count + b"\0"
    reasons = reasons_of(decoding(lists), [b"\0\0\0\0\1" + body, payload(lists, {"items": [None]})])
    assert reasons[1] is None


def test_an_unknown_writer_schema_is_requested_once(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    added = stub_registry.add("orders-value", {"schema": json.dumps(record(("id", "int"), ("more", "string")))})
    spec = decoding(record(("id", "long"), name="R"), {1: ORDER})
    late = payload(record(("id", "int"), ("more", "string")), {"id": 5, "more": "x"}, added)
    for _ in range(3):
        columns = spec.decode(binary([GOOD, late, late]))
        assert columns.values.to_pylist() == [{"id": 7}, {"id": 5}, {"id": 5}]
    assert stub_registry.paths() == [f"GET /schemas/ids/{added}"]


def test_an_evicted_decoder_closes_its_connections(
    stub_registry: StubRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[RegistryClient] = []

    def close(self: RegistryClient) -> None:
        closed.append(self)

    monkeypatch.setattr(RegistryClient, "close", close)
    writers = WriterSchemas(Reader(SchemaText("AVRO", '"int"')), RegistryOptions())
    client = writers.client
    del writers
    assert closed == [client]


def test_an_unknown_id_is_not_requested_again(stub_registry: StubRegistry) -> None:
    spec = decoding(ORDER)
    stranger = payload(ORDER, VALUE, 99)
    for _ in range(3):
        assert reasons_of(spec, [stranger, GOOD, stranger]) == ["UNKNOWN_SCHEMA", None, "UNKNOWN_SCHEMA"]
    assert stub_registry.paths() == ["GET /schemas/ids/99"]


def test_invalid_ids_do_not_overload_the_registry(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    garbage = [payload(ORDER, VALUE, 10_000_000 + number) for number in range(500)]
    assert set(reasons_of(decoding(ORDER), [*garbage, GOOD])) == {"UNKNOWN_SCHEMA", None}
    assert len(stub_registry.requests) < 20


def test_invalid_guids_do_not_overload_the_registry(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    headers = pa.array(
        [[{"key": VALUE_HEADER, "value": guid_header(UUID(int=number))}] for number in range(500)], HEADERS
    )
    reasons = decoding(ORDER).decode(binary([GOOD[5:]] * 500), headers).reasons.to_pylist()
    assert set(reasons) == {"UNKNOWN_SCHEMA", "REGISTRY_UNAVAILABLE"}
    assert len(stub_registry.requests) == UNKNOWN_GUIDS_MAX


def test_a_registry_outage_is_a_reason_after_retries(stub_registry: StubRegistry) -> None:
    def down(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    stub_registry.intercept = down
    spec = decoding(ORDER)
    for _ in range(5):
        assert reasons_of(spec, [payload(ORDER, VALUE, 50), GOOD]) == ["REGISTRY_UNAVAILABLE", None]
    assert len(stub_registry.requests) == spec.registry.attempts_max


def test_a_writer_in_another_language_cannot_be_resolved(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    other = stub_registry.add("x", {"schema": "{}", "schemaType": "JSON"})
    assert reasons_of(decoding(ORDER), [payload(ORDER, VALUE, other)]) == ["UNRESOLVABLE"]


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def test_a_schema_id_in_a_record_header_is_used(stub_registry: StubRegistry) -> None:
    number = stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    by_guid = {"key": VALUE_HEADER, "value": guid_header(UUID(guid(number)))}
    by_id = {"key": VALUE_HEADER, "value": GOOD[:5]}
    other = {"key": "trace", "value": b"1"}
    unknown = {"key": VALUE_HEADER, "value": guid_header(UUID(int=5))}
    headers = pa.array(
        [[other, by_guid], [], None, [by_id], [unknown], [{"key": VALUE_HEADER, "value": b"\1ab"}], [by_guid],
         [{"key": VALUE_HEADER, "value": None}], [by_guid, unknown]],
        HEADERS,
    )  # fmt: skip
    rows = [GOOD[5:], GOOD, GOOD, GOOD[5:], GOOD[5:], GOOD[5:], None, GOOD, GOOD[5:]]
    spec = decoding(ORDER)
    for _ in range(2):
        columns = spec.decode(binary(rows), headers)
        assert columns.reasons.to_pylist() == [
            None, None, None, None, "UNKNOWN_SCHEMA", "TOO_SHORT", "NULL", None, None,
        ]  # fmt: skip
        assert columns.values.to_pylist() == [VALUE, VALUE, VALUE, VALUE, None, None, None, VALUE, VALUE]
        assert columns.schema_ids.to_pylist() == [None, 1, 1, 1, None, None, None, 1, None]
    assert stub_registry.paths() == [f"GET /schemas/guids/{guid(number)}", f"GET /schemas/guids/{UUID(int=5)}"]
    sliced = spec.decode(binary(rows).slice(3, 3), headers.slice(3, 3))
    assert sliced.reasons.to_pylist() == [None, "UNKNOWN_SCHEMA", "TOO_SHORT"]


@pytest.mark.parametrize("policy", [OnNewVersion.FAIL, OnNewVersion.RESTART])
def test_a_newer_version_fails_the_task_with_fail_and_restart(
    stub_registry: StubRegistry, policy: OnNewVersion
) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    newer = record(*((field["name"], field["type"]) for field in ORDER["fields"]), ("more", "int", {"default": 0}))
    added = stub_registry.add("orders-value", {"schema": json.dumps(newer)})
    spec = decoding(ORDER, subject="orders-value", newest_version=1, on_new_version=policy)
    with pytest.raises(NewVersionError) as caught:
        spec.decode(binary([GOOD, payload(newer, {**VALUE, "more": 1}, added)]))
    assert str(caught.value).startswith("version 2 of orders-value (schema ")
    assert "HEADGATE" not in str(caught.value)
    assert is_new_version(caught.value) is (policy is OnNewVersion.RESTART)


def test_a_newer_version_is_read_with_the_old_schema_with_keep(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    newer = record(*((field["name"], field["type"]) for field in ORDER["fields"]), ("more", "int", {"default": 0}))
    added = stub_registry.add("orders-value", {"schema": json.dumps(newer)})
    spec = decoding(ORDER, subject="orders-value", newest_version=1)
    assert spec.decode(binary([payload(newer, {**VALUE, "more": 1}, added)])).values.to_pylist() == [VALUE]


def test_a_schema_of_another_subject_is_not_a_new_version(stub_registry: StubRegistry) -> None:
    stub_registry.add("orders-value", {"schema": json.dumps(ORDER)})
    other = record(
        ("id", "long"), ("note", ["null", "string"]), ("tags", {"type": "array", "items": "string"}), name="S"
    )
    added = stub_registry.add("others-value", {"schema": json.dumps(other)})
    spec = decoding(ORDER, subject="orders-value", newest_version=1, on_new_version=OnNewVersion.FAIL)
    assert spec.decode(binary([payload(other, VALUE, added)])).values.to_pylist() == [VALUE]


@pytest.mark.parametrize("with_header", [lambda at: at == 0, lambda at: at != 0, lambda at: at % 2 == 0])
def test_rows_with_and_without_header_ids_share_limited_batches(with_header: Callable[[int], bool]) -> None:
    spec = replace(decoding(ORDER), batch_bytes_max=300)
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = [payload(ORDER, {"id": at, "note": None, "tags": ["x" * 40]}) for at in range(30)]
    given = [row[5:] if with_header(at) else row for at, row in enumerate(rows)]
    header = [{"key": VALUE_HEADER, "value": b"\0" + (1).to_bytes(4)}]
    headers = pa.array([header if with_header(at) else None for at in range(30)], kind)
    pieces_ = [columns for _, columns in spec.in_pieces(binary(given), headers)]
    assert len(pieces_) > 2
    assert [value["id"] for piece in pieces_ for value in piece.values.to_pylist()] == list(range(30))
    assert [number for piece in pieces_ for number in piece.schema_ids.to_pylist()] == [1] * 30
