"""Comparison with Avro for Java: the same bytes, the same JSON, the same values for all readers.

golden/AvroGolden.java created the data with Avro 1.12.0. KafkaAvroSerializer writes these bytes after the frame.
"""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from headgate.serdes.avro import Decoder, Encoder, JsonEncoding, Schema, parse
from headgate.serdes.outcome import Poison, Reason

GOLDEN: list[dict[str, Any]] = json.loads((Path(__file__).parent / "golden" / "avro_golden.json").read_text("utf-8"))
FLOAT_MAX = 3.4028235e38
VALUES = [
    pytest.param(case, value, id=f"{case['name']}-{index}")
    for case in GOLDEN
    for index, value in enumerate(case["values"])
]


def document(text: str) -> Any:
    # Java's encoder writes no bytes for a record without fields.
    return json.loads(text or "{}")


def check_json(schema: Schema, ours: str, javas: str) -> None:
    """Check that both documents and both values are equal.

    Java prints a float with the digits of a double (1.100000023841858). Headgate prints the shortest text (1.1).
    """
    assert _rounded(document(ours)) == _rounded(document(javas))
    encoding, encoder = JsonEncoding(schema, tag_unions=True), Encoder(schema)
    assert encoder.encode(encoding.from_text(ours)) == encoder.encode(encoding.from_text(javas or "{}"))


def _rounded(value: Any) -> Any:
    """Round all numbers that fit a float to a float."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    if isinstance(value, float) and abs(value) <= FLOAT_MAX:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    return value


@pytest.mark.parametrize(("case", "value"), VALUES)
def test_the_bytes_equal_javas(case: dict[str, Any], value: dict[str, Any]) -> None:
    schema = parse(json.dumps(case["schema"]))
    body = bytes.fromhex(value["bytes"])
    tagged = JsonEncoding(schema, tag_unions=True).from_text(value["json"] or "{}")
    assert Encoder(schema).encode(tagged) == body
    read = Decoder(schema, tag_unions=True).decode(body)
    assert read == tagged
    check_json(schema, JsonEncoding(schema).to_text(read), value["json"])


@pytest.mark.parametrize(("case", "value"), VALUES)
def test_every_reader_decodes_the_values_of_javas(case: dict[str, Any], value: dict[str, Any]) -> None:
    writer, body = parse(json.dumps(case["schema"])), bytes.fromhex(value["bytes"])
    for declared, expected in zip(case["readers"], value["read"], strict=True):
        reader = parse(json.dumps(declared))
        outcome = Decoder(writer, reader, tag_unions=True).decode(body)
        if expected is None:
            assert isinstance(outcome, Poison), (declared, outcome)
            assert outcome.reason == Reason.UNRESOLVABLE
        else:
            assert not isinstance(outcome, Poison), (declared, expected, outcome)
            check_json(reader, JsonEncoding(reader).to_text(outcome), expected)
