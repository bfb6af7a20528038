"""Schemas into a registry, for tests that write payloads by hand."""

import json
from typing import Any

from headgate.serdes import RegistryClient, avro_schema


def registered(client: RegistryClient, subject: str, schema: dict[str, Any]) -> int:
    """The id of an Avro schema that must be accepted."""
    schema_id = client.register(subject, avro_schema(json.dumps(schema))).id
    assert schema_id is not None
    return schema_id
