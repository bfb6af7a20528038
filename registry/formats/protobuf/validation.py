"""Validates linked descriptors: numbers, names, reserved ranges, and restrictions of each syntax.

Text and serialized schemas follow the same rules, which are those of protoc. Style rules of protoc that Confluent's
registry does not enforce (enum prefixes, unused aliases) are not checked.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from google.protobuf import descriptor_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf.descriptors import json_name
from headgate.registry.formats.protobuf.names import join
from headgate.registry.formats.protobuf.symbols import View
from headgate.registry.formats.protobuf.syntax_tree import TAG_MAX

FieldProto = descriptor_pb2.FieldDescriptorProto
MessageProto = descriptor_pb2.DescriptorProto
EnumProto = descriptor_pb2.EnumDescriptorProto
Ranges = list[tuple[int, int]]
"""The start is included, the end excluded."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OWN_FIRST, _OWN_LAST = 19000, 19999
_MAP_KEYS: Final = frozenset(
    {
        FieldProto.TYPE_INT32,
        FieldProto.TYPE_INT64,
        FieldProto.TYPE_UINT32,
        FieldProto.TYPE_UINT64,
        FieldProto.TYPE_SINT32,
        FieldProto.TYPE_SINT64,
        FieldProto.TYPE_FIXED32,
        FieldProto.TYPE_FIXED64,
        FieldProto.TYPE_SFIXED32,
        FieldProto.TYPE_SFIXED64,
        FieldProto.TYPE_BOOL,
        FieldProto.TYPE_STRING,
    }
)
_UNPACKABLE: Final = frozenset(
    {FieldProto.TYPE_STRING, FieldProto.TYPE_BYTES, FieldProto.TYPE_MESSAGE, FieldProto.TYPE_GROUP}
)


def validate(proto: descriptor_pb2.FileDescriptorProto, view: View, *, strict: bool = True) -> None:
    """Raise InvalidSchema for the first violated rule.

    `strict=False` accepts duplicate field numbers and proto3 enums that do not start with 0, in schemas that another
    registry has accepted.
    """
    if proto.package:
        for part in proto.package.split("."):
            _check_name(part, proto.package)
    rules = _Rules(proto.syntax or "proto2", view, strict)
    scope = proto.package
    for message in proto.message_type:
        rules.message(message, scope)
    for enum in proto.enum_type:
        rules.enum(enum, scope)
    for extension in proto.extension:
        rules.extension(extension, scope)
    for service in proto.service:
        _check_name(service.name, join(scope, service.name))
        for method in service.method:
            _check_name(method.name, join(join(scope, service.name), method.name))


class _Rules:
    def __init__(self, syntax: str, view: View, strict: bool) -> None:
        self._syntax = syntax
        self._strict = strict
        self._view = view

    def message(self, message: MessageProto, scope: str) -> None:
        path = join(scope, message.name)
        _check_name(message.name, path)
        reserved = self._reserved(message, path)
        extensions = self._extension_ranges(message, path, reserved)
        reserved_names = self._reserved_names(message.reserved_name, path)
        numbers: dict[int, str] = {}
        for field in message.field:
            place = join(path, field.name)
            self.field(field, place)
            other = numbers.setdefault(field.number, field.name)
            if other != field.name and self._strict:
                raise InvalidSchema(f"The field number {field.number} is already used by {other!r}", place)
            if field.name in reserved_names:
                raise InvalidSchema(f"The field name {field.name!r} is reserved", place)
            if field.extendee:
                raise InvalidSchema("A field of a message cannot be an extension", place)
            if field.HasField("oneof_index") and not 0 <= field.oneof_index < len(message.oneof_decl):
                raise InvalidSchema(f"The field belongs to oneof {field.oneof_index}, which does not exist", place)
        for ranges, what in ((reserved, "reserved"), (extensions, "in an extension range")):
            _check_not_inside(numbers, ranges, what, path)
        self._json_names(message, path)
        self._oneofs(message, path)
        if message.options.map_entry:
            _check_map_entry(message, path)
            self._check_map_enum(message, path)
        for nested in message.nested_type:
            self.message(nested, path)
        for enum in message.enum_type:
            self.enum(enum, path)
        for extension in message.extension:
            self.extension(extension, path)

    def _reserved(self, message: MessageProto, path: str) -> Ranges:
        ranges = [(one.start, one.end) for one in message.reserved_range]
        _check_ranges(ranges, path, "reserved")
        return ranges

    def _reserved_names(self, names: Sequence[str], path: str) -> frozenset[str]:
        if len(set(names)) != len(names):
            raise InvalidSchema("A name is reserved twice", path)
        if self._syntax == "editions":
            for name in names:
                _check_name(name, path)
        return frozenset(names)

    def _extension_ranges(self, message: MessageProto, path: str, reserved: Ranges) -> Ranges:
        if message.extension_range and self._syntax == "proto3":
            raise InvalidSchema("proto3 has no extension ranges", path)
        ranges = [(one.start, one.end) for one in message.extension_range]
        _check_ranges(ranges, path, "extension")
        both = sorted([*((*one, 0) for one in ranges), *((*one, 1) for one in reserved)])
        for (_, end, kind), (start, _, other) in pairwise(both):
            if start < end and kind != other:
                raise InvalidSchema(f"Number {start} is both reserved and in an extension range", path)
        return ranges

    def field(self, field: FieldProto, path: str) -> None:
        _check_name(field.name, path)
        if not 1 <= field.number <= TAG_MAX:
            raise InvalidSchema(f"The field number {field.number} is not between 1 and {TAG_MAX}", path)
        if _OWN_FIRST <= field.number <= _OWN_LAST:
            raise InvalidSchema(
                f"{field.number} is one of {_OWN_FIRST} to {_OWN_LAST}, which are reserved for Protobuf", path
            )
        if field.HasField("oneof_index") and field.label != FieldProto.LABEL_OPTIONAL:
            raise InvalidSchema("Fields of a oneof cannot have a label", path)
        if field.options.packed and (field.label != FieldProto.LABEL_REPEATED or field.type in _UNPACKABLE):
            raise InvalidSchema("Only repeated numbers, booleans and enums can be packed", path)
        if self._syntax == "proto3":
            if field.label == FieldProto.LABEL_REQUIRED:
                raise InvalidSchema("proto3 has no required fields", path)
            if field.HasField("default_value"):
                raise InvalidSchema("proto3 has no explicit default values", path)
            if field.type == FieldProto.TYPE_GROUP:
                raise InvalidSchema("proto3 has no groups", path)
        elif field.proto3_optional:
            raise InvalidSchema("proto3_optional is allowed in proto3 files only", path)
        elif self._syntax == "editions" and field.label == FieldProto.LABEL_REQUIRED:
            raise InvalidSchema("Editions have no required label; use features.field_presence", path)
        self._check_default(field, path)

    def _check_default(self, field: FieldProto, path: str) -> None:
        if not field.HasField("default_value"):
            return
        if field.label == FieldProto.LABEL_REPEATED or field.type in (FieldProto.TYPE_MESSAGE, FieldProto.TYPE_GROUP):
            raise InvalidSchema("Repeated fields and messages cannot have a default value", path)
        if field.type == FieldProto.TYPE_ENUM:
            enum = self._view.enum(field.type_name[1:])
            if enum is not None and all(value.name != field.default_value for value in enum.value):
                raise InvalidSchema(f"{field.default_value!r} is not a constant of {field.type_name}", path)

    def _json_names(self, message: MessageProto, path: str) -> None:
        seen: dict[str, str] = {}
        for field in message.field:
            name = field.json_name or json_name(field.name)
            if "\0" in name or (name.startswith("[") and name.endswith("]")):
                raise InvalidSchema("json_name is not a valid JSON name", join(path, field.name))
            other = seen.setdefault(name, field.name)
            # proto2 only warns, unless the source sets the name.
            custom = name != json_name(field.name)
            if other != field.name and (self._syntax != "proto2" or custom):
                raise InvalidSchema(f"The JSON name {name!r} is already used by {other!r}", join(path, field.name))

    def _oneofs(self, message: MessageProto, path: str) -> None:
        members = [0] * len(message.oneof_decl)
        synthetic: dict[int, str] = {}
        for field in message.field:
            if field.HasField("oneof_index"):
                members[field.oneof_index] += 1
                if field.proto3_optional:
                    synthetic[field.oneof_index] = field.name
            elif field.proto3_optional:
                raise InvalidSchema("An optional field of proto3 must have its own oneof", join(path, field.name))
        for index, oneof in enumerate(message.oneof_decl):
            _check_name(oneof.name, join(path, oneof.name))
            if members[index] == 0:
                raise InvalidSchema("A oneof must have at least one field", join(path, oneof.name))
            if index in synthetic and members[index] > 1:
                raise InvalidSchema("The oneof of an optional field cannot have another member", join(path, oneof.name))

    def _check_map_enum(self, entry: MessageProto, path: str) -> None:
        for field in entry.field:
            enum = self._view.enum(field.type_name[1:]) if field.type == FieldProto.TYPE_ENUM else None
            if enum is not None and enum.value and enum.value[0].number != 0 and self._strict:
                raise InvalidSchema(
                    f"The first constant of an enum in a map must be 0; {enum.value[0].name!r} is not", path
                )

    def extension(self, extension: FieldProto, scope: str) -> None:
        path = join(scope, extension.name)
        self.field(extension, path)
        if not extension.extendee:
            raise InvalidSchema("The extension does not name the extended message", path)
        if extension.label == FieldProto.LABEL_REQUIRED:
            raise InvalidSchema("An extension cannot be required", path)
        extended = self._view.message(extension.extendee[1:])
        if extended is None or not any(one.start <= extension.number < one.end for one in extended.extension_range):
            raise InvalidSchema(f"{extension.extendee} has no extension range with number {extension.number}", path)
        if self._syntax == "proto3" and not re.match(r"\.google\.protobuf\.\w+Options\Z", extension.extendee):
            raise InvalidSchema("proto3 can extend options only", path)

    def enum(self, enum: EnumProto, scope: str) -> None:
        path = join(scope, enum.name)
        _check_name(enum.name, path)
        if not enum.value:
            raise InvalidSchema("An enum must have at least one constant", path)
        if self._syntax == "proto3" and enum.value[0].number != 0 and self._strict:
            raise InvalidSchema(
                f"The first constant of a proto3 enum must be 0; {enum.value[0].name!r} is {enum.value[0].number}", path
            )
        numbers: dict[int, str] = {}
        for value in enum.value:
            place = join(path, value.name)
            _check_name(value.name, place)
            other = numbers.setdefault(value.number, value.name)
            if other != value.name and not enum.options.allow_alias:
                raise InvalidSchema(
                    f"{other!r} already has number {value.number}; set allow_alias to allow two names for one number",
                    place,
                )
        ranges = [(one.start, one.end + 1) for one in enum.reserved_range]
        _check_ranges(ranges, path, "reserved", lowest=-(1 << 31), highest=1 << 31)
        _check_not_inside(numbers, ranges, "reserved", path)
        used = {value.name for value in enum.value}
        for name in self._reserved_names(enum.reserved_name, path):
            if name in used:
                raise InvalidSchema(f"The constant name {name!r} is reserved", join(path, name))


def _check_map_entry(entry: MessageProto, path: str) -> None:
    key = next((field for field in entry.field if field.number == 1), None)
    value = next((field for field in entry.field if field.number == 2), None)
    if key is None or value is None or len(entry.field) != 2 or (key.name, value.name) != ("key", "value"):
        raise InvalidSchema("The entry of a map must have a field key = 1 and a field value = 2", path)
    if entry.nested_type or entry.enum_type or entry.extension or entry.extension_range:
        raise InvalidSchema("The entry of a map can only contain key and value", path)
    if any(field.label != FieldProto.LABEL_OPTIONAL for field in entry.field):
        raise InvalidSchema("Key and value of a map cannot be required or repeated", path)
    if key.type not in _MAP_KEYS:
        kind = FieldProto.Type.Name(key.type).removeprefix("TYPE_").lower()
        raise InvalidSchema(f"The key of a map must be an integer, a bool or a string, not {kind}", path)


def _check_ranges(
    ranges: Iterable[tuple[int, int]], path: str, what: str, lowest: int = 1, highest: int = TAG_MAX + 1
) -> None:
    before = None
    for start, end in sorted(ranges):
        if start >= end:
            raise InvalidSchema(f"The {what} range {start} to {end - 1} ends before it starts", path)
        if start < lowest or end > highest:
            raise InvalidSchema(f"The {what} range {start} to {end - 1} is outside {lowest} to {highest - 1}", path)
        if before is not None and start < before:
            raise InvalidSchema(f"The {what} ranges overlap at {start}", path)
        before = end


def _check_not_inside(numbers: dict[int, str], ranges: list[tuple[int, int]], what: str, path: str) -> None:
    if not ranges:
        return
    ordered = sorted(ranges)
    index = 0
    for number in sorted(numbers):
        while index < len(ordered) and ordered[index][1] <= number:
            index += 1
        if index < len(ordered) and ordered[index][0] <= number:
            raise InvalidSchema(f"The number {number} is {what}", join(path, numbers[number]))


def _check_name(name: str, path: str) -> None:
    if not _NAME.match(name):
        raise InvalidSchema(f"{name[:80]!r} is not a valid name", path)
