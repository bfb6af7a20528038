"""Converts a syntax tree to a FileDescriptorProto with unresolved names.

It generates what protoc generates: map entry messages, group messages, synthetic oneofs of optional fields, JSON names.
One deviation: generated messages follow all written messages. The canonical text does not keep protoc's order, and
message indexes on the wire must not depend on it. `linker` resolves type names, and `options` sets the options
collected in `PendingOptions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.protobuf import descriptor_pb2
from google.protobuf.message import Message as ProtoMessage

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.names import join

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

    Fields = RepeatedCompositeFieldContainer[descriptor_pb2.FieldDescriptorProto]
    Messages = RepeatedCompositeFieldContainer[descriptor_pb2.DescriptorProto]

FieldProto = descriptor_pb2.FieldDescriptorProto
_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3, None: 1}
SCALAR_TYPES: Final = {
    name: number
    for name, number in (
        (value.name.removeprefix("TYPE_").lower(), value.number) for value in FieldProto.Type.DESCRIPTOR.values
    )
    if name in tree.SCALARS
}
EDITIONS: Final = {"2023": descriptor_pb2.EDITION_2023, "2024": descriptor_pb2.EDITION_2024}
_VISIBILITY: Final = {"local": 1, "export": 2}


@dataclass(frozen=True, slots=True)
class PendingOptions:
    """Options of one element. They are set on `target.options` when names can be resolved from `scope`."""

    target: ProtoMessage
    options: tuple[tree.Option, ...]
    scope: str
    path: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A descriptor with unresolved names and options."""

    proto: descriptor_pb2.FileDescriptorProto
    options: list[PendingOptions] = field(default_factory=list)


def json_name(name: str) -> str:
    """protoc's lowerCamelCase: removes underscores and capitalizes the letter after each."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] if part[:1].isascii() else part for part in rest)


def map_entry_name(field_name: str) -> str:
    """protoc's name for the entry message of a map field."""
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_")) + "Entry"


def draft(file: tree.File, name: str) -> Draft:
    proto = descriptor_pb2.FileDescriptorProto(name=name)
    join("", file.package)
    result = Draft(proto)
    if file.package:
        proto.package = file.package
    if file.edition is not None:
        proto.syntax = "editions"
        proto.edition = EDITIONS[file.edition]
    elif file.syntax == "proto3":
        proto.syntax = "proto3"
    _imports(proto, file.imports)
    _Drafter(result, file).body(proto, file)
    return result


def _imports(proto: descriptor_pb2.FileDescriptorProto, imports: Sequence[tree.Import]) -> None:
    seen: dict[str, int] = {}
    for one in imports:
        if one.modifier == "option":
            if one.path not in proto.option_dependency:
                proto.option_dependency.append(one.path)
            continue
        # Confluent accepts duplicate imports. A descriptor lists each import once.
        if one.path not in seen:
            seen[one.path] = len(proto.dependency)
            proto.dependency.append(one.path)
        if one.modifier == "public" and seen[one.path] not in proto.public_dependency:
            proto.public_dependency.append(seen[one.path])
        elif one.modifier == "weak" and seen[one.path] not in proto.weak_dependency:
            proto.weak_dependency.append(seen[one.path])


class _Drafter:
    def __init__(self, result: Draft, file: tree.File) -> None:
        self._pending = result.options
        self._proto3 = file.syntax == "proto3"

    def body(self, proto: descriptor_pb2.FileDescriptorProto, file: tree.File) -> None:
        self._later(proto, file.options, file.package, "")
        for one in file.body:
            if isinstance(one, tree.Message):
                self._message(proto.message_type.add(), one, file.package)
        for one in file.body:
            if isinstance(one, tree.Message):
                continue
            if isinstance(one, tree.Enum):
                self._enum(proto.enum_type.add(), one, file.package)
            elif isinstance(one, tree.Extend):
                self._extend(proto.extension, proto.message_type, one, file.package)
            else:
                self._service(proto.service.add(), one, file.package)

    def _later(self, target: ProtoMessage, options: tuple[tree.Option, ...], scope: str, path: str) -> None:
        if options:
            self._pending.append(PendingOptions(target, options, scope, path))

    def _message(self, proto: descriptor_pb2.DescriptorProto, message: tree.Message, scope: str) -> None:
        proto.name = message.name
        path = join(scope, message.name)
        if message.visibility:
            proto.visibility = _VISIBILITY[message.visibility]  # type: ignore[assignment]  # the stub wants the enum
        self._later(proto, message.options, path, path)
        for one in message.body:
            if isinstance(one, tree.Message):
                self._message(proto.nested_type.add(), one, path)
        for one in message.body:
            if isinstance(one, tree.Message):
                continue
            if isinstance(one, tree.Field):
                self._field(proto.field.add(), one, path, proto.nested_type)
            elif isinstance(one, tree.OneOf):
                self._oneof(proto, one, path)
            elif isinstance(one, tree.Enum):
                self._enum(proto.enum_type.add(), one, path)
            else:
                self._extend(proto.extension, proto.nested_type, one, path)
        for reserved in message.reserved:
            for value in reserved.values:
                if isinstance(value, str):
                    proto.reserved_name.append(value)
                else:
                    proto.reserved_range.add(start=value.start, end=value.end + 1)
        for extensions in message.extensions:
            for numbers in extensions.ranges:
                extension_range = proto.extension_range.add(start=numbers.start, end=numbers.end + 1)
                self._later(extension_range, extensions.options, path, path)
        if self._proto3:
            _add_synthetic_oneofs(proto)

    def _oneof(self, proto: descriptor_pb2.DescriptorProto, oneof: tree.OneOf, path: str) -> None:
        index = len(proto.oneof_decl)
        declared = proto.oneof_decl.add(name=oneof.name)
        if not oneof.fields:
            raise InvalidSchema("A oneof must have at least one field", join(path, oneof.name))
        self._later(declared, oneof.options, path, join(path, oneof.name))
        for one in oneof.fields:
            member = proto.field.add(oneof_index=index)
            self._field(member, one, path, proto.nested_type)

    def _field(self, proto: FieldProto, one: tree.Field, scope: str, nested: Messages) -> None:
        path = join(scope, one.name)
        proto.name = one.name
        proto.number = one.number
        proto.json_name = json_name(one.name)
        proto.label = _LABELS[one.label]  # type: ignore[assignment]  # the stub wants the enum
        if one.key_type is not None:
            proto.label = FieldProto.LABEL_REPEATED
            proto.type_name = map_entry_name(one.name)
            self._map_entry(nested.add(), one)
        elif one.group is not None:
            proto.type = FieldProto.TYPE_GROUP
            proto.type_name = one.group.name
            self._message(nested.add(), one.group, scope)
        elif one.type in SCALAR_TYPES:
            proto.type = SCALAR_TYPES[one.type]  # type: ignore[assignment]  # the stub wants the enum
        else:
            proto.type_name = one.type
        if one.label == "optional" and self._proto3:
            proto.proto3_optional = True
        self._later(proto, one.options, scope, path)

    def _map_entry(self, entry: descriptor_pb2.DescriptorProto, one: tree.Field) -> None:
        entry.name = map_entry_name(one.name)
        entry.options.map_entry = True
        for name, number, type_name in (("key", 1, one.key_type or ""), ("value", 2, one.type)):
            part = entry.field.add(name=name, number=number, json_name=name)
            part.label = FieldProto.LABEL_OPTIONAL
            if type_name in SCALAR_TYPES:
                part.type = SCALAR_TYPES[type_name]  # type: ignore[assignment]  # the stub wants the enum
            else:
                part.type_name = type_name

    def _extend(self, fields: Fields, nested: Messages, extend: tree.Extend, scope: str) -> None:
        if not extend.fields:
            raise InvalidSchema(f"extend {extend.extendee} has no field", scope)
        for one in extend.fields:
            self._field(fields.add(extendee=extend.extendee), one, scope, nested)

    def _enum(self, proto: descriptor_pb2.EnumDescriptorProto, enum: tree.Enum, scope: str) -> None:
        proto.name = enum.name
        path = join(scope, enum.name)
        if enum.visibility:
            proto.visibility = _VISIBILITY[enum.visibility]  # type: ignore[assignment]  # the stub wants the enum
        self._later(proto, enum.options, path, path)
        for constant in enum.constants:
            value = proto.value.add(name=constant.name, number=constant.number)
            self._later(value, constant.options, path, join(path, constant.name))
        for reserved in enum.reserved:
            for one in reserved.values:
                if isinstance(one, str):
                    proto.reserved_name.append(one)
                else:
                    proto.reserved_range.add(start=one.start, end=one.end)

    def _service(self, proto: descriptor_pb2.ServiceDescriptorProto, service: tree.Service, scope: str) -> None:
        proto.name = service.name
        path = join(scope, service.name)
        self._later(proto, service.options, path, path)
        for one in service.methods:
            method = proto.method.add(name=one.name, input_type=one.input_type, output_type=one.output_type)
            if one.input_streaming:
                method.client_streaming = True
            if one.output_streaming:
                method.server_streaming = True
            self._later(method, one.options, path, join(path, one.name))


def _add_synthetic_oneofs(proto: descriptor_pb2.DescriptorProto) -> None:
    """proto3 puts each `optional` field into a synthetic oneof. Synthetic oneofs come last."""
    names: set[str] | None = None
    for one in proto.field:
        if not one.proto3_optional:
            continue
        if names is None:
            names = {other.name for other in proto.field} | {other.name for other in proto.oneof_decl}
        name = one.name if one.name.startswith("_") else "_" + one.name
        while name in names:
            name = "X" + name
        names.add(name)
        one.oneof_index = len(proto.oneof_decl)
        proto.oneof_decl.add(name=name)


def walk_messages(
    messages: Iterable[descriptor_pb2.DescriptorProto], scope: str
) -> Iterator[tuple[str, descriptor_pb2.DescriptorProto]]:
    """All messages with full names, outer messages first."""
    for message in messages:
        path = join(scope, message.name)
        yield path, message
        yield from walk_messages(message.nested_type, path)
