"""The model as JSON, in the format of Confluent's API. Empty fields are omitted."""

from collections.abc import Sequence
from typing import Any

import orjson

from headgate.registry.model import Content
from headgate.registry.service.schema_tags import TagChange
from headgate.registry.storage.base import Change, StoredVersion
from headgate.registry.wire import metadata_json, references_json, rule_set_json


def encoded(value: Any) -> bytes:
    return orjson.dumps(value)


def _content(content: Content, text: str | None) -> dict[str, Any]:
    shown: dict[str, Any] = {"schemaType": content.type.value}
    if content.references:
        shown["references"] = references_json(content.references)
    if content.metadata is not None:
        shown["metadata"] = metadata_json(content.metadata)
    if content.rule_set is not None and not content.rule_set.empty:
        shown["ruleSet"] = rule_set_json(content.rule_set)
    shown["schema"] = content.text if text is None else text
    return shown


def version_json(
    version: StoredVersion, text: str | None = None, tags: Sequence[TagChange] | None = None
) -> dict[str, Any]:
    """A version of a subject."""
    shown = {
        "subject": version.subject.qualified,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
        **_content(version.content, text),
        "ts": version.created_ms,
        "deleted": version.deleted,
    }
    if tags is not None:
        shown["schemaTags"] = tags_json(tags)
    return shown


def schema_json(
    version: StoredVersion,
    text: str | None = None,
    tags: Sequence[TagChange] | None = None,
    max_id: int | None = None,
    *,
    with_subject: bool = True,
) -> dict[str, Any]:
    """The schema of an id."""
    shown: dict[str, Any] = {}
    if with_subject:
        shown = {"subject": version.subject.qualified, "version": version.version}
    shown |= {
        "guid": version.guid,
        **_content(version.content, text),
        "ts": version.created_ms,
        "deleted": version.deleted,
    }
    if max_id is not None:
        shown["maxId"] = max_id
    if tags is not None:
        shown["schemaTags"] = tags_json(tags)
    return shown


def registered_json(version: StoredVersion, *, modified: bool) -> dict[str, Any]:
    """The response to a registration. It contains the schema if the registry modified it."""
    shown: dict[str, Any] = {"id": version.id, "version": version.version, "guid": version.guid}
    if modified:
        shown |= _content(version.content, None)
    return shown


def tags_json(tags: Sequence[TagChange]) -> list[dict[str, Any]]:
    return [
        {"schemaEntity": {"entityPath": one.path, "entityType": one.entity_type}, "tags": list(one.tags)}
        for one in tags
    ]


def change_json(change: Change) -> dict[str, Any]:
    shown: dict[str, Any] = {"sequence": change.sequence, "ts": change.at_ms, "kind": change.kind}
    shown["subject"] = change.subject
    if change.version is not None:
        shown["version"] = change.version
    if change.id is not None:
        shown["id"] = change.id
    return shown
