"""The `SchemaSource` of the columnar decoder that reads Avro schemas from a registry."""

import time

from headgate.registry.errors import InvalidSchema
from headgate.registry.model import SchemaType
from headgate.serdes.avro.schema import Schema, parse
from headgate.serdes.client.cache import BoundedCache
from headgate.serdes.client.errors import RegistryClientError, UnknownSchema
from headgate.serdes.client.sync import RegistryClient
from headgate.serdes.outcome import Reason
from headgate.serdes.rules import rule_on_read
from headgate.serdes.schemas import SchemaDefinition


class RegistrySource:
    """Safe to share between threads. The client caches schemas, unknown ids and outages."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._schemas: BoundedCache[int, Schema | Reason] = BoundedCache(client.settings.schemas_max, time.monotonic)

    def writer_schema(self, schema_id: int) -> Schema | Reason:
        """The schema, or the reason why it is not available. Never raises."""
        known = self._schemas.get(schema_id)
        if known is not None:
            return known
        try:
            registered = self._client.schema_by_id(schema_id)
            found = self._parsed(registered.definition)
            if rule_on_read(registered.rules or ()) is not None:
                found = Reason.RULES_NOT_EXECUTED
        except UnknownSchema:
            return Reason.UNKNOWN_SCHEMA
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        except InvalidSchema:
            found = Reason.UNRESOLVABLE
        self._schemas.put(schema_id, found)
        return found

    def _parsed(self, definition: SchemaDefinition) -> Schema | Reason:
        if definition.type is not SchemaType.AVRO:
            return Reason.UNRESOLVABLE
        return parse(definition.text, self._client.reference_texts(definition))
