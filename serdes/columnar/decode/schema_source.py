"""Where writers' schemas come from: the seam between the columnar decoder and whoever asks the registry."""

from collections.abc import Mapping
from typing import Protocol

from headgate.serdes.avro.schema import Schema, parse
from headgate.serdes.outcome import Reason


class SchemaSource(Protocol):
    def writer_schema(self, schema_id: int) -> Schema | Reason:
        """The schema, or the reason why there is none.

        UNKNOWN_SCHEMA, REGISTRY_UNAVAILABLE, RULES_NOT_EXECUTED, or UNRESOLVABLE if it is not Avro.

        Asked once per batch for each id that was not answered with a schema before; raises nothing.
        """
        ...


class FixedSchemas:
    """Schemas known beforehand, by id: for tests, and for a Spark plan that carries its schemas along."""

    def __init__(self, texts: Mapping[int, str]) -> None:
        self._schemas = {schema_id: parse(text) for schema_id, text in texts.items()}

    def writer_schema(self, schema_id: int) -> Schema | Reason:
        return self._schemas.get(schema_id, Reason.UNKNOWN_SCHEMA)
