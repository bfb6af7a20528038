import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.records.format import BadFormat, compile_format, unescape
from headgate.gateway.records.json_lines import BadRecord, document_of, record_of
from headgate.gateway.records.record import NewRecord, Record

RECORD = Record("orders", 2, 41, 1000, "create", b"k", b"v\xff", (("a", b"1"), ("b", None)))
CONTENT = st.none() | st.binary(max_size=20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%t[%p]@%o", b"orders[2]@41"),
        ("%k=%s\\n", b"k=v\xff\n"),
        ("%K %S %T", b"1 2 1000"),
        ("%R", b"\x00\x00\x00\x02"),
        ("%h", b"a=1,b=NULL"),
        ("100%%", b"100%"),
        ("\\x00\\t\\r\\0\\\\", b"\x00\t\r\x00\\"),
        ("", b""),
        ("grün", "grün".encode()),
    ],
)
def test_a_format_prints_the_same_as_kcat(text: str, expected: bytes) -> None:
    assert compile_format(text)(RECORD) == expected


def test_null_and_empty_differ_in_text_and_length() -> None:
    null, empty = (Record("t", 0, 0, 0, "create", None, value, ()) for value in (None, b""))
    render = compile_format("%s %S %R", null=b"NIL")
    assert render(null) == b"NIL -1 \xff\xff\xff\xff"
    assert render(empty) == b" 0 \x00\x00\x00\x00"


@pytest.mark.parametrize("text", ["%x", "%", "\\q", "\\", "\\x1", "\\xzz"])
def test_a_format_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadFormat, match=r"is not (a placeholder|an escape)"):
        compile_format(text)


def test_separators_take_escapes_and_leave_percent_signs_alone() -> None:
    assert unescape("\\t%s") == b"\t%s"


@given(CONTENT, CONTENT, st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=3), st.booleans())
def test_json_output_is_read_back_unchanged(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], always_base64: bool
) -> None:
    record = Record("t", 3, 9, 17, "create", key, value, tuple(headers))
    line = json.dumps(document_of(record, always_base64=always_base64))
    assert record_of(line) == NewRecord(key, value, tuple(headers), 3, 17)


def test_text_is_printed_as_text_and_other_bytes_as_base64() -> None:
    document = document_of(RECORD)
    assert (document["key"], document["value_base64"]) == ("k", "dv8=")
    assert document["headers"] == [{"name": "a", "value": "1"}, {"name": "b", "value": None}]


def test_a_value_that_is_json_itself_becomes_its_text() -> None:
    assert record_of('{"value": {"id": 1}, "key": 7}') == NewRecord(b"7", b'{"id":1}')


def test_headers_may_be_an_object() -> None:
    assert record_of('{"value": "v", "headers": {"a": "1"}}').headers == (("a", b"1"),)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "not JSON"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ('{"valeu": 1}', "'valeu' is not a field"),
        ('{"value_base64": "!"}', "value_base64 is not base64"),
        ('{"value_base64": 1}', "value_base64 is not a string"),
        ('{"key": "a", "key_base64": "YQ=="}', "both key and key_base64"),
        ('{"partition": -1}', "partition is not a whole number"),
        ('{"partition": true}', "partition is not a whole number"),
        ('{"timestamp": 1.5}', "timestamp is not a whole number"),
        ('{"timestamp": 1e400}', "timestamp is not a whole number"),
        ('{"headers": 1}', "headers is neither"),
        ('{"headers": [{"value": "a"}]}', "headers[0] has no name"),
        ('{"value": "\\ud800"}', "an unpaired surrogate"),
    ],
)
def test_a_bad_line_is_refused_by_the_name_of_its_field(line: str, complaint: str) -> None:
    with pytest.raises(BadRecord) as caught:
        record_of(line)
    assert complaint in str(caught.value)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_no_line_gets_anything_but_a_record_or_a_refusal(line: bytes | str) -> None:
    with contextlib.suppress(BadRecord):
        record_of(line)
