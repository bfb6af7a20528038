"""A parsed Protobuf schema: text, canonical and normalized form, descriptors."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf import descriptor_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.files import Linked, load
from headgate.registry.formats.protobuf.normalizer import normalize
from headgate.registry.formats.protobuf.printer import print_file
from headgate.registry.formats.protobuf.serialized_form import without_derived_json_names
from headgate.registry.model import SchemaType


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """A parsed Protobuf schema. Do not change the descriptors, because they are shared."""

    text: str
    canonical: str
    files: tuple[Linked, ...]
    """Dependencies first; the schema itself is last."""

    @property
    def type(self) -> SchemaType:
        return SchemaType.PROTOBUF

    @property
    def main(self) -> Linked:
        return self.files[-1]

    def normalized(self) -> str:
        """The sorted text with full names. It is equal for schemas with the same meaning."""
        return print_file(normalize(self._tree(), self.main.view))

    def serialized(self) -> str:
        """Base64 of the FileDescriptorProto (`format=serialized` of Confluent's API)."""
        proto = without_derived_json_names(self.main.proto, self._tree())
        return base64.b64encode(proto.SerializeToString(deterministic=True)).decode("ascii")

    def _tree(self) -> tree.File:
        assert self.main.tree is not None
        return self.main.tree


def parse(text: str, references: Mapping[str, str], *, strict: bool = True) -> ProtobufSchema:
    """Parse a .proto text or a base64 FileDescriptorProto. Raises InvalidSchema and no other error.

    `strict=False` accepts a stored schema, of this or another registry.
    """
    files = load(text, references, strict=strict)
    main = files[-1].tree
    assert main is not None
    canonical = print_file(main)
    if not canonical:
        raise InvalidSchema("The schema has no declarations")
    return ProtobufSchema(text, canonical, tuple(files))


def file_descriptor_set(schema: ProtobufSchema) -> descriptor_pb2.FileDescriptorSet:
    """All files of the schema, including well-known files, dependencies first."""
    return descriptor_pb2.FileDescriptorSet(file=[one.proto for one in schema.files])
