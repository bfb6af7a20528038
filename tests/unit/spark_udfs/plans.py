"""Decodings as the driver plans them, and payloads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyarrow import lib as pa

from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.reader import Language, Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions

NOBODY = RegistryOptions(("http://127.0.0.1:9",), attempts_max=1)
"""A registry that refuses connections."""


def text_of(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def schema_text(schema: Any, language: Language = "AVRO") -> SchemaText:
    return SchemaText(language, text_of(schema))


def decoding(
    reader: Any,
    writers: Mapping[int, Any] | None = None,
    *,
    language: Language = "AVRO",
    fields: tuple[str, ...] | None = None,
    on_poison: OnPoison = OnPoison.DEAD_LETTER,
    on_new_version: OnNewVersion = OnNewVersion.KEEP,
    on_registry_down: OnRegistryDown = OnRegistryDown.DEAD_LETTER,
    registry: RegistryOptions = NOBODY,
    subject: str | None = None,
    newest_version: int | None = None,
) -> Decoding:
    known = {1: reader} if writers is None else writers
    texts = tuple((schema_id, schema_text(schema, language)) for schema_id, schema in known.items())
    chosen = Reader(schema_text(reader, language), fields, subject, writers=texts, newest_version=newest_version)
    return Decoding(chosen, registry, on_poison, on_new_version, on_registry_down)


def payload(schema: Any, value: object, schema_id: int = 1) -> bytes:
    return frame(schema_id, Encoder(parse(text_of(schema))).encode(value))


def binary(rows: Sequence[bytes | None]) -> pa.Array:
    return pa.array(rows, pa.binary())


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind, **more} for field, kind, more in (_field(f) for f in fields)],
    }


def _field(field: Any) -> tuple[str, Any, dict[str, Any]]:
    return (field[0], field[1], field[2] if len(field) > 2 else {})
