"""Differences between two Protobuf schemas: those of the checker, and changes of fields that it accepts silently.

The paths of the checker contain names and field numbers, so they are the same in both directions.
"""

from collections.abc import Iterator
from typing import Final

from headgate.registry.compatibility.protobuf.check import differences as differences_of_checker
from headgate.registry.compatibility.protobuf.types import FieldProto, Side, oneofs
from headgate.registry.evolution.difference import Difference
from headgate.registry.formats.protobuf import ProtobufSchema

_NAMES: Final = {"FIELD_NAME_CHANGED": "field renamed"}


def differences(old: ProtobufSchema, new: ProtobufSchema) -> Iterator[Difference]:
    reported: set[str] = set()
    for one in differences_of_checker(new, old):
        reported.add(one.path)
        kind = _NAMES.get(one.kind, one.kind.replace("_", " ").lower())
        yield Difference(kind, one.path, one.writer, one.reader, one.path, one.path)
    referenced = {file.proto.name: file.proto for file in old.files[:-1]}
    for file in new.files[:-1]:
        if referenced.get(file.proto.name, file.proto) != file.proto:
            yield Difference("referenced file changed", file.proto.name)
    before, after = Side(old), Side(new)
    fields = _fields(new)
    for path, (owner, was) in _fields(old).items():
        if path in reported or path not in fields:
            continue
        new_owner, now = fields[path]
        spelled = (before.spelled(was, owner), after.spelled(now, new_owner))
        if spelled[0] != spelled[1]:
            yield Difference("field type changed", path, *spelled, path, path)
        if was.default_value != now.default_value:
            yield Difference("default changed", path, was.default_value, now.default_value)
        if was.options != now.options or was.json_name != now.json_name:
            yield Difference("field options changed", path, *spelled)


def _fields(schema: ProtobufSchema) -> dict[str, tuple[str, FieldProto]]:
    """The fields of the schema itself by path, with the full names of their messages."""
    package = schema.main.proto.package
    found = {}
    for name, message in schema.main.view.own.messages.items():
        if not message.options.map_entry:
            local = (name[len(package) + 1 :] if package else name).replace(".", "/")
            within = oneofs(message)
            for field in message.field:
                oneof = f"/{within[field.number]}" if field.number in within else ""
                found[f"#/{local}{oneof}/{field.number}"] = (name, field)
    return found
