import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.gateway.records import input as record_input
from headgate.gateway.records.input import LineFormat, Lines
from headgate.gateway.records.json_lines import BadRecord
from headgate.gateway.records.record import NewRecord


def read(chunks: list[bytes]) -> list[bytes]:
    lines = Lines()
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return [*found, *lines.end()]


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=50))
def test_lines_do_not_depend_on_how_the_bytes_arrive(content: bytes, sizes: list[int]) -> None:
    chunks, rest = [], content
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]
    expected = content.split(b"\n")
    if expected[-1] == b"":
        expected.pop()
    assert read([*chunks, rest]) == expected


def test_a_line_beyond_the_limit_is_refused_before_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_input, "line_bytes_max", 10)
    lines = Lines()
    assert list(lines.feed(b"123456789\n1234567")) == [b"123456789"]
    with pytest.raises(BadRecord, match="longer than 10 bytes"):
        list(lines.feed(b"89012"))


def test_the_first_separator_parts_key_and_value() -> None:
    assert LineFormat(key_separator=b":").record(b"a:b:c") == NewRecord(b"a", b"b:c")


def test_a_line_without_the_separator_is_refused() -> None:
    with pytest.raises(BadRecord, match="no key separator ':'"):
        LineFormat(key_separator=b":").record(b"ab")


def test_an_empty_value_is_empty_unless_it_is_to_be_null() -> None:
    assert LineFormat(key_separator=b":").record(b"a:").value == b""
    assert LineFormat(key_separator=b":", empty_as_null=True).record(b"a:") == NewRecord(b"a", None)


def test_options_provide_the_missing_fields_of_a_line() -> None:
    options = LineFormat(as_json=True, key=b"k", headers=(("h", b"1"),), partition=3, timestamp_ms=5)
    assert options.record(b'{"value": "v"}') == NewRecord(b"k", b"v", (("h", b"1"),), 3, 5)
    own = options.record(b'{"value": "v", "key": "own", "partition": 0, "timestamp": 0}')
    assert (own.key, own.partition, own.timestamp_ms) == (b"own", 0, 0)


def test_base64_lines_are_decoded_or_refused() -> None:
    assert LineFormat(base64=True, key_separator=b" ").record(b"YQ== /w==") == NewRecord(b"a", b"\xff")
    with pytest.raises(BadRecord, match="the value is not base64"):
        LineFormat(base64=True).record(b"*")
