"""Tags of messages and fields, in the options of Confluent's `confluent/meta.proto`.

An entity has a path below the package: `Order` is a message, `Order.id` a field, `Order.Item` a nested message. All
forms of the option are read, such as `(confluent.field_meta).tags = "PII"` or a message literal. A change writes one
message literal, as Confluent's registry does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from headgate.registry.formats.protobuf.syntax_tree import (
    Aggregate,
    Enum,
    Extend,
    Field,
    File,
    Message,
    NamePart,
    OneOf,
    Option,
    Sequence,
    Text,
    Value,
)

_MESSAGE_META: Final = "confluent.message_meta"
_FIELD_META: Final = "confluent.field_meta"
_TAGS: Final = "tags"


@dataclass(frozen=True, slots=True)
class Tagged:
    path: str
    is_field: bool
    tags: tuple[str, ...]


def tags_of(file: File) -> Iterator[Tagged]:
    """All messages and fields with their tags, in source order."""
    for part in file.body:
        if isinstance(part, Message):
            yield from _of_message(part, part.name)


def _of_message(message: Message, path: str) -> Iterator[Tagged]:
    yield Tagged(path, False, _read(message.options, _MESSAGE_META))
    for part in message.body:
        if isinstance(part, Message):
            yield from _of_message(part, f"{path}.{part.name}")
        elif isinstance(part, Field | OneOf):
            for field in part.fields if isinstance(part, OneOf) else (part,):
                yield Tagged(f"{path}.{field.name}", True, _read(field.options, _FIELD_META))
                if field.group is not None:
                    yield from _of_message(field.group, f"{path}.{field.group.name}")


def with_tags(file: File, changes: Mapping[tuple[str, bool], tuple[str, ...]]) -> File:
    """The file with new tags. `changes` maps the path of an entity and whether it is a field to all its tags."""
    body = tuple(_changed(part, part.name, changes) if isinstance(part, Message) else part for part in file.body)
    return replace(file, body=body)


def _changed(message: Message, path: str, changes: Mapping[tuple[str, bool], tuple[str, ...]]) -> Message:
    def field_with_tags(field: Field) -> Field:
        group = None if field.group is None else _changed(field.group, f"{path}.{field.group.name}", changes)
        tags = changes.get((f"{path}.{field.name}", True))
        options = field.options if tags is None else _write(field.options, _FIELD_META, tags)
        return replace(field, options=options, group=group)

    body: list[Field | OneOf | Message | Enum | Extend] = []
    for part in message.body:
        match part:
            case Field():
                body.append(field_with_tags(part))
            case OneOf():
                body.append(replace(part, fields=tuple(field_with_tags(field) for field in part.fields)))
            case Message():
                body.append(_changed(part, f"{path}.{part.name}", changes))
            case _:
                body.append(part)
    tags = changes.get((path, False))
    options = message.options if tags is None else _write(message.options, _MESSAGE_META, tags)
    return replace(message, body=tuple(body), options=options)


def _names(option: Option, meta: str) -> bool:
    return option.name[0].extension and option.name[0].text.removeprefix(".") == meta


def _entries(option: Option) -> Iterator[tuple[str, Value]]:
    if len(option.name) > 1:
        yield ".".join(part.text for part in option.name[1:]), option.value
    elif isinstance(option.value, Aggregate):
        yield from option.value.entries


def _texts(value: Value) -> Iterator[str]:
    for item in value.items if isinstance(value, Sequence) else (value,):
        if isinstance(item, Text):
            yield item.data.decode("utf-8", "replace")


def _read(options: tuple[Option, ...], meta: str) -> tuple[str, ...]:
    return tuple(
        tag
        for option in options
        if _names(option, meta)
        for key, value in _entries(option)
        if key == _TAGS
        for tag in _texts(value)
    )


def _write(options: tuple[Option, ...], meta: str, tags: tuple[str, ...]) -> tuple[Option, ...]:
    """The options with one message literal at the first metadata option. Other metadata entries are kept."""
    kept = [entry for one in options if _names(one, meta) for entry in _entries(one) if entry[0] != _TAGS]
    if tags:
        kept.append((_TAGS, Sequence(tuple(Text(tag.encode("utf-8", "surrogatepass")) for tag in tags))))
    places = [index for index, one in enumerate(options) if _names(one, meta)]
    rest = [one for one in options if not _names(one, meta)]
    if kept:
        rest.insert(places[0] if places else len(rest), Option((NamePart(meta, True),), Aggregate(tuple(kept))))
    return tuple(rest)
