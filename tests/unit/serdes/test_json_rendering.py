import struct

import pytest

from headgate.serdes import ReadOptions, protobuf_schema
from headgate.serdes.avro import JsonEncoding, parse
from headgate.serdes.codecs import WholeSchema, reader_of
from headgate.serdes.framing import Frame

MESSAGE = 'syntax = "proto3"; message M { string foo_bar = 1; int32 count = 2; repeated int64 big = 3; M inner = 4; }'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.1, "1.1"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1 / 3, "0.33333334"),
        (16777216.0, "16777216.0"),
        (3.4028234663852886e38, "3.4028235e+38"),
        (1.401298464324817e-45, "1e-45"),
        (1.17549435e-38, "1.1754944e-38"),
        (5.0, "5.0"),
        (float("inf"), '"Infinity"'),
    ],
)
def test_a_float_is_written_with_the_fewest_digits_that_read_back(number: float, text: str) -> None:
    encoding = JsonEncoding(parse('"float"'))
    stored = struct.unpack("<f", struct.pack("<f", number))[0]
    assert encoding.to_text(stored) == text
    assert struct.pack("<f", encoding.from_text(text)) == struct.pack("<f", number)


def test_doubles_keep_their_digits() -> None:
    assert JsonEncoding(parse('"double"')).to_text(1.100000023841858) == "1.100000023841858"


def test_protobuf_messages_are_printed_as_confluent_prints_them() -> None:
    options = ReadOptions(protobuf_as_dict=True, protobuf_json_names=True)
    reader = reader_of(WholeSchema(protobuf_schema(MESSAGE), {}), None, options)
    body = b"\x00" + b"\x0a\x01a" + b"\x22\x00"
    assert reader.read(Frame(1, None, body)) == {
        "fooBar": "a",
        "count": 0,
        "big": [],
        "inner": {"fooBar": "", "count": 0, "big": []},
    }
