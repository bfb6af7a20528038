"""Reads and changes tags inside a schema (`confluent:tags`).

An entity is a record or a field. Its path depends on the language:

- Avro: `namespace.Record`, `namespace.Record.field`
- JSON Schema: property names below `object`, joined by dots
- Protobuf: names below the package; the tags are options
"""

from dataclasses import dataclass
from typing import Any, Final

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_text import dump, load
from headgate.registry.model import SchemaType

TAGS: Final = "confluent:tags"
RECORD: Final = "sr_record"
FIELD: Final = "sr_field"
_PROTOBUF_META: Final = "_meta"
"""A Protobuf schema without this text has no tags."""


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags of one entity, to add or to remove."""

    path: str
    entity_type: str
    tags: tuple[str, ...]


def tags_of(type: SchemaType, text: str) -> tuple[TagChange, ...]:
    """The tagged entities of a schema, in order."""
    if type is SchemaType.PROTOBUF:
        return _protobuf_tags_of(text)
    if TAGS not in text:
        return ()
    found = []
    for path, entity_type, node in _entities(type, load(text)):
        tags = node.get(TAGS)
        if isinstance(tags, list) and tags:
            found.append(TagChange(path, entity_type, tuple(str(tag) for tag in tags)))
    return tuple(found)


def retagged(type: SchemaType, text: str, add: tuple[TagChange, ...], remove: tuple[TagChange, ...]) -> str:
    """The text with the tags changed. Raises `InvalidSchema` for an unknown path."""
    if type is SchemaType.PROTOBUF:
        return _protobuf_retagged(text, add, remove)
    document = load(text)
    nodes = {(entity_type, path): node for path, entity_type, node in _entities(type, document)}
    for change in add:
        node = _node(nodes, change)
        present = node.get(TAGS)
        kept = present if isinstance(present, list) else []
        node[TAGS] = [*kept, *(tag for tag in change.tags if tag not in kept)]
    for change in remove:
        node = _node(nodes, change)
        kept = [tag for tag in node.get(TAGS) or [] if tag not in change.tags]
        if kept:
            node[TAGS] = kept
        else:
            node.pop(TAGS, None)
    return dump(document)


def with_tags_of(type: SchemaType, text: str, tags: tuple[TagChange, ...]) -> str:
    """The text with the tags of an earlier version, for entities that still exist."""
    entities = _paths(type, text)
    kept = tuple(change for change in tags if (change.entity_type, change.path) in entities)
    return retagged(type, text, kept, ()) if kept else text


def _paths(type: SchemaType, text: str) -> set[tuple[str, str]]:
    if type is not SchemaType.PROTOBUF:
        return {(entity_type, path) for path, entity_type, _ in _entities(type, load(text))}
    from headgate.registry.formats.protobuf import tags
    from headgate.registry.formats.protobuf.parser import parse_text

    return {(FIELD if one.is_field else RECORD, one.path) for one in tags.tags_of(parse_text(text))}


def _protobuf_tags_of(text: str) -> tuple[TagChange, ...]:
    if _PROTOBUF_META not in text:
        return ()
    # Import the language only with its first schema.
    from headgate.registry.formats.protobuf import tags
    from headgate.registry.formats.protobuf.parser import parse_text

    found = (one for one in tags.tags_of(parse_text(text)) if one.tags)
    return tuple(TagChange(one.path, FIELD if one.is_field else RECORD, one.tags) for one in found)


def _protobuf_retagged(text: str, add: tuple[TagChange, ...], remove: tuple[TagChange, ...]) -> str:
    from headgate.registry.formats.protobuf import tags
    from headgate.registry.formats.protobuf.parser import parse_text
    from headgate.registry.formats.protobuf.printer import print_file

    file = parse_text(text)
    present = {(one.path, one.is_field): one.tags for one in tags.tags_of(file)}
    changes: dict[tuple[str, bool], tuple[str, ...]] = {}
    for change in (*add, *remove):
        key = (change.path.removeprefix("."), change.entity_type == FIELD)
        if key not in present:
            raise InvalidSchema(f"No matching path '{change.path}' found in the schema")
    for change in add:
        key = (change.path.removeprefix("."), change.entity_type == FIELD)
        changes[key] = tuple(dict.fromkeys((*changes.get(key, present[key]), *change.tags)))
    for change in remove:
        key = (change.path.removeprefix("."), change.entity_type == FIELD)
        changes[key] = tuple(tag for tag in changes.get(key, present[key]) if tag not in change.tags)
    return print_file(tags.with_tags(file, changes))


def _node(nodes: dict[tuple[str, str], dict[str, Any]], change: TagChange) -> dict[str, Any]:
    node = nodes.get((change.entity_type, change.path))
    if node is None:
        raise InvalidSchema(f"No matching path '{change.path}' found in the schema")
    return node


def _entities(type: SchemaType, document: Any) -> list[tuple[str, str, dict[str, Any]]]:
    found: list[tuple[str, str, dict[str, Any]]] = []
    if type is SchemaType.AVRO:
        _avro(document, "", found)
    elif isinstance(document, dict):
        _json(document, "object", found)
    return found


def _avro(node: Any, namespace: str, found: list[tuple[str, str, dict[str, Any]]]) -> None:
    if isinstance(node, list):
        for branch in node:
            _avro(branch, namespace, found)
    elif isinstance(node, dict):
        kind = node.get("type")
        if kind in ("record", "error") and isinstance(node.get("name"), str):
            name: str = node["name"]
            space = name.rpartition(".")[0] if "." in name else node.get("namespace", namespace) or ""
            full = name if "." in name or not space else f"{space}.{name}"
            found.append((full, RECORD, node))
            for field in node.get("fields", ()):
                if isinstance(field, dict):
                    found.append((f"{full}.{field.get('name')}", FIELD, field))
                    _avro(field.get("type"), space, found)
        elif kind == "array":
            _avro(node.get("items"), namespace, found)
        elif kind == "map":
            _avro(node.get("values"), namespace, found)
        else:
            _avro(kind, namespace, found)


def _json(node: dict[str, Any], path: str, found: list[tuple[str, str, dict[str, Any]]]) -> None:
    found.append((path, RECORD, node))
    properties = node.get("properties")
    if isinstance(properties, dict):
        for name, child in properties.items():
            if isinstance(child, dict):
                found.append((f"{path}.{name}", FIELD, child))
                if "properties" in child:
                    _json(child, f"{path}.{name}.object", found)
