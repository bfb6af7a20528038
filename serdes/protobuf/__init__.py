"""Protobuf: messages of registered schemas, written and read."""

from serdes.protobuf.codec import ProtobufReader, ProtobufWriter
from serdes.protobuf.messages import Messages, definition_of

__all__ = ["Messages", "ProtobufReader", "ProtobufWriter", "definition_of"]
