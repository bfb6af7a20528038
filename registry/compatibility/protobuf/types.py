"""The types of fields for the comparison, and where they are defined."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from google.protobuf import descriptor_pb2

from headgate.registry.formats.protobuf import ProtobufSchema

FieldProto = descriptor_pb2.FieldDescriptorProto
MessageProto = descriptor_pb2.DescriptorProto

Shape = StrEnum("Shape", ["SCALAR", "MESSAGE", "GROUP", "MAP"])

_GENERAL: Final = ("int32", "int64", "uint32", "uint64", "bool", "enum")
_GROUPS: Final = (_GENERAL, ("sint32", "sint64"), ("string", "bytes"), ("fixed32", "sfixed32"), ("fixed64", "sfixed64"))
_GROUP_OF: Final = {name: names[0] for names in (*_GROUPS, ("float",), ("double",)) for name in names}
TEXTUAL: Final = "string"
"""The group of string and bytes. All other groups are numeric."""


@dataclass(frozen=True, slots=True)
class MessageType:
    """A message and its file."""

    proto: MessageProto
    local_name: str
    """The full name without the package of its file, which survives a move to another package."""
    in_main_file: bool


class Side:
    """One of the two schemas."""

    def __init__(self, schema: ProtobufSchema) -> None:
        self.proto = schema.main.proto
        self._messages: dict[str, MessageType] = {}
        self._syntaxes: dict[str, str] = {}
        for index, file in enumerate(schema.files):
            package = file.proto.package
            for name, message in file.view.own.messages.items():
                local = name[len(package) + 1 :] if package else name
                self._messages[name] = MessageType(message, local, index == len(schema.files) - 1)
                self._syntaxes[name] = file.proto.syntax or "proto2"

    def message(self, type_name: str) -> MessageType:
        return self._messages[type_name.removeprefix(".")]

    def shape(self, field: FieldProto) -> Shape:
        if field.type == FieldProto.TYPE_GROUP:
            return Shape.GROUP
        if field.type != FieldProto.TYPE_MESSAGE:
            return Shape.SCALAR
        return Shape.MAP if self.message(field.type_name).proto.options.map_entry else Shape.MESSAGE

    def map_parts(self, field: FieldProto) -> tuple[FieldProto, FieldProto]:
        entry = self.message(field.type_name).proto
        key, value = sorted(entry.field, key=lambda part: part.number)
        return key, value

    def label(self, field: FieldProto, owner: str) -> str | None:
        """The label in the source text. Singular fields of proto3 and members of oneofs have none."""
        if field.label == FieldProto.LABEL_REPEATED:
            return "repeated"
        if field.proto3_optional:
            return "optional"
        if field.HasField("oneof_index"):
            return None
        syntax = self._syntaxes[owner]
        if syntax == "editions":
            required = descriptor_pb2.FeatureSet.LEGACY_REQUIRED
            return "required" if field.options.features.field_presence == required else None
        if syntax == "proto3":
            return None
        return "required" if field.label == FieldProto.LABEL_REQUIRED else "optional"

    def spelled(self, field: FieldProto, owner: str) -> str:
        """The field as source text, for messages."""
        label = self.label(field, owner)
        if self.shape(field) is Shape.MAP:
            key, value = self.map_parts(field)
            return f"map<{_type(key)}, {_type(value)}> {field.name} = {field.number}"
        return f"{label + ' ' if label else ''}{_type(field)} {field.name} = {field.number}"


def scalar_group(field: FieldProto) -> str:
    """Types of one group have the same form on the wire, so they are interchangeable."""
    return _GROUP_OF[_scalar(field)]


def oneofs(message: MessageProto) -> Mapping[int, str]:
    """The oneof of each field number. Synthetic oneofs of optional fields do not count."""
    return {
        field.number: message.oneof_decl[field.oneof_index].name
        for field in message.field
        if field.HasField("oneof_index") and not field.proto3_optional
    }


def generated(message: MessageProto) -> frozenset[str]:
    """Names of nested messages that belong to a field: map entries and group bodies."""
    groups = {
        field.type_name.rpartition(".")[2]
        for field in (*message.field, *message.extension)
        if field.type == FieldProto.TYPE_GROUP
    }
    return frozenset(groups | {nested.name for nested in message.nested_type if nested.options.map_entry})


def _scalar(field: FieldProto) -> str:
    return FieldProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _type(field: FieldProto) -> str:
    return field.type_name or _scalar(field)
