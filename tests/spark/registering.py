"""Register schemas, for tests that build payloads themselves."""

import json
from typing import Any

from headgate.serdes import RegistryClient, avro_schema


def registered(client: RegistryClient, subject: str, schema: dict[str, Any]) -> int:
    """Register an Avro schema and return its id."""
    schema_id = client.register(subject, avro_schema(json.dumps(schema))).id
    assert schema_id is not None
    return schema_id
