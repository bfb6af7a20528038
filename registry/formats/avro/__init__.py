"""Avro schemas: parse, check, write in canonical and normalized form.

`parse` is the entry point. `registry.compatibility.avro` compares two schemas. `serdes.avro` reads data with a schema.
"""

from headgate.registry.formats.avro.schema import AvroSchema, parse

__all__ = ["AvroSchema", "parse"]
