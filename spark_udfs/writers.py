"""Writers' schemas in an executor: those that came with the plan, and the registry for what was registered since."""

from functools import cached_property

from serdes import InvalidSchema
from serdes.avro import Schema, parse
from serdes.client import RegistryClient, RegistryClientError, UnknownSchema
from serdes.outcome import Reason
from spark_udfs.reader_choice import Reader, SchemaText, schema_text
from spark_udfs.registry_options import RegistryOptions


class Writers:
    """A `SchemaSource`. The client is made when an id is met that the plan did not bring, and remembers the answers."""

    def __init__(self, reader: Reader, registry: RegistryOptions) -> None:
        self._known = dict(reader.writers)
        self._registry = registry

    @cached_property
    def client(self) -> RegistryClient:
        return self._registry.client()

    def text(self, schema_id: int) -> SchemaText | Reason:
        """The schema, or why there is none. Raises nothing."""
        known = self._known.get(schema_id)
        if known is not None:
            return known
        try:
            learnt = schema_text(self.client, self.client.schema_by_id(schema_id).definition)
        except UnknownSchema:
            return Reason.UNKNOWN_SCHEMA
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        self._known[schema_id] = learnt
        return learnt

    def writer_schema(self, schema_id: int) -> Schema | Reason:
        found = self.text(schema_id)
        if isinstance(found, Reason):
            return found
        if found.language != "AVRO":
            return Reason.UNRESOLVABLE
        try:
            return parse(found.text, dict(found.references))
        except InvalidSchema:
            return Reason.UNRESOLVABLE
