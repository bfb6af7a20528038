"""Protobuf: proto2, proto3 and editions, as text or serialized descriptor.

`parse` is the entry point. `registry.compatibility.protobuf` compares two schemas.
"""

from headgate.registry.formats.protobuf.known_files import KNOWN_FILES
from headgate.registry.formats.protobuf.schema import ProtobufSchema, file_descriptor_set, parse

__all__ = ["KNOWN_FILES", "ProtobufSchema", "file_descriptor_set", "parse"]
