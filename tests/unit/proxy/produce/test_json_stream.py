"""Splits a stream into JSON objects, for all chunk boundaries."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.proxy.api.json_stream import JsonSplitter
from headgate.proxy.errors import BadRequest

LIMIT = 10_000
documents = st.lists(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=10),
            lambda children: (
                st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=4,
    ),
    max_size=6,
)
blanks = st.sampled_from(["", " ", "\n", "\r\n\t ", "\n\n"])


@given(documents, blanks, st.integers(1, 40), st.booleans())
def test_documents_are_complete_for_all_chunk_boundaries(
    values: list[dict[str, object]], blank: str, size: int, pretty: bool
) -> None:
    text = blank.join(json.dumps(value, indent=2 if pretty else None) for value in values) + blank
    data = text.encode()
    splitter = JsonSplitter(LIMIT)
    found = [value for start in range(0, len(data), size) for value, _ in splitter.feed(data[start : start + size])]
    splitter.end()
    assert found == values


def test_a_stream_that_ends_inside_an_object_is_rejected() -> None:
    splitter = JsonSplitter(LIMIT)
    assert list(splitter.feed(b'{"a": 1} {"b"')) == [({"a": 1}, 8)]
    with pytest.raises(BadRequest, match="ends inside"):
        splitter.end()


def test_an_object_over_the_limit_is_rejected() -> None:
    splitter = JsonSplitter(LIMIT)
    assert list(splitter.feed(b'{"a": "' + b"x" * (LIMIT - 10))) == []
    with pytest.raises(BadRequest, match="larger than the limit"):
        list(splitter.feed(b"x" * 1000))


@pytest.mark.parametrize("garbage", [b"]", b"}", b'"text"', b"nul", b"12 ", b'{"a":1}\n3\n', b'{"a":1}\n{"b" 2}\n'])
def test_values_other_than_objects_are_rejected(garbage: bytes) -> None:
    with pytest.raises(BadRequest):
        list(JsonSplitter(LIMIT).feed(garbage))


def test_escaped_quotes_and_braces_in_strings_do_not_count() -> None:
    document = json.dumps({'a"}': '\\"}{"', "b": "]["}).encode()
    splitter = JsonSplitter(LIMIT)
    found = [value for byte in document for value, _ in splitter.feed(bytes([byte]))]
    assert found == [json.loads(document)]


def test_lines_concatenated_objects_and_long_numbers_can_be_mixed() -> None:
    data = b'\n{"a":1}\n{"b":2}{"c":3}\n  {"d":\n4}\n{"e":12345678901234567890123}\n\n{"f":"\\""}\n'
    expected = [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}, {"e": 12345678901234567890123}, {"f": '"'}]
    for size in range(1, len(data) + 1):
        splitter = JsonSplitter(LIMIT)
        found = [value for start in range(0, len(data), size) for value, _ in splitter.feed(data[start : start + size])]
        splitter.end()
        assert found == expected, size


def test_a_document_in_many_chunks_is_scanned_once() -> None:
    splitter = JsonSplitter(1_000_000)
    assert list(splitter.feed(b'{"a":"' + b"x" * 500_000)) == []
    for _ in range(20_000):
        assert list(splitter.feed(b"y")) == []
    ((value, _),) = splitter.feed(b'"}')
    assert len(value["a"]) == 520_000
