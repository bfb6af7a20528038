"""A Protobuf schema that was understood: its text, its canonical and normalized forms, its descriptors."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf import descriptor_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.extension_free import without_extensions
from headgate.registry.formats.protobuf.files import Linked, load
from headgate.registry.formats.protobuf.normalizer import normalize
from headgate.registry.formats.protobuf.printer import print_file
from headgate.registry.formats.protobuf.serialized_form import without_derived_json_names
from headgate.registry.model import SchemaType


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """Immutable by agreement: the descriptors are shared, so nobody changes them."""

    text: str
    canonical: str
    files: tuple[Linked, ...]
    """Dependencies first; the schema itself is the last."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.PROTOBUF

    @property
    def main(self) -> Linked:
        return self.files[-1]

    def normalized(self) -> str:
        """Sorted, and with every name in full: equal for schemas that mean the same."""
        return print_file(normalize(self._tree(), self.main.view))

    def serialized(self) -> str:
        """Base64 of the FileDescriptorProto: what Confluent's API calls `format=serialized`."""
        proto = without_derived_json_names(self.main.proto, self._tree())
        return base64.b64encode(proto.SerializeToString(deterministic=True)).decode("ascii")

    def without_extensions(self) -> str:
        """What Confluent's API calls `format=ignore_extensions`."""
        return print_file(without_extensions(self._tree()))

    def _tree(self) -> tree.File:
        assert self.main.tree is not None
        return self.main.tree


def parse(text: str, references: Mapping[str, str], *, strict: bool = True) -> ProtobufSchema:
    """Understand a .proto text or a base64 FileDescriptorProto. Raises InvalidSchema and nothing else.

    `strict=False` takes a schema that was accepted once, by this registry or another.
    """
    files = load(text, references, strict=strict)
    main = files[-1].tree
    assert main is not None
    canonical = print_file(main)
    if not canonical:
        raise InvalidSchema("The schema declares nothing")
    return ProtobufSchema(text, canonical, tuple(files))


def file_descriptor_set(schema: ProtobufSchema) -> descriptor_pb2.FileDescriptorSet:
    """All files the schema needs, well-known ones included, each after those it imports."""
    return descriptor_pb2.FileDescriptorSet(file=[one.proto for one in schema.files])
