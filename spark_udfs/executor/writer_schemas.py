"""Writer schemas in an executor: those of the query plan, and later ones from the registry."""

import time
import weakref
from contextlib import suppress
from functools import cached_property
from uuid import UUID

from headgate.serdes import InvalidSchema, RegisteredSchema
from headgate.serdes.avro import Schema, parse
from headgate.serdes.client import RegistryClient, RegistryClientError, UnknownSchema
from headgate.serdes.framing import Frame
from headgate.serdes.outcome import Reason
from headgate.spark_udfs.executor.registry_outage import RegistryOutage
from headgate.spark_udfs.spec.policy import NewVersionError, OnNewVersion, OnRegistryDown
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions

UNKNOWN_IDS_FEW = 5
"""After this many unknown ids, fetch a known one. From it the client learns the range of the registry's ids, and does
not request every invalid id. It has not seen the schemas of the query plan."""

UNKNOWN_GUIDS_MAX = 50
UNKNOWN_GUIDS_SECONDS = 30.0
"""Rate limit for requests of unknown guids, which have no range. Beyond it the reason is REGISTRY_UNAVAILABLE."""


class WriterSchemas:
    """A `SchemaSource`. It creates a registry client for the first id that is not in the plan. The client caches
    responses, unknown ids and outages, so that neither poison nor an outage overloads the registry.

    Schemas that record headers identify by guid get negative numbers (`number_of`).
    """

    def __init__(
        self,
        reader: Reader,
        registry: RegistryOptions,
        on_new_version: OnNewVersion = OnNewVersion.KEEP,
        on_registry_down: OnRegistryDown = OnRegistryDown.WAIT,
    ) -> None:
        self._reader = reader
        self._known = dict(reader.writers)
        self._numbers: dict[UUID, int] = {}
        self._registry = registry
        self._on_new_version = on_new_version
        self._outage = RegistryOutage(on_registry_down, registry.wait_seconds_max)
        self._unknown_ids: set[int] = set()
        self._unknown_guids: list[float] = []

    @cached_property
    def client(self) -> RegistryClient:
        client = self._registry.client()
        # The worker evicts unused decoders. That closes their connections.
        weakref.finalize(self, client.close)
        return client

    def text(self, schema_id: int) -> SchemaText | Reason:
        """The schema, or a reason. Raises only `NewVersionError` and `RegistryDownError`, if a policy requires it."""
        found = self.unchecked(schema_id)
        return found if isinstance(found, Reason) else self._checked(found)

    def unchecked(self, schema_id: int) -> SchemaText | Reason:
        """Like `text`, even if a rule prevents reading."""
        known = self._known.get(schema_id)
        if known is not None:
            return known
        try:
            fetched = self._outage.request(
                schema_id, lambda: self._fetched(self.client.schema_by_id(schema_id), f"id {schema_id}")
            )
        except UnknownSchema:
            self._count_unknown(schema_id)
            return Reason.UNKNOWN_SCHEMA
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        self._known[schema_id] = fetched
        return fetched

    def is_version_of(self, number: int, subject: str) -> bool:
        """Whether a fetched schema is registered under the subject. Raises `RegistryClientError`."""
        guid = next((guid for guid, known in self._numbers.items() if known == number), None)

        def send() -> bool:
            found = self.client.schema_by_id(number) if guid is None else self.client.schema_by_guid(guid)
            try:
                self.client.lookup(subject, found.definition)
            except UnknownSchema:
                return False
            return True

        return self._outage.request(number, send)

    def rule_of(self, schema_id: int) -> str | None:
        """The rule that prevents reading payloads of a known schema."""
        known = self._known.get(schema_id)
        return None if known is None else self._rule_for(known)

    def _rule_for(self, known: SchemaText) -> str | None:
        schema = self._reader.schema
        is_migrated = (known.text, known.references) != (schema.text, schema.references)
        on_migration = (known.migration_rule or schema.migration_rule) if is_migrated else None
        return known.read_rule or schema.read_rule or on_migration

    def _checked(self, known: SchemaText) -> SchemaText | Reason:
        return known if self._rule_for(known) is None else Reason.RULES_NOT_EXECUTED

    def _count_unknown(self, schema_id: int) -> None:
        if len(self._unknown_ids) >= UNKNOWN_IDS_FEW:
            return
        self._unknown_ids.add(schema_id)
        if len(self._unknown_ids) == UNKNOWN_IDS_FEW:
            known = next((number for number in self._known if number >= 0), None)
            with suppress(RegistryClientError):
                if known is not None:
                    self.client.schema_by_id(known)

    def number_of(self, guid: UUID) -> int | Reason:
        """The negative number of a guid, for `text`."""
        number = self._numbers.get(guid)
        if number is not None:
            return number
        now = time.monotonic()
        self._unknown_guids = [at for at in self._unknown_guids if now - at < UNKNOWN_GUIDS_SECONDS]
        if len(self._unknown_guids) >= UNKNOWN_GUIDS_MAX:
            return Reason.REGISTRY_UNAVAILABLE
        try:
            fetched = self._outage.request(
                guid, lambda: self._fetched(self.client.schema_by_guid(guid), f"guid {guid}")
            )
        except UnknownSchema:
            self._unknown_guids.append(now)
            return Reason.UNKNOWN_SCHEMA
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        number = self._numbers[guid] = -1 - len(self._numbers)
        self._known[number] = fetched
        return number

    def number_of_frame(self, frame: Frame) -> int | Reason:
        """The schema id of a frame, or the number of its guid."""
        if frame.schema_guid is not None:
            return self.number_of(frame.schema_guid)
        assert frame.schema_id is not None
        return frame.schema_id

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

    def _fetched(self, registered: RegisteredSchema, name: str) -> SchemaText:
        fetched, definition = SchemaText.fetch(self.client, registered), registered.definition
        reader = self._reader
        if self._on_new_version is OnNewVersion.KEEP or reader.subject is None or reader.newest_version is None:
            return fetched
        try:
            version = self.client.lookup(reader.subject, definition).version
        except UnknownSchema:
            # A schema of another subject: several record types can share a topic.
            return fetched
        if version is not None and version > reader.newest_version:
            raise NewVersionError(reader.subject, reader.newest_version, version, name, self._on_new_version)
        return fetched
