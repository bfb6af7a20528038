"""Files that a schema may import without a reference, as in Confluent's registry.

google/protobuf comes from the installed protobuf library. google/type and confluent are stored next to this module, in
the format of our printer and without comments.
"""

from functools import cache
from importlib import import_module, resources
from typing import Final

from google.protobuf import descriptor_pb2

_IN_THE_RUNTIME: Final = "any,api,descriptor,duration,empty,field_mask,source_context,struct,timestamp,type,wrappers"
_KEPT_HERE: Final = (
    "google/type",
    "calendar_period,color,date,datetime,dayofweek,decimal,expr,fraction,interval,latlng,localized_text,money,month,"
    "phone_number,postal_address,quaternion,timeofday",
)

KNOWN_FILES: Final = frozenset(
    f"{directory}/{name}.proto"
    for directory, names in (
        ("google/protobuf", _IN_THE_RUNTIME),
        _KEPT_HERE,
        ("confluent", "meta"),
        ("confluent/type", "decimal,variant"),
    )
    for name in names.split(",")
)


@cache
def known_descriptor(path: str) -> bytes | None:
    """The serialized FileDescriptorProto of a library file. None for files that are stored as text."""
    directory, _, name = path.rpartition("/")
    if directory != "google/protobuf":
        return None
    module = import_module(f"google.protobuf.{name.removesuffix('.proto')}_pb2")
    proto = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto.SerializeToString()


@cache
def known_text(path: str) -> str:
    return resources.files("headgate.registry.formats.protobuf").joinpath("known", *path.split("/")).read_text("utf-8")
