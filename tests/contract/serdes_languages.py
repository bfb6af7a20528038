"""One test case per schema language, for tests that run for all languages."""

from dataclasses import dataclass, field

from headgate.serdes import SchemaDefinition, avro_schema, json_schema, protobuf_schema


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    schema: SchemaDefinition
    record_name: str
    value: dict[str, object]
    body: bytes
    """The bytes after the schema id, as Java's serializer writes them."""
    later: SchemaDefinition
    """A compatible next version with one more field."""
    bad_value: dict[str, object]
    bad_bodies: tuple[tuple[bytes, str], ...] = field(default=())
    """Bodies, each with the name of its reason."""


AVRO = Language(
    "avro",
    avro_schema(
        '{"type":"record","name":"Order","namespace":"com.acme","fields":[{"name":"id","type":"long"},'
        '{"name":"note","type":["null","string"],"default":null}]}'
    ),
    "com.acme.Order",
    {"id": 150, "note": "hi"},
    bytes.fromhex("ac02 02 04 6869"),
    avro_schema(
        '{"type":"record","name":"Order","namespace":"com.acme","fields":[{"name":"id","type":"long"},'
        '{"name":"note","type":["null","string"],"default":null},{"name":"count","type":"int","default":1}]}'
    ),
    {"id": "x"},
    ((b"", "TRUNCATED"), (b"\xac", "TRUNCATED"), (b"\xac\x02\x04", "CORRUPT"), (b"\xac\x02\x00\x00", "TRAILING_BYTES")),
)

JSON = Language(
    "json",
    json_schema(
        '{"type":"object","title":"Order","properties":{"id":{"type":"integer"},"note":{"type":"string"}},'
        '"required":["id"]}'
    ),
    "Order",
    {"id": 150, "note": "hï"},
    '{"id":150,"note":"hï"}'.encode(),
    json_schema(
        '{"type":"object","title":"Order","properties":{"id":{"type":"integer"},"note":{"type":"string"},'
        '"count":{"type":"integer"}},"required":["id"]}'
    ),
    {"note": "no id"},
    (
        (b"", "TRUNCATED"),
        (b'{"id": 15', "TRUNCATED"),
        (b'{"note": "h', "TRUNCATED"),
        (b'{"id": 1}}', "TRAILING_BYTES"),
        (b'{"id": nope}', "CORRUPT"),
        (b'{"id": NaN}', "CORRUPT"),
        (b'"\xff"', "CORRUPT"),
        (b'{"id": "x"}', "INVALID_VALUE"),
        (b"[" * 101 + b"]" * 101, "TOO_DEEP"),
        (b"[" * 100_000, "TOO_DEEP"),
    ),
)

PROTOBUF = Language(
    "protobuf",
    protobuf_schema(
        'syntax = "proto3";\npackage com.acme;\n\nmessage Order {\n  int64 id = 1;\n  string note = 2;\n'
        "  Order inner = 3;\n}\n"
    ),
    "com.acme.Order",
    {"id": "150", "note": "hi"},
    bytes.fromhex("00 08 9601 12 02 6869"),
    protobuf_schema(
        'syntax = "proto3";\npackage com.acme;\n\nmessage Order {\n  int64 id = 1;\n  string note = 2;\n'
        "  Order inner = 3;\n  int32 count = 4;\n}\n"
    ),
    {"id": "many"},
    (
        (b"", "TRUNCATED"),
        (b"\x02", "TRUNCATED"),
        (b"\x02\x08", "CORRUPT"),
        (b"\x01", "CORRUPT"),
        (b"\x00\x08", "TRUNCATED"),
        (b"\x00\x12\x05hi", "TRUNCATED"),
        (b"\x00\x12\x02\xc3\x28", "CORRUPT"),
        (b"\x00\x07", "CORRUPT"),
        (b"\x00\x1a\x02\x12\x05", "TRUNCATED"),
    ),
)

LANGUAGES = (AVRO, JSON, PROTOBUF)
