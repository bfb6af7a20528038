"""Writers' schemas in an executor: those that came with the plan, and the registry for what was registered since."""

import time
import weakref
from contextlib import suppress
from functools import cached_property
from uuid import UUID

from headgate.serdes import InvalidSchema, RegisteredSchema
from headgate.serdes.avro import Schema, parse
from headgate.serdes.client import RegistryClient, RegistryClientError, UnknownSchema
from headgate.serdes.outcome import Reason
from headgate.spark_udfs.spec.policy import NewVersionError, OnNewVersion
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions

UNKNOWN_IDS_FEW = 5
"""Unknown ids after which the client is shown one that there is: by it, it learns where the registry's ids end, and
does not ask for garbage id by id. What came with the plan it has never seen."""

UNKNOWN_GUIDS_MAX = 50
UNKNOWN_GUIDS_SECONDS = 30.0
"""Unknown guids that are asked for in so much time. Guids have no end that could be learnt; what is not asked for is
REGISTRY_UNAVAILABLE, since nobody knows."""


class Writers:
    """A `SchemaSource`. The client is made when an id is met that the plan did not bring; it remembers the answers,
    unknown ids and outages for a while too, so that neither garbage nor an outage becomes load.

    Schemas that record headers name by guid have numbers of their own below 0, which `number_of` gives.
    """

    def __init__(
        self, reader: Reader, registry: RegistryOptions, on_new_version: OnNewVersion = OnNewVersion.KEEP
    ) -> None:
        self._reader = reader
        self._known = dict(reader.writers)
        self._numbers: dict[UUID, int] = {}
        self._registry = registry
        self._on_new_version = on_new_version
        self._unknown_ids: set[int] = set()
        self._unknown_guids: list[float] = []

    @cached_property
    def client(self) -> RegistryClient:
        client = self._registry.client()
        # A worker lets go of decoders that it has not used for long; their connections end with them.
        weakref.finalize(self, client.close)
        return client

    def text(self, schema_id: int) -> SchemaText | Reason:
        """The schema, or why there is none. Raises `NewVersionError` where the policy asks for it, and nothing else."""
        known = self._known.get(schema_id)
        if known is not None:
            return self._unless_rules(known)
        try:
            learnt = self._learnt(self.client.schema_by_id(schema_id), f"id {schema_id}")
        except UnknownSchema:
            self._note_unknown(schema_id)
            return Reason.UNKNOWN_SCHEMA
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        self._known[schema_id] = learnt
        return self._unless_rules(learnt)

    def rule_of(self, schema_id: int) -> str | None:
        """The rule that keeps payloads of a known schema from being read."""
        known = self._known.get(schema_id)
        return None if known is None else self._rule_for(known)

    def _rule_for(self, known: SchemaText) -> str | None:
        schema = self._reader.schema
        is_migrated = (known.text, known.references) != (schema.text, schema.references)
        on_migration = (known.migration_rule or schema.migration_rule) if is_migrated else None
        return known.read_rule or schema.read_rule or on_migration

    def _unless_rules(self, known: SchemaText) -> SchemaText | Reason:
        return known if self._rule_for(known) is None else Reason.RULES_NOT_EXECUTED

    def _note_unknown(self, schema_id: int) -> None:
        if len(self._unknown_ids) >= UNKNOWN_IDS_FEW:
            return
        self._unknown_ids.add(schema_id)
        if len(self._unknown_ids) == UNKNOWN_IDS_FEW:
            known = next((number for number in self._known if number >= 0), None)
            with suppress(RegistryClientError):
                if known is not None:
                    self.client.schema_by_id(known)

    def number_of(self, guid: UUID) -> int | Reason:
        """A number below 0 by which `text` knows the schema from now on."""
        number = self._numbers.get(guid)
        if number is not None:
            return number
        now = time.monotonic()
        self._unknown_guids = [at for at in self._unknown_guids if now - at < UNKNOWN_GUIDS_SECONDS]
        if len(self._unknown_guids) >= UNKNOWN_GUIDS_MAX:
            return Reason.REGISTRY_UNAVAILABLE
        try:
            learnt = self._learnt(self.client.schema_by_guid(guid), f"guid {guid}")
        except UnknownSchema:
            self._unknown_guids.append(now)
            return Reason.UNKNOWN_SCHEMA
        except RegistryClientError:
            return Reason.REGISTRY_UNAVAILABLE
        number = self._numbers[guid] = -1 - len(self._numbers)
        self._known[number] = learnt
        return number

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

    def _learnt(self, registered: RegisteredSchema, name: str) -> SchemaText:
        learnt, definition = SchemaText.fetch(self.client, registered), registered.definition
        reader = self._reader
        if self._on_new_version is OnNewVersion.KEEP or reader.subject is None or reader.newest_version is None:
            return learnt
        try:
            version = self.client.lookup(reader.subject, definition).version
        except UnknownSchema:
            # Of another subject: several record types share a topic. It is no version of ours.
            return learnt
        if version is not None and version > reader.newest_version:
            raise NewVersionError(reader.subject, reader.newest_version, version, name, self._on_new_version)
        return learnt
