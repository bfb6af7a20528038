"""The use cases of the registry client, and its cache.

Schemas by id, guid and version never change, so they are cached without expiry, up to a limit. The latest version
expires. Unknown ids and outages are cached for a short time, so that corrupt records do not cause many requests.
"""

from collections.abc import Callable, Generator, Hashable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from headgate.registry.limits import ID_MAX, REFERENCE_DEPTH_MAX, REFERENCES_MAX
from headgate.registry.model import Reference, SchemaType
from headgate.serdes.client.cache import BoundedCache
from headgate.serdes.client.errors import (
    RegistryClientError,
    RegistryUnavailable,
    RegistryUnreachable,
    RequestRefused,
    UnknownSchema,
)
from headgate.serdes.client.failover import FailoverRequests
from headgate.serdes.client.settings import RegistrySettings
from headgate.serdes.client.steps import Effect, Reply, Steps, Turn
from headgate.serdes.rules import RulePolicy, Rules, parse_rules
from headgate.serdes.schemas import RegisteredSchema, SchemaDefinition

ResponseJson = dict[str, object] | list[object]

UNKNOWN_IDS_FEW: Final = 10
"""After this number of unknown ids, the client asks for the highest id, so that corrupt records do not cause one
request per id."""

IDS_AHEAD_MAX: Final = 100_000
"""How far a new id may exceed the highest known id until the client asks again."""

_OUTAGE: Final = "outage"
_LAST: Final = "last"


class RegistryCore:
    """The use cases, as generators of steps for a client."""

    def __init__(self, settings: RegistrySettings, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._settings = settings
        self._requests = FailoverRequests(settings, random)
        self._known: BoundedCache[Hashable, RegisteredSchema] = BoundedCache(settings.schemas_max, clock)
        self._by_text: BoundedCache[Hashable, RegisteredSchema] = BoundedCache(settings.schemas_max, clock)
        self._stale: BoundedCache[str, RegisteredSchema] = BoundedCache(settings.schemas_max, clock)
        self._failed: BoundedCache[Hashable, RegistryClientError] = BoundedCache(settings.schemas_max, clock)
        self._outage: BoundedCache[str, RegistryClientError] = BoundedCache(1, clock)
        self._last_id: BoundedCache[str, int] = BoundedCache(1, clock)
        self._some_id: int | None = None
        self._unknown_ids = 0

    def schema_by_id(self, schema_id: int) -> Steps[RegisteredSchema]:
        def send() -> Steps[RegisteredSchema]:
            end = (self._last_id.get(_LAST) or ID_MAX) + IDS_AHEAD_MAX
            if not 0 <= schema_id <= min(end, ID_MAX):
                raise UnknownSchema(f"schema {schema_id}: the highest id in the registry is much lower")
            try:
                response = yield from self._requests.send("GET", ("schemas", "ids", str(schema_id)))
            except UnknownSchema:
                yield from self._learn_last_id()
                raise
            self._some_id = schema_id
            return self._registered(response, schema_id=schema_id)

        return self._remembered(self._known, ("id", schema_id), None, send)

    def _learn_last_id(self) -> Steps[None]:
        self._unknown_ids += 1
        if self._unknown_ids < UNKNOWN_IDS_FEW or self._some_id is None or self._last_id.get(_LAST) is not None:
            return
        self._unknown_ids = 0
        path = ("schemas", "ids", str(self._some_id))
        try:
            response = yield from self._requests.send("GET", path, {"fetchMaxId": "true"})
        except RegistryClientError:
            return
        last = response.get("maxId") if isinstance(response, dict) else None
        if isinstance(last, int):
            self._last_id.put(_LAST, last, self._settings.unknown_ttl_seconds)

    def schema_by_guid(self, guid: UUID) -> Steps[RegisteredSchema]:
        def send() -> Steps[RegisteredSchema]:
            response = yield from self._requests.send("GET", ("schemas", "guids", str(guid)))
            return self._registered(response, guid=guid)

        return self._remembered(self._known, ("guid", guid), None, send)

    def version(self, subject: str, version: int) -> Steps[RegisteredSchema]:
        """A version, including soft-deleted ones, because references to them must stay readable."""

        def send() -> Steps[RegisteredSchema]:
            path = ("subjects", subject, "versions", str(version))
            return self._registered((yield from self._requests.send("GET", path, {"deleted": "true"})))

        return self._remembered(self._known, ("version", subject, version), None, send)

    def latest(self, subject: str) -> Steps[RegisteredSchema]:
        """The latest version. During an outage: the last known latest version."""

        def send() -> Steps[RegisteredSchema]:
            response = yield from self._requests.send("GET", ("subjects", subject, "versions", "latest"))
            return self._registered(response)

        try:
            found = yield from self._remembered(
                self._known, ("latest", subject), self._settings.latest_ttl_seconds, send
            )
        except RegistryUnavailable:
            stale = self._stale.get(subject)
            if stale is None:
                raise
            return stale
        self._stale.put(subject, found)
        return found

    def register(self, subject: str, schema: SchemaDefinition, normalize: bool = False) -> Steps[RegisteredSchema]:
        """Register the schema, or find it if it is registered. The response may not contain its version."""

        def send() -> Steps[RegisteredSchema]:
            path = ("subjects", subject, "versions")
            response = yield from self._requests.send("POST", path, _normalize(normalize), _body(schema))
            return self._registered(response, definition=schema, subject=subject)

        return self._remembered(self._by_text, ("register", subject, schema, normalize), None, send)

    def lookup(self, subject: str, schema: SchemaDefinition, normalize: bool = False) -> Steps[RegisteredSchema]:
        """The schema as registered under the subject. Raises `UnknownSchema`."""

        def send() -> Steps[RegisteredSchema]:
            path = ("subjects", subject)
            response = yield from self._requests.send("POST", path, _normalize(normalize), _body(schema))
            return self._registered(response, definition=schema, subject=subject)

        return self._remembered(self._by_text, ("lookup", subject, schema, normalize), None, send)

    def reference_texts(self, schema: SchemaDefinition) -> Steps[dict[str, str]]:
        """The texts of all direct and indirect references by name, dependencies first."""
        texts: dict[str, str] = {}
        yield from self._collect(schema.references, texts, 0)
        return texts

    def _collect(self, references: tuple[Reference, ...], texts: dict[str, str], depth: int) -> Steps[None]:
        if depth > REFERENCE_DEPTH_MAX:
            raise RequestRefused(422, 42201, f"the chain of references is longer than {REFERENCE_DEPTH_MAX}")
        for reference in references:
            if reference.name in texts:
                continue
            if len(texts) >= REFERENCES_MAX:
                raise RequestRefused(422, 42201, f"the schema refers to more than {REFERENCES_MAX} others")
            found = yield from self.version(reference.subject, reference.version)
            yield from self._collect(found.definition.references, texts, depth + 1)
            texts.setdefault(reference.name, found.definition.text)

    def _remembered(
        self,
        cache: BoundedCache[Hashable, RegisteredSchema],
        key: Hashable,
        ttl_seconds: float | None,
        send: Callable[[], Steps[RegisteredSchema]],
    ) -> Generator[Effect, Reply, RegisteredSchema]:
        known = cache.get(key)
        if known is not None:
            return known
        if self._failure(key) is None:
            # Another thread may have sent the same request during the wait.
            yield Turn()
            known = cache.get(key)
            if known is not None:
                return known
        failed = self._failure(key)
        if failed is not None:
            raise copy(failed)
        try:
            response = yield from send()
        except RegistryUnreachable as error:
            self._outage.put(_OUTAGE, error, self._settings.unavailable_ttl_seconds)
            raise
        except UnknownSchema as error:
            self._failed.put(key, error, self._settings.unknown_ttl_seconds)
            raise
        except (RegistryUnavailable, RequestRefused) as error:
            self._failed.put(key, error, self._settings.unavailable_ttl_seconds)
            raise
        cache.put(key, response, ttl_seconds)
        return response

    def rules_of(self, registered: RegisteredSchema) -> Steps[Rules]:
        """The rules of a schema. The response to a registration may omit inherited rules."""
        if registered.rules is not None or registered.id is None:
            return registered.rules or ()
        return (yield from self.schema_by_id(registered.id)).rules or ()

    def _registered(self, response: ResponseJson, **known: Any) -> RegisteredSchema:
        found = _registered(response, **known)
        return replace(found, rules=()) if self._settings.rules is RulePolicy.IGNORE else found

    def _failure(self, key: Hashable) -> RegistryClientError | None:
        return self._failed.get(key) or self._outage.get(_OUTAGE)


def _normalize(normalize: bool) -> Mapping[str, str]:
    return {"normalize": "true"} if normalize else {}


def _body(schema: SchemaDefinition) -> dict[str, object]:
    body: dict[str, object] = {"schema": schema.text}
    if schema.type is not SchemaType.AVRO:
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [
            {"name": reference.name, "subject": reference.subject, "version": reference.version}
            for reference in schema.references
        ]
    return body


def _registered(
    response: ResponseJson,
    *,
    definition: SchemaDefinition | None = None,
    schema_id: int | None = None,
    guid: UUID | None = None,
    subject: str | None = None,
) -> RegisteredSchema:
    try:
        if not isinstance(response, dict):
            raise TypeError("not an object")
        fields: dict[str, Any] = response
        found = definition or SchemaDefinition(
            SchemaType(fields.get("schemaType") or "AVRO"),
            _text(fields["schema"]),
            tuple(
                Reference(_text(entry["name"]), _text(entry["subject"]), int(entry["version"]))
                for entry in fields.get("references") or ()
            ),
        )
        return RegisteredSchema(
            found,
            schema_id if schema_id is not None else (None if guid else int(fields["id"])),
            guid or (UUID(fields["guid"]) if fields.get("guid") else None),
            fields.get("subject") or subject,
            fields.get("version"),
            parse_rules(fields.get("ruleSet")) if "schema" in fields else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RegistryUnavailable(f"not a response of a schema registry: {error!r:.200}") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not a text")
    return value
