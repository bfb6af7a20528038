"""Searches schemas by field name, field type, tag and text. It reads the texts, so it needs no index."""

from dataclasses import dataclass
from typing import Any

from headgate.registry.formats.json_text import load
from headgate.registry.model import Content, Metadata, SchemaType
from headgate.registry.service import schema_tags
from headgate.registry.storage.base import Deleted, Selection, StoredVersion, StoreReader
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class Match:
    version: StoredVersion
    fields: tuple[str, ...] = ()
    """Paths of the matching fields."""


@dataclass(frozen=True, slots=True)
class Query:
    """All given criteria must match.

    Searches the latest version of each subject, or all versions with `all_versions`.
    """

    text: str = ""
    field: str = ""
    field_type: str = ""
    type: SchemaType | None = None
    tag: str = ""
    subject: str = ""
    all_versions: bool = False


def search_schemas(store: StoreReader, query: Query, offset: int, limit: int) -> list[Match]:
    needle = max((query.text, query.field, query.field_type, query.tag), key=len)
    found: list[Match] = []
    latest: dict[Subject, int] = {}
    skipped = 0
    for version in store.containing(needle) if needle else store.walk(Selection(None), Deleted.HIDDEN):
        if not query.all_versions:
            if version.subject not in latest:
                newest = store.latest(version.subject)
                latest[version.subject] = 0 if newest is None else newest.version
            if latest[version.subject] != version.version:
                continue
        match = _match(query, version)
        if match is None:
            continue
        if skipped < offset:
            skipped += 1
            continue
        found.append(match)
        if len(found) >= limit:
            break
    return found


def _match(query: Query, version: StoredVersion) -> Match | None:
    content = version.content
    if query.type is not None and content.type is not query.type:
        return None
    if query.subject and query.subject.lower() not in version.subject.qualified.lower():
        return None
    if query.text and query.text.lower() not in content.text.lower():
        return None
    if query.tag and not _has_tag(content, query.tag):
        return None
    if not (query.field or query.field_type):
        return Match(version)
    fields = tuple(
        path
        for path, name, kind in fields_of(content)
        if (not query.field or query.field.lower() == name.lower())
        and (not query.field_type or query.field_type.lower() == kind.lower())
    )
    return Match(version, fields) if fields else None


def _has_tag(content: Content, tag: str) -> bool:
    if any(tag in one.tags for one in schema_tags.tags_of(content.type, content.text)):
        return True
    return any(tag in tags for tags in (content.metadata or Metadata()).tags.values())


def fields_of(content: Content) -> list[tuple[str, str, str]]:
    """Path, name and type of each field, as written in the text."""
    found: list[tuple[str, str, str]] = []
    if content.type is SchemaType.PROTOBUF:
        _protobuf_fields(content.text, found)
    elif content.type is SchemaType.AVRO:
        _avro_fields(load(content.text), "", found)
    else:
        _json_fields(load(content.text), "", found)
    return found


def _avro_fields(node: Any, path: str, found: list[tuple[str, str, str]]) -> None:
    if isinstance(node, list):
        for branch in node:
            _avro_fields(branch, path, found)
    elif isinstance(node, dict):
        for field in node.get("fields") or ():
            if isinstance(field, dict) and isinstance(field.get("name"), str):
                place = f"{path}.{field['name']}" if path else field["name"]
                found.extend((place, field["name"], kind) for kind in _avro_kinds(field.get("type")))
                _avro_fields(field.get("type"), place, found)
        for key in ("items", "values", "type"):
            if isinstance(node.get(key), list | dict):
                _avro_fields(node[key], path, found)


def _avro_kinds(node: Any) -> list[str]:
    if isinstance(node, str):
        return [node]
    if isinstance(node, list):
        return [kind for branch in node for kind in _avro_kinds(branch)]
    if isinstance(node, dict):
        named = [node["name"]] if isinstance(node.get("name"), str) else []
        return [*_avro_kinds(node.get("type")), *named]
    return []


def _json_fields(node: Any, path: str, found: list[tuple[str, str, str]]) -> None:
    if isinstance(node, list):
        for item in node:
            _json_fields(item, path, found)
    elif isinstance(node, dict):
        properties = node.get("properties")
        if isinstance(properties, dict):
            for name, child in properties.items():
                place = f"{path}.{name}" if path else name
                kinds = child.get("type") if isinstance(child, dict) else None
                listed = kinds if isinstance(kinds, list) else [kinds]
                found.extend((place, name, str(kind or "any")) for kind in listed)
                _json_fields(child, place, found)
        for key, child in node.items():
            if key != "properties" and isinstance(child, list | dict):
                _json_fields(child, path, found)


def _protobuf_fields(text: str, found: list[tuple[str, str, str]]) -> None:
    from headgate.registry.formats.protobuf import parse

    for message in parse(text, {}).main.proto.message_type:
        for field in message.field:
            kind = field.type_name or field.Type.Name(field.type).removeprefix("TYPE_").lower()
            found.append((f"{message.name}.{field.name}", field.name, kind.removeprefix(".")))
