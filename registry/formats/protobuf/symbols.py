"""The symbols of a set of files, and their visibility.

Follows protoc's scoping: a lookup starts in the innermost scope and uses the first part of the name. A file sees its
imports and their public imports.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from google.protobuf import descriptor_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf.names import join

FileProto = descriptor_pb2.FileDescriptorProto


class Kind(StrEnum):
    PACKAGE = "package"
    MESSAGE = "message"
    ENUM = "enum"
    CONSTANT = "enum constant"
    FIELD = "field"
    EXTENSION = "extension"
    ONEOF = "oneof"
    SERVICE = "service"
    METHOD = "method"


TYPES: Final = frozenset({Kind.MESSAGE, Kind.ENUM})
_AGGREGATES: Final = frozenset({Kind.PACKAGE, Kind.MESSAGE, Kind.ENUM, Kind.SERVICE})


@dataclass(frozen=True, slots=True)
class FileSymbols:
    """The symbols that one file declares, by full name."""

    file: str
    kinds: dict[str, Kind]
    messages: dict[str, descriptor_pb2.DescriptorProto] = field(default_factory=dict)
    enums: dict[str, descriptor_pb2.EnumDescriptorProto] = field(default_factory=dict)
    extensions: dict[str, descriptor_pb2.FieldDescriptorProto] = field(default_factory=dict)


def declare(proto: FileProto) -> FileSymbols:
    """Collect the symbols of a file. Raises InvalidSchema for a duplicate."""
    symbols = FileSymbols(proto.name, {})
    join("", proto.package)
    parts = proto.package.split(".") if proto.package else []
    for end in range(1, len(parts) + 1):
        symbols.kinds[".".join(parts[:end])] = Kind.PACKAGE
    scope = proto.package
    for message in proto.message_type:
        _declare_message(symbols, message, scope)
    for enum in proto.enum_type:
        _declare_enum(symbols, enum, scope)
    for extension in proto.extension:
        _add(symbols, scope, extension.name, Kind.EXTENSION)
        symbols.extensions[join(scope, extension.name)] = extension
    for service in proto.service:
        path = _add(symbols, scope, service.name, Kind.SERVICE)
        for method in service.method:
            _add(symbols, path, method.name, Kind.METHOD)
    return symbols


def _declare_message(symbols: FileSymbols, message: descriptor_pb2.DescriptorProto, scope: str) -> None:
    path = _add(symbols, scope, message.name, Kind.MESSAGE)
    symbols.messages[path] = message
    for one in message.field:
        _add(symbols, path, one.name, Kind.FIELD)
    for oneof in message.oneof_decl:
        _add(symbols, path, oneof.name, Kind.ONEOF)
    for nested in message.nested_type:
        _declare_message(symbols, nested, path)
    for enum in message.enum_type:
        _declare_enum(symbols, enum, path)
    for extension in message.extension:
        _add(symbols, path, extension.name, Kind.EXTENSION)
        symbols.extensions[join(path, extension.name)] = extension


def _declare_enum(symbols: FileSymbols, enum: descriptor_pb2.EnumDescriptorProto, scope: str) -> None:
    path = _add(symbols, scope, enum.name, Kind.ENUM)
    symbols.enums[path] = enum
    for value in enum.value:
        # Constants belong to the scope of their enum, as in C++.
        _add(symbols, scope, value.name, Kind.CONSTANT)


def _add(symbols: FileSymbols, scope: str, name: str, kind: Kind) -> str:
    path = join(scope, name)
    known = symbols.kinds.get(path)
    if known is not None:
        raise InvalidSchema(f"The name {name!r} of the {kind} is already used by another {known}", path)
    symbols.kinds[path] = kind
    return path


class View:
    """The symbols that one file sees: its own and those of its imports."""

    def __init__(self, own: FileSymbols, imported: Iterable[FileSymbols]) -> None:
        self.own = own
        self._visible = (own, *imported)

    def kind(self, full_name: str) -> Kind | None:
        for symbols in self._visible:
            found = symbols.kinds.get(full_name)
            if found is not None:
                return found
        return None

    def message(self, full_name: str) -> descriptor_pb2.DescriptorProto | None:
        for symbols in self._visible:
            if full_name in symbols.messages:
                return symbols.messages[full_name]
        return None

    def enum(self, full_name: str) -> descriptor_pb2.EnumDescriptorProto | None:
        for symbols in self._visible:
            if full_name in symbols.enums:
                return symbols.enums[full_name]
        return None

    def extension(self, full_name: str) -> descriptor_pb2.FieldDescriptorProto | None:
        for symbols in self._visible:
            if full_name in symbols.extensions:
                return symbols.extensions[full_name]
        return None

    def resolve(self, name: str, scope: str, wanted: frozenset[Kind]) -> str | None:
        """The full name, without the leading dot, of `name` inside `scope`."""
        if name.startswith("."):
            return name[1:] if self.kind(name[1:]) in wanted else None
        first, _, rest = name.partition(".")
        while True:
            candidate = join(scope, first)
            kind = self.kind(candidate)
            if kind is not None:
                if not rest:
                    if kind in wanted:
                        return candidate
                elif kind in _AGGREGATES:
                    full = f"{candidate}.{rest}"
                    found = self.kind(full)
                    # A package with the same first part does not hide an outer type, unless it contains the rest of the
                    # name.
                    if found in wanted:
                        return full
                    if kind is not Kind.PACKAGE:
                        return None
            if not scope:
                return None
            scope = scope.rpartition(".")[0]


def check_no_clash(view: View, imported: Mapping[str, FileSymbols]) -> None:
    """Check that only one file declares each full name, except packages."""
    for name, kind in view.own.kinds.items():
        for other in imported.values():
            known = other.kinds.get(name)
            if known is not None and not (known is Kind.PACKAGE and kind is Kind.PACKAGE):
                raise InvalidSchema(f"The {kind} {name!r} is also declared in {other.file!r}", name)
