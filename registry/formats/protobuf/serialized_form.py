"""The FileDescriptorProto of `format=serialized`.

Confluent's descriptors contain a `json_name` only if the source does. protoc, and the descriptors for checks and
comparisons, set it in every field.
"""

from collections.abc import Iterable, Iterator

from google.protobuf import descriptor_pb2

from headgate.registry.formats.protobuf import syntax_tree as tree
from headgate.registry.formats.protobuf.descriptors import walk_messages
from headgate.registry.formats.protobuf.names import join


def without_derived_json_names(
    proto: descriptor_pb2.FileDescriptorProto, file: tree.File
) -> descriptor_pb2.FileDescriptorProto:
    """A copy of the descriptor of `file` with only the JSON names of the source."""
    copy = descriptor_pb2.FileDescriptorProto()
    copy.CopyFrom(proto)
    named = set(_named_fields(file.body, file.package))
    scopes = [(file.package, copy.extension)]
    for path, message in walk_messages(copy.message_type, copy.package):
        scopes += [(path, message.field), (path, message.extension)]
    for scope, fields in scopes:
        for field in fields:
            if join(scope, field.name) not in named:
                field.ClearField("json_name")
    return copy


def _named_fields(body: Iterable[object], scope: str) -> Iterator[str]:
    """Full names of fields with a `json_name` in the source."""
    for one in body:
        if isinstance(one, tree.Field):
            if any(option.spelled == "json_name" for option in one.options):
                yield join(scope, one.name)
            if one.group is not None:
                yield from _named_fields((one.group,), scope)
        elif isinstance(one, tree.OneOf | tree.Extend):
            yield from _named_fields(one.fields, scope)
        elif isinstance(one, tree.Message):
            yield from _named_fields(one.body, join(scope, one.name))
