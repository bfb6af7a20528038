"""Decodes payloads of several subjects in one column. The schema id selects the subject."""

import json
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyarrow import lib as pa

from headgate.serdes.columnar import BatchTooLarge
from headgate.serdes.columnar.spans import spans_of
from headgate.serdes.framing import KEY_HEADER, VALUE_HEADER
from headgate.spark_udfs.driver.planning import choice_of
from headgate.spark_udfs.driver.reader_choice import ReaderChoice, ReaderError, TypedChoice
from headgate.spark_udfs.executor.decoding import Columns, Decoding
from headgate.spark_udfs.spec.policy import OnRegistryDown
from headgate.spark_udfs.spec.reader import SUBJECTS_MAX, Reader, TypedReader
from headgate.spark_udfs.spec.registry_options import RegistryOptions
from tests.unit.serdes.stub_registry import StubRegistry
from tests.unit.spark_udfs.plans import NOBODY, binary, payload, record, schema_text

ORDER = record(("id", "long"), name="Order")
ORDER_V2 = record(("id", "long"), ("note", "string", {"default": "-"}), name="Order")
REFUND = record(("id", "long"), ("why", ["null", "string"]), name="Refund")
OTHER = record(("id", "long"), name="Other")


def reader(subject: str, schema: Any, *ids: int, language: Any = "AVRO") -> Reader:
    text = schema_text(schema, language)
    return Reader(text, subject=subject, writers=tuple((number, text) for number in ids), newest_version=1)


def typed(*readers: Reader, registry: RegistryOptions = NOBODY, is_key: bool = False) -> Decoding:
    return Decoding(TypedReader(readers), registry, on_registry_down=OnRegistryDown.DEAD_LETTER, is_key=is_key)


BOTH = typed(reader("Order", ORDER, 1), reader("Refund", REFUND, 2))
GOOD_ORDER = payload(ORDER, {"id": 7}, 1)
GOOD_REFUND = payload(REFUND, {"id": 8, "why": None}, 2)


def decoded(spec: Decoding, rows: Sequence[bytes | None], headers: pa.Array | None = None) -> Columns:
    columns = spec.decode(binary(rows), headers)
    columns.values.validate(full=True)
    assert len(columns.values) == len(columns.reasons) == len(columns.schema_ids) == len(rows)
    for value, reason in zip(columns.values.to_pylist(), columns.reasons.to_pylist(), strict=True):
        assert (value is None) == (reason is not None)
        assert value is None or sum(part is not None for part in value.values()) == 1
    return columns


def test_each_payload_is_decoded_by_the_reader_of_its_subject() -> None:
    rows = [GOOD_REFUND, None, GOOD_ORDER, b"\0", GOOD_REFUND[:-1], b"\1" + GOOD_ORDER[1:], GOOD_REFUND, GOOD_ORDER]
    columns = decoded(BOTH, rows)
    refund, order = {"Order": None, "Refund": {"id": 8, "why": None}}, {"Order": {"id": 7}, "Refund": None}
    assert columns.values.to_pylist() == [refund, None, order, None, None, None, refund, order]
    assert columns.reasons.to_pylist() == [None, "NULL", None, "TOO_SHORT", "TRUNCATED", "BAD_MAGIC", None, None]
    assert columns.schema_ids.to_pylist() == [2, None, 1, None, 2, None, 2, 1]


@pytest.mark.parametrize(
    "rows", [[GOOD_ORDER] * 3, [GOOD_REFUND] * 3, [None, b"x"], [GOOD_ORDER, None, GOOD_REFUND], []]
)
def test_payloads_in_a_fetch_buffer_have_the_same_results(rows: list[bytes | None]) -> None:
    assert BOTH.is_in_place
    wanted = decoded(BOTH, rows)
    found = [columns for _, columns in BOTH.in_place(spans_of(binary(rows)))]
    assert [value for part in found for value in part.values.to_pylist()] == wanted.values.to_pylist()
    assert [reason for part in found for reason in part.reasons.to_pylist()] == wanted.reasons.to_pylist()


def test_a_schema_of_no_subject_is_poison_with_an_explanation(stub_registry: StubRegistry) -> None:
    foreign = stub_registry.add("other", {"schema": json.dumps(OTHER)})
    spec = typed(reader("Order", ORDER, 101), reader("Refund", REFUND, 102), registry=RegistryOptions())
    rows = [payload(ORDER, {"id": 1}, 101), payload(OTHER, {"id": 2}, foreign), payload(OTHER, {"id": 3}, 99)]
    columns = decoded(spec, rows)
    assert columns.reasons.to_pylist() == [None, "UNRESOLVABLE", "UNKNOWN_SCHEMA"]
    assert columns.schema_ids.to_pylist() == [101, foreign, 99]
    assert spec.decoder().explain(rows[1], []).endswith("none of the subjects Order, Refund")


def test_a_version_registered_later_is_found_by_its_record_name(stub_registry: StubRegistry) -> None:
    newer = stub_registry.add("anything", {"schema": json.dumps(ORDER_V2)})
    spec = typed(reader("Refund", REFUND, 102), reader("Order", ORDER, 101), registry=RegistryOptions())
    columns = decoded(spec, [payload(ORDER_V2, {"id": 5, "note": "x"}, newer)])
    assert columns.values.to_pylist() == [{"Refund": None, "Order": {"id": 5}}]


def test_a_version_registered_later_is_found_by_its_subject_if_names_are_equal(stub_registry: StubRegistry) -> None:
    newer = stub_registry.add("b-value", {"schema": json.dumps(ORDER_V2)})
    spec = typed(reader("a-value", ORDER, 101), reader("b-value", ORDER, 102), registry=RegistryOptions())
    columns = decoded(spec, [payload(ORDER_V2, {"id": 5, "note": "x"}, newer)])
    assert columns.values.to_pylist() == [{"a-value": None, "b-value": {"id": 5}}]


def test_a_schema_of_several_subjects_belongs_to_the_subject_of_the_topic() -> None:
    spec = typed(*(reader(subject, ORDER, 1) for subject in ("a-b-value", "a-value", "c-value")))
    wanted = {"a": "a-value", "a-b": "a-b-value", "c": "c-value", "d": "a-b-value"}
    for topic, subject in wanted.items():
        (value,) = decoded(spec.for_topic(topic), [GOOD_ORDER]).values.to_pylist()
        assert [name for name, part in value.items() if part is not None] == [subject]
    assert decoded(spec.for_topic("c"), [GOOD_ORDER, None]).reasons.to_pylist() == [None, "NULL"]


def test_a_registry_outage_is_not_a_foreign_schema() -> None:
    columns = decoded(BOTH, [payload(OTHER, {"id": 1}, 77), GOOD_ORDER])
    assert columns.reasons.to_pylist() == ["REGISTRY_UNAVAILABLE", None]


def test_schema_ids_in_headers_select_the_subject() -> None:
    for spec, name in ((BOTH, VALUE_HEADER), (typed(*BOTH.reader.readers, is_key=True), KEY_HEADER)):
        entry = {"key": name, "value": b"\0" + (2).to_bytes(4)}
        broken = {"key": name, "value": b"\7"}
        kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        headers = pa.array([[entry], None, [broken]], kind)
        columns = decoded(spec, [GOOD_REFUND[5:], GOOD_ORDER, GOOD_ORDER], headers)
        assert columns.reasons.to_pylist() == [None, None, "BAD_MAGIC"]
        assert columns.schema_ids.to_pylist() == [2, 1, None]
        assert columns.values.to_pylist()[0]["Refund"] == {"id": 8, "why": None}


def test_a_null_value_of_a_nullable_schema_is_poison_and_not_lost() -> None:
    maybe = ["null", ORDER]
    spec = typed(reader("Maybe", maybe, 1), reader("Refund", REFUND, 2))
    assert decoded(spec, [payload(maybe, None, 1), GOOD_REFUND]).reasons.to_pylist() == ["NULL", None]


def test_a_batch_is_limited_by_the_columns_of_all_subjects() -> None:
    spec = replace(BOTH, batch_bytes_max=400)
    rows = [GOOD_ORDER, GOOD_REFUND, GOOD_REFUND] * 20
    pieces = [columns for _, columns in spec.in_pieces(binary(rows))]
    assert len(pieces) > 3
    assert sum(len(piece.reasons) for piece in pieces) == len(rows)
    assert all(piece.reasons.null_count == len(piece.reasons) for piece in pieces)
    assert max(len(piece.reasons) for piece in pieces) == 400 // (8 * 6)
    ids = [value[name]["id"] for piece in pieces for value in piece.values.to_pylist() for name in value if value[name]]
    assert ids == [7, 8, 8] * 20


def test_headers_follow_the_payloads_of_a_limited_batch() -> None:
    spec = replace(BOTH, batch_bytes_max=8 * 6)
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    entries = [[{"key": VALUE_HEADER, "value": b"\0" + number.to_bytes(4)}] for number in (2, 1, 2)]
    bodies = [GOOD_REFUND[5:], GOOD_ORDER[5:], GOOD_REFUND[5:]]
    pieces = [columns for _, columns in spec.in_pieces(binary(bodies), pa.array(entries, kind))]
    assert [reason for piece in pieces for reason in piece.reasons.to_pylist()] == [None] * 3
    assert [number for piece in pieces for number in piece.schema_ids.to_pylist()] == [2, 1, 2]


def test_two_rows_of_several_subjects_can_be_too_large_for_one_batch() -> None:
    rows = [GOOD_ORDER, payload(REFUND, {"id": 1, "why": "x" * 300}, 2)]
    spec = replace(BOTH, batch_bytes_max=300)
    with pytest.raises(BatchTooLarge):
        spec.decoder().decode(binary(rows))
    pieces = [columns for _, columns in spec.in_pieces(binary(rows))]
    assert [len(piece.reasons) for piece in pieces] == [1, 1]
    assert [reason for piece in pieces for reason in piece.reasons.to_pylist()] == [None, None]


@pytest.mark.parametrize("schema_id", [0x01020304, 0xFFFFFFFF])
def test_all_four_bytes_of_a_schema_id_count(schema_id: int) -> None:
    spec = typed(reader("Order", ORDER, schema_id), reader("Refund", REFUND, 2))
    columns = decoded(spec, [payload(ORDER, {"id": 7}, schema_id), GOOD_REFUND])
    assert columns.reasons.to_pylist() == [None, None]
    assert columns.schema_ids.to_pylist() == [schema_id, 2]


def test_large_rows_of_several_subjects_are_split() -> None:
    rows = [GOOD_ORDER, *(payload(REFUND, {"id": 1, "why": "x" * 300}, 2) for _ in range(3))]
    spec = replace(BOTH, batch_bytes_max=400)
    with pytest.raises(BatchTooLarge):
        spec.decoder().decode(binary(rows))
    pieces = [columns for _, columns in spec.in_pieces(binary(rows))]
    assert [len(value) for piece in pieces for value in piece.values.to_pylist()] == [2] * 4


def test_json_schema_and_avro_can_share_a_topic(stub_registry: StubRegistry) -> None:
    text = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
    newer = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "string"}}})
    number = stub_registry.add("json-value", {"schema": newer, "schemaType": "JSON"})
    spec = typed(
        reader("Order", ORDER, 101), reader("json-value", text, 103, language="JSON"), registry=RegistryOptions()
    )
    assert not spec.is_in_place
    rows = [payload(ORDER, {"id": 1}, 101), b"\0" + (103).to_bytes(4) + b'{"n": 2}', b"\0" + number.to_bytes(4) + b"{}"]
    columns = decoded(spec, rows)
    assert [value["json-value"] for value in columns.values.to_pylist()] == [None, {"n": 2}, {"n": None}]


def test_the_plan_is_picklable() -> None:
    assert pickle.loads(pickle.dumps(BOTH)) == BOTH


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"subject": ["a", "A"]}, "must differ"),
        ({"subject": []}, "2 to 50 subjects"),
        ({"subject": [f"s{n}" for n in range(SUBJECTS_MAX + 1)]}, "not 51"),
        ({"subject": ["a", "b"], "version": 1}, "version can be used with one subject only"),
        ({"subject": ["a", "b"], "fields": ["id"]}, "fields can be used with one subject only"),
    ],
)
def test_invalid_choices_of_subjects_are_rejected(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ReaderError, match=problem):
        choice_of(**arguments)


def test_a_list_of_one_subject_is_one_subject() -> None:
    assert choice_of(["a"]) == ReaderChoice("a")
    assert choice_of(["a", "b"]) == TypedChoice(("a", "b"))
