"""Converts a linked FileDescriptorProto to a syntax tree, so that a serialized schema also has a text.

The inverse of `descriptors`, except for maps: the tree contains their entry messages, as in Confluent's registry.
Serialized records contain the position of a message among its siblings.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.unknown_fields import UnknownFieldSet

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.cursor import NESTING_MAX
from headgate.registry.formats.protobuf.default_values import default_literal, number_literal
from headgate.registry.formats.protobuf.descriptors import EDITIONS, SCALAR_TYPES, json_name
from headgate.registry.formats.protobuf.option_parser import parse_value

FieldProto = descriptor_pb2.FieldDescriptorProto
_SCALAR_NAMES: Final = {number: name for name, number in SCALAR_TYPES.items()}
_EDITION_NAMES: Final = {number: name for name, number in EDITIONS.items()}
_OPTION_NAME: Final = re.compile(r"\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_IDENTIFIER: Final = re.compile(r"-?[A-Za-z_]\w*", re.ASCII)
_VISIBILITY: Final = {1: "local", 2: "export"}


def to_tree(proto: descriptor_pb2.FileDescriptorProto, pool: Callable[[], DescriptorPool]) -> tree.File:
    """`pool` creates a descriptor pool with the file and its imports, which defines custom options."""
    return _Reader(proto, pool).file()


class _Reader:
    def __init__(self, proto: descriptor_pb2.FileDescriptorProto, pool: Callable[[], DescriptorPool]) -> None:
        self._proto = proto
        self._make_pool = pool
        self._pool: DescriptorPool | None = None
        self._explicit_labels = proto.syntax in ("", "proto2")

    def file(self) -> tree.File:
        proto = self._proto
        syntax = proto.syntax if proto.syntax in ("proto2", "proto3") else None
        edition = _EDITION_NAMES[proto.edition] if proto.syntax == "editions" else None
        imports = [
            tree.Import(
                path,
                "public" if index in proto.public_dependency else "weak" if index in proto.weak_dependency else "",
            )
            for index, path in enumerate(proto.dependency)
        ]
        imports += [tree.Import(path, "option") for path in proto.option_dependency]
        messages, extends = self._split_groups(proto.message_type, proto.extension)
        body: list[tree.Message | tree.Enum | tree.Extend | tree.Service] = [*map(self._message, messages)]
        body += map(self._enum, proto.enum_type)
        body += extends
        body += map(self._service, proto.service)
        return tree.File(syntax, edition, proto.package, tuple(imports), self._options(proto), tuple(body))

    def _split_groups(
        self, messages: Iterable[descriptor_pb2.DescriptorProto], extensions: Iterable[FieldProto]
    ) -> tuple[list[descriptor_pb2.DescriptorProto], list[tree.Extend]]:
        """Messages except bodies of group extensions, and extensions grouped by extended type."""
        by_name = {message.name: message for message in messages}
        extends: dict[str, list[tree.Field]] = {}
        for extension in extensions:
            extends.setdefault(extension.extendee, []).append(self._field(extension, by_name, in_oneof=False))
        return list(by_name.values()), [tree.Extend(name, tuple(fields)) for name, fields in extends.items()]

    def _message(self, proto: descriptor_pb2.DescriptorProto) -> tree.Message:
        nested = {message.name: message for message in proto.nested_type}
        body: list[tree.Field | tree.OneOf | tree.Message | tree.Enum | tree.Extend] = []
        seen: set[int] = set()
        for field in proto.field:
            if not field.HasField("oneof_index") or field.proto3_optional:
                body.append(self._field(field, nested, in_oneof=False))
            elif field.oneof_index not in seen:
                seen.add(field.oneof_index)
                oneof = proto.oneof_decl[field.oneof_index]
                members = [one for one in proto.field if one.HasField("oneof_index")]
                fields = [
                    self._field(one, nested, in_oneof=True) for one in members if one.oneof_index == field.oneof_index
                ]
                body.append(tree.OneOf(oneof.name, tuple(fields), self._options(oneof)))
        left, extends = self._split_groups(nested.values(), proto.extension)
        body += extends
        body += map(self._message, left)
        body += map(self._enum, proto.enum_type)
        reserved = [tree.Reserved((_range(one.start, one.end - 1),)) for one in proto.reserved_range]
        reserved += self._reserved_names(proto.reserved_name)
        extensions = [
            tree.Extensions((_range(one.start, one.end - 1),), self._options(one)) for one in proto.extension_range
        ]
        return tree.Message(
            proto.name,
            tuple(body),
            self._options(proto),
            tuple(reserved),
            tuple(extensions),
            _VISIBILITY.get(proto.visibility, ""),
        )

    def _reserved_names(self, names: Iterable[str]) -> Iterator[tree.Reserved]:
        for name in names:
            yield tree.Reserved((name,), quoted=self._proto.syntax != "editions")

    def _field(
        self, field: FieldProto, nested: dict[str, descriptor_pb2.DescriptorProto], in_oneof: bool
    ) -> tree.Field:
        label = None if in_oneof else self._label(field)
        options = self._field_options(field)
        if field.type == FieldProto.TYPE_GROUP:
            message = nested.pop(field.type_name.rpartition(".")[2], None)
            if message is None or message.name.lower() != field.name or not message.name[0].isupper():
                raise InvalidSchema(f"The group {field.type_name} must be next to its field", field.name)
            group = self._message(message)
            return tree.Field(label, message.name, field.name, field.number, options, None, group)
        type_name = field.type_name or _SCALAR_NAMES[field.type]
        return tree.Field(label, type_name, field.name, field.number, options)

    def _label(self, field: FieldProto) -> str | None:
        if field.label == FieldProto.LABEL_REPEATED:
            return "repeated"
        if field.proto3_optional:
            return "optional"
        if not self._explicit_labels:
            return None
        return "required" if field.label == FieldProto.LABEL_REQUIRED else "optional"

    def _field_options(self, field: FieldProto) -> tuple[tree.Option, ...]:
        options = [*self._options(field)]
        if field.HasField("default_value"):
            options.append(tree.Option((tree.NamePart("default", extension=False),), default_literal(field)))
        if field.HasField("json_name") and field.json_name != json_name(field.name) and not field.extendee:
            name = tree.Text(field.json_name.encode())
            options.append(tree.Option((tree.NamePart("json_name", extension=False),), name))
        return tuple(options)

    def _enum(self, proto: descriptor_pb2.EnumDescriptorProto) -> tree.Enum:
        constants = [tree.EnumConstant(one.name, one.number, self._options(one)) for one in proto.value]
        reserved = [tree.Reserved((_range(one.start, one.end),)) for one in proto.reserved_range]
        reserved += self._reserved_names(proto.reserved_name)
        return tree.Enum(
            proto.name,
            tuple(constants),
            self._options(proto),
            tuple(reserved),
            _VISIBILITY.get(proto.visibility, ""),
        )

    def _service(self, proto: descriptor_pb2.ServiceDescriptorProto) -> tree.Service:
        methods = [
            tree.Method(
                one.name,
                one.input_type,
                one.output_type,
                one.client_streaming,
                one.server_streaming,
                self._options(one),
            )
            for one in proto.method
        ]
        return tree.Service(proto.name, tuple(methods), self._options(proto))

    def _options(self, owner: ProtoMessage) -> tuple[tree.Option, ...]:
        if not owner.HasField("options"):
            return ()
        plain: Any = owner.options  # type: ignore[attr-defined]  # each descriptor has its own class of options
        found: list[tree.Option] = []
        for field, value in self._with_extensions(plain).ListFields():
            if field.name == "uninterpreted_option" and not field.is_extension:
                found += map(_uninterpreted, value)
                continue
            name = tree.NamePart(field.full_name if field.is_extension else field.name, field.is_extension)
            for one in value if field.is_repeated else [value]:
                if field.name == "features" and not field.is_extension:
                    found += _dotted((name,), one)
                else:
                    found.append(tree.Option((name,), _value(field, one)))
        return tuple(found)

    def _with_extensions(self, plain: ProtoMessage) -> ProtoMessage:
        """The options in a class that knows the custom options, if there are any."""
        if not len(UnknownFieldSet(plain)):
            return plain
        if self._pool is None:
            self._pool = self._make_pool()
        try:
            descriptor = self._pool.FindMessageTypeByName(plain.DESCRIPTOR.full_name)
            dynamic: ProtoMessage = message_factory.GetMessageClass(descriptor)()
            dynamic.MergeFromString(plain.SerializeToString())
        except KeyError:
            return plain
        except DecodeError as error:
            raise InvalidSchema(f"A custom option in {plain.DESCRIPTOR.name} is corrupt") from error
        return dynamic


def _range(start: int, end: int) -> tree.Range:
    return tree.Range(start, end, single=start == end)


def _dotted(prefix: tuple[tree.NamePart, ...], message: ProtoMessage) -> Iterator[tree.Option]:
    for field, value in message.ListFields():
        name = tree.NamePart(field.full_name if field.is_extension else field.name, field.is_extension)
        for one in value if field.is_repeated else [value]:
            yield tree.Option((*prefix, name), _value(field, one))


def _value(field: FieldDescriptor, value: Any, depth: int = 1) -> tree.Value:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return _aggregate(value, depth)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return tree.Word(named.name) if named is not None else tree.Number(str(value))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return tree.Word("true" if value else "false")
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return tree.Text(value.encode() if isinstance(value, str) else value)
    return number_literal(repr(value))


def _aggregate(message: ProtoMessage, depth: int) -> tree.Aggregate:
    if depth > NESTING_MAX:
        raise InvalidSchema(f"An option is nested more than {NESTING_MAX} deep", message.DESCRIPTOR.full_name)
    entries: list[tuple[str, tree.Value]] = []
    for field, value in message.ListFields():
        key = f"[{field.full_name}]" if field.is_extension else field.name
        if not field.is_repeated:
            entries.append((key, _value(field, value, depth + 1)))
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries.append((key, _map_entries(field.message_type, value, depth + 1)))
        else:
            entries.append((key, tree.Sequence(tuple(_value(field, one, depth + 1) for one in value))))
    return tree.Aggregate(tuple(entries))


def _map_entries(entry: Descriptor, value: Any, depth: int) -> tree.Sequence:
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    return tree.Sequence(
        tuple(
            tree.Aggregate((("key", _value(key_field, key)), ("value", _value(value_field, value[key], depth + 1))))
            for key in sorted(value)
        )
    )


def _uninterpreted(kept: Any) -> tree.Option:
    name = tuple(tree.NamePart(part.name_part, part.is_extension) for part in kept.name)
    if not name or not all(_OPTION_NAME.fullmatch(part.text) for part in name):
        raise InvalidSchema("An uninterpreted option has no name", ".".join(part.text for part in name))
    value: tree.Value
    if kept.HasField("aggregate_value"):
        value = parse_value(kept.aggregate_value)
    elif kept.HasField("string_value"):
        value = tree.Text(kept.string_value)
    elif kept.HasField("positive_int_value"):
        value = tree.Number(str(kept.positive_int_value))
    elif kept.HasField("negative_int_value"):
        value = tree.Number(str(kept.negative_int_value))
    elif kept.HasField("double_value"):
        value = number_literal(repr(kept.double_value))
    elif _IDENTIFIER.fullmatch(kept.identifier_value):
        value = tree.Word(kept.identifier_value)
    else:
        raise InvalidSchema("An uninterpreted option has no value", ".".join(part.text for part in name))
    return tree.Option(name, value)
