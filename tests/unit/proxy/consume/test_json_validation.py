"""orjson decides what JSON is. The faster validation accepts no other text, and no text that is valid only joined."""

import json
import random
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Final

import orjson
import pytest

from headgate.proxy.reading import json_validation
from headgate.proxy.reading.json_validation import SHORT_BYTES_MAX, json_lines

VALUES: Final = (0, -1, 1.5, 1e10, 1e300, -0.0, 10**20, 2**63, None, True, False, "", "a", "5e999", "1e999,", "é", "\n")
CHARACTERS: Final = b'{}[]",:0123456789.eE+-truefalsn \t\n\r\x00\x1f\x7f\\u"\xc3\xa9\xff'


def accepts(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def are_json(texts: Sequence[bytes]) -> bool:
    return json_lines(list(texts)) is not None


def value(random_source: random.Random, depth: int) -> Any:
    kind = random_source.random()
    if depth == 0 or kind < 0.5:
        return random_source.choice(VALUES)
    if kind < 0.75:
        return [value(random_source, depth - 1) for _ in range(random_source.randrange(4))]
    return {random_source.choice(["a", "e", ""]): value(random_source, depth - 1) for _ in range(3)}


def mutations(random_source: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        text = bytearray(json.dumps(value(random_source, 3), ensure_ascii=False).encode())
        for _ in range(random_source.randrange(3)):
            at = random_source.randrange(len(text) + 1)
            removed = random_source.randrange(2)
            text[at : at + removed] = bytes(random_source.choices(CHARACTERS, k=random_source.randrange(3)))
        yield bytes(text)


def test_mutated_texts_are_accepted_only_if_orjson_accepts_them() -> None:
    accepted = rejected = 0
    for text in mutations(random.Random(1), 20_000):
        is_valid = accepts(text)
        assert are_json([text]) == is_valid, text
        assert are_json([b"1", text, b"2"]) == is_valid, text
        accepted += is_valid
        rejected += not is_valid
    assert min(accepted, rejected) > 3_000


@pytest.mark.parametrize(
    "exponent", [b"", b"e99", b"E99", b"e+99", b"e100", b"e308", b"E+309", b"e0400", b"e-999", b"E9999"]
)
@pytest.mark.parametrize("digits", [1, 3, SHORT_BYTES_MAX - 4, SHORT_BYTES_MAX, 308, 309, 310])
def test_numbers_beyond_the_range_of_a_double_are_rejected(digits: int, exponent: bytes) -> None:
    number = b"9" * digits + exponent
    for text in (number, b"[%b]" % number, b'{"a":%b}' % number, b" %b\n" % number, b"[%b , 1]" % number):
        assert are_json([text, b"1"]) == accepts(text), text


@pytest.mark.parametrize(
    "text", [b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'{"\\udc00":1}', b"[" * 100, b"\xef\xbb\xbf1"]
)
def test_invalid_unicode_and_incomplete_texts_are_rejected(text: bytes) -> None:
    assert not accepts(text)
    assert not are_json([b'"good"', text])


@pytest.mark.parametrize(
    "texts",
    [
        (b"[1", b"2]"),
        (b"1,2",),
        (b'"a', b'b"'),
        (b"1", b""),
        (b"1", b"e5"),
        (b'{"a":1', b'"b":2}'),
        (b'"\xc3', b'\xa9"'),
    ],
)
def test_texts_that_are_valid_only_together_are_rejected(texts: tuple[bytes, ...]) -> None:
    assert not are_json(texts)


def test_common_texts_need_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_validation, "orjson", SimpleNamespace(JSONDecodeError=orjson.JSONDecodeError))
    uuid = b'{"id":"5e4a3e10-1e99-4e12-8e00-0123456789ab","unit":"EUR","amount":1.5e3}'
    assert are_json([uuid, '"é"'.encode(), b"-12", b" [true, null] "])


def test_line_breaks_between_tokens_become_spaces() -> None:
    texts = [b'{\r\n"a":\n1}', b'"\\n"', b"1"]
    assert json_lines(texts) == [b'{  "a": 1}', b'"\\n"', b"1"]
    assert json_lines(texts[1:]) == texts[1:]
