"""Parses a schema and its references into linked, checked descriptors of all required files, dependencies first.

Steps for each file: parse, declare names, link, set built-in options, validate. At the end the protobuf library builds
the files, so that every accepted schema has message classes.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.unknown_fields import UnknownFieldSet

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.cursor import NESTING_MAX
from headgate.registry.formats.protobuf.descriptors import Draft, draft, json_name, walk_messages
from headgate.registry.formats.protobuf.from_descriptor import to_tree
from headgate.registry.formats.protobuf.known_files import KNOWN_FILES, known_descriptor, known_text
from headgate.registry.formats.protobuf.linker import link
from headgate.registry.formats.protobuf.options import set_built_in, set_custom
from headgate.registry.formats.protobuf.parser import parse_text
from headgate.registry.formats.protobuf.symbols import FileSymbols, View, check_no_clash, declare
from headgate.registry.formats.protobuf.validation import validate
from headgate.registry.limits import REFERENCES_MAX, SCHEMA_CHARS_MAX

FileProto = descriptor_pb2.FileDescriptorProto

MAIN_FILE: Final = "default"
"""The file name of the schema in descriptors. Confluent uses the same name, and clients replace it."""


@dataclass(frozen=True, slots=True)
class Linked:
    """A file with resolved names."""

    proto: FileProto
    view: View
    tree: tree.File | None
    """None for files of the protobuf library, which are never printed."""


def read(text: str) -> tree.File | FileProto:
    """Parse a .proto text or a base64 FileDescriptorProto. If both fail, the error of the text is raised."""
    if not text or text.isspace():
        raise InvalidSchema("The schema is empty")
    try:
        return parse_text(text)
    except InvalidSchema as error:
        serialized = _read_serialized(text)
        if serialized is None:
            raise error
        return serialized


def _read_serialized(text: str) -> FileProto | None:
    if len(text) > SCHEMA_CHARS_MAX:
        return None
    try:
        proto = FileProto.FromString(base64.b64decode("".join(text.split()), validate=True))
        if not _is_text(proto):
            return None
        if len(UnknownFieldSet(proto)) or all(field.name == "name" for field, _ in proto.ListFields()):
            return None
    except (binascii.Error, ValueError, DecodeError):
        return None
    # A descriptor may contain source code info such as comments. Remove it.
    proto.ClearField("source_code_info")
    return proto


def _is_text(proto: ProtoMessage) -> bool:
    """Whether all strings are UTF-8. The library returns bytes for other strings."""
    waiting = [proto]
    while waiting:
        for field, value in waiting.pop().ListFields():
            values = value if field.is_repeated else [value]
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                # Descriptors have no maps, but an option can have one, if a module of this process defines it.
                parts = [part for pair in value.items() for part in pair]
                if any(isinstance(part, bytes) for part in parts):
                    return False
                waiting += (part for part in parts if isinstance(part, ProtoMessage))
                continue
            if field.type == FieldDescriptor.TYPE_STRING:
                if not all(isinstance(one, str) for one in values):
                    return False
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                waiting += values
    return True


def load(text: str, references: Mapping[str, str], *, strict: bool = True) -> list[Linked]:
    """All files of the schema; the schema itself is last. See `validation.validate` for `strict`."""
    sources = _closure(read(text), references)
    linked: dict[str, Linked] = {}
    pool = DescriptorPool()
    for name, source in sources.items():
        try:
            linked[name] = _link(name, source, linked, pool, strict)
        except InvalidSchema as error:
            if name == MAIN_FILE:
                raise
            raise InvalidSchema(error.reason, f"{name}: {error.path}" if error.path else name) from error
    return list(linked.values())


Source = tree.File | FileProto


def _closure(main: Source, references: Mapping[str, str]) -> dict[str, Source]:
    """All imported files, dependencies first. Iterative, because import chains may be long."""
    done: dict[str, Source] = {}
    open_files: dict[str, Iterator[tuple[str, int]]] = {MAIN_FILE: _imports(main)}
    sources: dict[str, Source] = {MAIN_FILE: main}
    while open_files:
        name = next(reversed(open_files))
        wanted = next(open_files[name], None)
        if wanted is None:
            del open_files[name]
            done[name] = sources[name]
            continue
        path, line = wanted
        if path in done:
            continue
        place = (f"line {line}" if line else "imports") if name == MAIN_FILE else name
        if path in open_files:
            raise InvalidSchema(f"The imports are circular, through {path!r}", place)
        if len(sources) >= REFERENCES_MAX:
            raise InvalidSchema(f"The schema imports more than {REFERENCES_MAX} files", place)
        sources[path] = _source(path, references, place)
        open_files[path] = _imports(sources[path])
    return done


def _source(path: str, references: Mapping[str, str], place: str) -> Source:
    if path in references:
        try:
            return read(references[path])
        except InvalidSchema as error:
            raise InvalidSchema(error.reason, f"{path}: {error.path}" if error.path else path) from error
    if path in KNOWN_FILES:
        serialized = known_descriptor(path)
        return parse_text(known_text(path)) if serialized is None else FileProto.FromString(serialized)
    raise InvalidSchema(f"The import {path!r} is neither a reference of the schema nor a well-known file", place)


def _imports(source: Source) -> Iterator[tuple[str, int]]:
    if isinstance(source, tree.File):
        return ((one.path, one.line) for one in source.imports)
    return ((path, 0) for path in (*source.dependency, *source.option_dependency))


def _link(name: str, source: Source, linked: Mapping[str, Linked], pool: DescriptorPool, strict: bool) -> Linked:
    if isinstance(source, tree.File):
        return _finish(draft(source, name), source, linked, pool, strict)
    proto = FileProto()
    proto.CopyFrom(source)
    proto.name = name
    if name in KNOWN_FILES and source.name == name:
        view = View(_known_symbols(name), ())
        _build(proto, pool)
        return Linked(proto, view, None)
    parsed = _text_of(proto, linked, strict)
    return _finish(draft(parsed, name), parsed, linked, pool, strict)


def _finish(
    drafted: Draft, parsed: tree.File, linked: Mapping[str, Linked], pool: DescriptorPool, strict: bool
) -> Linked:
    proto = drafted.proto
    view = _linked_view(proto, linked)
    custom = set_built_in(drafted.options, view)
    validate(proto, view, strict=strict)
    try:
        _build(proto, pool)
    except InvalidSchema:
        # The library is as strict as protoc. Without its build, a schema can be served and compared, but cannot read
        # data.
        if strict:
            raise
    set_custom(custom, view, lambda: pool)
    return Linked(proto, view, parsed)


def _text_of(proto: FileProto, linked: Mapping[str, Linked], strict: bool) -> tree.File:
    """The syntax tree of a serialized schema. Its descriptor is rebuilt from the tree, so that both agree."""
    _prepare_serialized(proto)
    validate(proto, _linked_view(proto, linked), strict=strict)

    def with_custom_options() -> DescriptorPool:
        pool = DescriptorPool()
        for file in (*(one.proto for one in linked.values()), proto):
            _build(file, pool)
        return pool

    return to_tree(proto, with_custom_options)


def _linked_view(proto: FileProto, linked: Mapping[str, Linked]) -> View:
    visible = dict(_visible(proto, linked))
    view = View(declare(proto), visible.values())
    check_no_clash(view, visible)
    link(proto, view)
    return view


def _visible(proto: FileProto, linked: Mapping[str, Linked]) -> Iterator[tuple[str, FileSymbols]]:
    waiting = [*proto.dependency, *proto.option_dependency]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        imported = linked[name].proto
        yield name, linked[name].view.own
        waiting += [imported.dependency[index] for index in imported.public_dependency]


def _build(proto: FileProto, pool: DescriptorPool) -> None:
    try:
        pool.AddSerializedFile(proto.SerializeToString())
    except Exception as error:
        reason = str(error).removeprefix("Couldn't build proto file into descriptor pool: ")[:300]
        raise InvalidSchema(f"The schema cannot be built: {reason}") from error


def _prepare_serialized(proto: FileProto) -> None:
    """Convert the descriptor of any compiler to our form. Raises for content that has no text form."""
    if proto.syntax not in ("", "proto2", "proto3", "editions"):
        raise InvalidSchema(f"Syntax {proto.syntax!r} is not a Protobuf syntax", "syntax")
    if proto.syntax == "editions" and proto.edition not in (
        descriptor_pb2.EDITION_2023,
        descriptor_pb2.EDITION_2024,
    ):
        raise InvalidSchema(f"Edition {proto.edition} is not supported", "edition")
    for index in (*proto.public_dependency, *proto.weak_dependency):
        if not 0 <= index < len(proto.dependency):
            raise InvalidSchema(f"Import {index} is marked as public or weak but does not exist", "imports")
    for path, message in walk_messages(proto.message_type, proto.package):
        if path.count(".") - proto.package.count(".") > NESTING_MAX + 1:
            raise InvalidSchema(f"Nested more than {NESTING_MAX} deep", path)
        for field in (*message.field, *message.extension):
            if not field.HasField("json_name"):
                field.json_name = json_name(field.name)
    for field in proto.extension:
        if not field.HasField("json_name"):
            field.json_name = json_name(field.name)


@cache
def _known_symbols(name: str) -> FileSymbols:
    serialized = known_descriptor(name)
    assert serialized is not None
    return declare(FileProto.FromString(serialized))
