"""The messages of a registered Protobuf schema, by path and by name, and their classes.

`registry.formats.protobuf` parses the schema.
"""

import base64
from collections.abc import Mapping, Sequence

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import KNOWN_FILES, file_descriptor_set, parse
from headgate.registry.model import SchemaType
from headgate.serdes.schemas import SchemaDefinition


class Messages:
    """The messages of one schema. Immutable, so that threads can share it."""

    __slots__ = ("_file", "_proto")

    def __init__(self, text: str, references: Mapping[str, str]) -> None:
        """Raises `InvalidSchema`."""
        files = file_descriptor_set(parse(text, references)).file
        pool = DescriptorPool()
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
        self._proto = files[-1]
        self._file: FileDescriptor = pool.FindFileByName(self._proto.name)

    def first(self) -> Descriptor:
        if not self._proto.message_type:
            raise InvalidSchema("the file declares no message")
        return self._at((0,)) or self._file.message_types_by_name[self._proto.message_type[0].name]

    def named(self, full_name: str) -> Descriptor | None:
        """A message of this file by its full name, at any nesting level."""
        package = self._proto.package
        if package and not full_name.startswith(package + "."):
            return None
        parts = full_name.removeprefix(package + ".").split(".") if package else full_name.split(".")
        found: Descriptor | None = self._file.message_types_by_name.get(parts[0])
        for part in parts[1:]:
            found = None if found is None else found.nested_types_by_name.get(part)
        return found

    def _at(self, path: Sequence[int]) -> Descriptor | None:
        siblings: Sequence[descriptor_pb2.DescriptorProto] = self._proto.message_type
        found: Descriptor | None = None
        for index in path:
            if index >= len(siblings):
                return None
            name = siblings[index].name
            found = self._file.message_types_by_name[name] if found is None else found.nested_types_by_name[name]
            siblings = siblings[index].nested_type
        return found

    def at(self, path: Sequence[int]) -> Descriptor | None:
        """The message at a path of a payload, or None."""
        return self._at(path)

    def path_to(self, descriptor: Descriptor) -> tuple[int, ...]:
        names: list[str] = []
        above: Descriptor | None = descriptor
        while above is not None:
            names.append(above.name)
            above = above.containing_type
        siblings: Sequence[descriptor_pb2.DescriptorProto] = self._proto.message_type
        path: list[int] = []
        for name in reversed(names):
            index = next(index for index, sibling in enumerate(siblings) if sibling.name == name)
            path.append(index)
            siblings = siblings[index].nested_type
        return tuple(path)


def class_of(descriptor: Descriptor) -> type[Message]:
    made: type[Message] = GetMessageClass(descriptor)
    return made


def definition_of(file: FileDescriptor) -> SchemaDefinition:
    """The file of a generated module as a schema without references: the serialized descriptor, like Confluent's Python
    client.
    """
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return SchemaDefinition(SchemaType.PROTOBUF, base64.b64encode(proto.SerializeToString()).decode())


def dependencies_of(file: FileDescriptor) -> list[FileDescriptor]:
    """The imports of a file that a registry does not already know."""
    return [dependency for dependency in file.dependencies if dependency.name not in KNOWN_FILES]
