"""Export and import of a registry as lines of JSON, with ids, versions, soft deletes and configuration.

Each line has a kind: `schema` (the JSON of a version), `config`, `mode`, `ids`, or a key or association
(`registry.service.export_import_keys`). An import is atomic.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
import orjson

from headgate.registry import limits
from headgate.registry.encryption_keys import Dek, Kek
from headgate.registry.errors import InvalidSchema, OperationNotPermitted, RegistryError
from headgate.registry.languages import type_named
from headgate.registry.model import Config, Content, Mode
from headgate.registry.service import export_import_keys
from headgate.registry.service.schema_lookup import fingerprint_in
from headgate.registry.service.submitted_schema import Environment, stored_schema
from headgate.registry.storage.base import Deleted, Selection, StoredVersion, StoreReader, StoreWriter
from headgate.registry.subjects import Subject, checked, checked_scope
from headgate.registry.wire import (
    WireConfig,
    WireMetadata,
    WireReference,
    WireRuleSet,
    config_changes,
    config_json,
    metadata_json,
    metadata_of,
    plain_text,
    references_json,
    references_of,
    rule_set_json,
    rule_set_of,
)


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    subject: str = ""
    version: int | None = None
    id: int | None = None
    guid: str | None = None
    schemaType: str | None = None
    references: list[WireReference] | None = None
    metadata: WireMetadata | None = None
    ruleSet: WireRuleSet | None = None
    schema: str | None = None
    ts: int | None = None
    deleted: bool = False
    config: WireConfig | None = None
    mode: str | None = None
    kek: Kek | None = None
    dek: Dek | None = None
    association: export_import_keys.AssociationLine | None = None


_LINE_DECODER: Final = msgspec.json.Decoder(_Line, strict=False)


@dataclass(frozen=True, slots=True)
class Imported:
    versions: int = 0
    configs: int = 0
    modes: int = 0
    keks: int = 0
    deks: int = 0
    associations: int = 0


def exported(store: StoreReader, selection: Selection, *, deleted: bool) -> Iterator[bytes]:
    """Yield the configuration and modes first, because they apply to the schemas, then the versions by subject.

    If permanently deleted schemas had the highest ids, an `ids` line contains the next id. Existing records with the
    old ids must not get another schema.
    """
    if not selection.prefix:
        for context, next_id in store.spent_ids():
            if selection.context in (None, context):
                yield _encoded({"kind": "ids", "subject": Subject(context, "").qualified, "id": next_id})
    for scope, config in store.configs(selection):
        yield _encoded({"kind": "config", "subject": scope.qualified, "config": config_json(config)})
    for scope, mode in store.modes(selection):
        yield _encoded({"kind": "mode", "subject": scope.qualified, "mode": mode})
    for version in store.walk(selection, Deleted.SHOWN if deleted else Deleted.HIDDEN):
        yield _encoded({"kind": "schema", **_version(version)})
    for line in export_import_keys.exported(store, selection, deleted=deleted):
        yield _encoded(line)


def _encoded(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"


def _version(version: StoredVersion) -> dict[str, Any]:
    content = version.content
    shown: dict[str, Any] = {
        "subject": version.subject.qualified,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
        "schemaType": content.type,
        "schema": content.text,
        "ts": version.created_ms,
        "deleted": version.deleted,
    }
    if content.references:
        shown["references"] = references_json(content.references)
    if content.metadata is not None:
        shown["metadata"] = metadata_json(content.metadata)
    if content.rule_set is not None:
        shown["ruleSet"] = rule_set_json(content.rule_set)
    return shown


def imported(environment: Environment, store: StoreWriter, lines: Iterable[bytes], now_ms: int) -> Imported:
    """Import all lines, in any order. An error names the number of the line, and nothing is imported."""
    versions: list[tuple[int, StoredVersion]] = []
    others: list[tuple[int, export_import_keys.Line]] = []
    configs = modes = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            read = _read(line)
            if read.kind == "schema":
                version = _stored(read, now_ms)
                _put(store, version)
                versions.append((number, version))
            elif read.kind == "config" and read.config is not None:
                store.put_config(_scope(read.subject), Config(**config_changes(read.config)))
                configs += 1
            elif read.kind == "mode" and read.mode is not None:
                store.put_mode(_scope(read.subject), _mode(read.mode))
                modes += 1
            elif read.kind == "ids" and read.id is not None and 1 <= read.id <= limits.ID_MAX + 1:
                store.spend_ids(_scope(read.subject).context, read.id)
            elif (other := _other(read)) is not None:
                export_import_keys.put(store, other)
                others.append((number, other))
            else:
                kinds = "schema, config, mode, ids, kek, dek or association"
                raise InvalidSchema(f"the kind must be {kinds}, not {read.kind}")
        except RegistryError as error:
            raise _at(number, error) from None
    # A reference may come before its target, so parse the schemas only now.
    for number, version in versions:
        try:
            stored_schema(environment, store, version)
        except InvalidSchema as error:
            raise _at(number, error) from None
    counts = dict.fromkeys(export_import_keys.COUNTS.values(), 0)
    for number, other in others:
        counts[export_import_keys.COUNTS[type(other)]] += 1
        try:
            export_import_keys.check(store, other)
        except RegistryError as error:
            raise _at(number, error) from None
    return Imported(len(versions), configs, modes, **counts)


def _other(read: _Line) -> export_import_keys.Line | None:
    """The key or association of a line."""
    found = {"kek": read.kek, "dek": read.dek, "association": read.association}
    return found.get(read.kind)


def _at(number: int, error: RegistryError) -> RegistryError:
    kind = OperationNotPermitted if isinstance(error, OperationNotPermitted) else InvalidSchema
    return kind(f"Line {number}: {error}")


def _read(line: bytes) -> _Line:
    if len(line) > limits.IMPORT_LINE_BYTES_MAX:
        raise InvalidSchema(f"more than {limits.IMPORT_LINE_BYTES_MAX} bytes")
    try:
        return _LINE_DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidSchema(f"not a line of an export: {plain_text(error)}") from None


def _scope(text: str) -> Subject:
    return checked_scope(text)


def _mode(text: str) -> Mode:
    try:
        return Mode(text.upper())
    except ValueError:
        raise InvalidSchema(f"unknown mode: {text}") from None


def _stored(read: _Line, now_ms: int) -> StoredVersion:
    if read.schema is None or not read.subject:
        raise InvalidSchema("a schema line needs a subject and a schema")
    if read.id is None or not 0 <= read.id <= limits.ID_MAX:
        raise InvalidSchema(f"invalid id: {read.id}")
    if read.version is None or not 1 <= read.version <= limits.VERSION_MAX:
        raise InvalidSchema(f"invalid version: {read.version}")
    content = Content(
        type_named(read.schemaType),
        read.schema,
        references_of(read.references),
        metadata_of(read.metadata, merged=True),
        rule_set_of(read.ruleSet, merged=True),
    )
    created_ms = now_ms if read.ts is None else read.ts
    return StoredVersion(
        checked(read.subject), read.version, read.id, content, content.fingerprint(), created_ms, read.deleted
    )


def _put(store: StoreWriter, version: StoredVersion) -> None:
    existing = store.schema(version.subject.context, version.id)
    if existing is not None and existing.content != version.content:
        raise OperationNotPermitted(
            f"Overwrite new schema with id {version.id} in context {version.subject.qualified_context} "
            "is not permitted."
        )
    present = store.version(version.subject, version.version)
    if present is not None and present.id != version.id:
        raise OperationNotPermitted(
            f"Subject {version.subject.qualified} has a version {version.version} with id {present.id} already"
        )
    fingerprint = fingerprint_in(store, version.subject.context, version.content)
    store.put_version(replace(version, fingerprint=fingerprint))
