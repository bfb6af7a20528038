"""Resolves all names in a FileDescriptorProto, in place. An unknown name is an error.

Runs after `descriptors` and before `validation`.
"""

from typing import Final

from google.protobuf import descriptor_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf.names import join, shortened
from headgate.registry.formats.protobuf.symbols import TYPES, Kind, View

FieldProto = descriptor_pb2.FieldDescriptorProto
_MESSAGE: Final = frozenset({Kind.MESSAGE})


def link(proto: descriptor_pb2.FileDescriptorProto, view: View) -> None:
    """Replace type names by full names with a leading dot, and set the type of each field."""
    scope = proto.package
    for message in proto.message_type:
        _message(message, scope, view)
    for extension in proto.extension:
        _field(extension, scope, view)
    for service in proto.service:
        path = join(scope, service.name)
        for method in service.method:
            place = join(path, method.name)
            method.input_type = _resolved(method.input_type, place, path, view, _MESSAGE)
            method.output_type = _resolved(method.output_type, place, path, view, _MESSAGE)


def _message(message: descriptor_pb2.DescriptorProto, scope: str, view: View) -> None:
    path = join(scope, message.name)
    for one in message.field:
        _field(one, path, view)
    for nested in message.nested_type:
        _message(nested, path, view)
    for extension in message.extension:
        _field(extension, path, view)


def _field(field: FieldProto, scope: str, view: View) -> None:
    if field.extendee:
        field.extendee = _resolved(field.extendee, join(scope, field.name), scope, view, _MESSAGE)
    if not field.type_name:
        if not field.HasField("type"):
            raise InvalidSchema("The field has no type", join(scope, field.name))
        if field.type in (FieldProto.TYPE_MESSAGE, FieldProto.TYPE_ENUM, FieldProto.TYPE_GROUP):
            raise InvalidSchema("The field does not name its type", join(scope, field.name))
        return
    path = join(scope, field.name)
    field.type_name = _resolved(field.type_name, path, scope, view, TYPES)
    is_enum = view.kind(field.type_name[1:]) is Kind.ENUM
    if not field.HasField("type"):
        field.type = FieldProto.TYPE_ENUM if is_enum else FieldProto.TYPE_MESSAGE
    elif field.type not in (FieldProto.TYPE_MESSAGE, FieldProto.TYPE_ENUM, FieldProto.TYPE_GROUP):
        raise InvalidSchema("A scalar field names a message or enum as its type", path)
    elif is_enum != (field.type == FieldProto.TYPE_ENUM):
        raise InvalidSchema(f"{field.type_name!r} is {'an enum' if is_enum else 'a message'}, its field is not", path)


def _resolved(name: str, place: str, scope: str, view: View, wanted: frozenset[Kind]) -> str:
    full = view.resolve(name, scope, wanted)
    if full is not None:
        return "." + full
    what = " or ".join(sorted(wanted))
    other = view.resolve(name, scope, frozenset(Kind))
    if other is not None:
        raise InvalidSchema(f"{shortened(name)!r} is a {view.kind(other)}, not a {what}", place)
    raise InvalidSchema(f"The {what} {shortened(name)!r} is not defined, neither here nor in an imported file", place)
