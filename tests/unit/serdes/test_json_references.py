"""JSON values are encoded and decoded with all JSON Schemas that a registry accepts."""

import json

import pytest

from headgate.serdes.codec import ReadOptions, WriteOptions
from headgate.serdes.errors import EncodeError
from headgate.serdes.framing import Frame
from headgate.serdes.json_body import JsonReader, JsonWriter
from headgate.serdes.outcome import Poison

SCHEMAS = {
    "Kafka Connect": {"properties": {"a": {"$ref": "#/$defs/X"}}, "definitions": {"X": {"type": "integer"}}},
    "an anchor in $id": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"a": {"$ref": "#id1"}},
        "$defs": {"X": {"$id": "#id1", "type": "integer"}},
    },
    "an import with empty alternatives": {"allOf": [], "properties": {"a": {"type": "integer"}}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_values_are_written_and_read(schema: dict[str, object]) -> None:
    text = json.dumps(schema)
    writer = JsonWriter(text, {}, WriteOptions())
    reader = JsonReader((text, {}), None, ReadOptions())
    body = writer.write({"a": 1}).content
    assert reader.read(Frame(1, None, body)) == {"a": 1}
    with pytest.raises(EncodeError, match="integer"):
        writer.write({"a": "x"})
    assert isinstance(reader.read(Frame(1, None, b'{"a": "x"}')), Poison)
