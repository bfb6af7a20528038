"""Encodes and decodes Protobuf messages of registered schemas."""

from headgate.serdes.protobuf.codec import ProtobufReader, ProtobufWriter
from headgate.serdes.protobuf.messages import Messages, definition_of

__all__ = ["Messages", "ProtobufReader", "ProtobufWriter", "definition_of"]
