"""The interface between the columnar decoder and a source of writer schemas, such as a registry client."""

from collections.abc import Mapping
from typing import Protocol

from headgate.serdes.avro.schema import Schema, parse
from headgate.serdes.outcome import Reason


class SchemaSource(Protocol):
    def writer_schema(self, schema_id: int) -> Schema | Reason:
        """The schema, or the reason why it is not available.

        The reason is UNKNOWN_SCHEMA, REGISTRY_UNAVAILABLE, RULES_NOT_EXECUTED, or UNRESOLVABLE if it is not Avro.

        The decoder calls this once per batch for each id without a known schema. It must not raise.
        """
        ...


class FixedSchemas:
    """A fixed set of schemas by id, for tests and for a Spark plan that contains its schemas."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._schemas = {schema_id: parse(text) for schema_id, text in texts.items()}

    def writer_schema(self, schema_id: int) -> Schema | Reason:
        return self._schemas.get(schema_id, Reason.UNKNOWN_SCHEMA)
