"""Protobuf: proto2, proto3 and editions, as text or as a serialized descriptor.

`parse` is the one way in. Compatibility of two schemas is `registry.compatibility.protobuf`'s business.
"""

from headgate.registry.formats.protobuf.known_files import KNOWN_FILES
from headgate.registry.formats.protobuf.schema import ProtobufSchema, file_descriptor_set, parse

__all__ = ["KNOWN_FILES", "ProtobufSchema", "file_descriptor_set", "parse"]
