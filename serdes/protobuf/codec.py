"""Protobuf bodies: the message path, then the message.

Values are generated messages, or dictionaries in Protobuf's JSON mapping. A different reader schema decodes the message
with the same full name. The library keeps unknown fields.
"""

from collections.abc import Mapping

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.protobuf.message import EncodeError as ProtobufEncodeError

from headgate.registry.errors import InvalidSchema
from headgate.serdes.avro.binary import Fault
from headgate.serdes.codec import Body, ReadOptions, WriteOptions
from headgate.serdes.errors import EncodeError
from headgate.serdes.framing import Frame, message_path, read_message_path
from headgate.serdes.outcome import Poison, Reason
from headgate.serdes.protobuf.messages import Messages, class_of
from headgate.serdes.protobuf.wire import explain


class ProtobufWriter:
    __slots__ = ("_class", "_ignore_unknown_fields", "_messages", "_path", "record_name")

    def __init__(self, text: str, references: Mapping[str, str], options: WriteOptions) -> None:
        self._messages = Messages(text, references)
        name = options.protobuf_message
        descriptor = self._messages.first() if name is None else self._messages.named(name)
        if descriptor is None:
            raise InvalidSchema(f"the file declares no message {name}")
        self.record_name: str | None = descriptor.full_name
        self._class = class_of(descriptor)
        self._path = message_path(self._messages.path_to(descriptor))
        self._ignore_unknown_fields = options.ignore_unknown_fields

    def write(self, value: object) -> Body:
        path = self._path
        if isinstance(value, Message):
            message = value
            if value.DESCRIPTOR.full_name != self.record_name:
                path = self._path_of(value.DESCRIPTOR.full_name)
        elif isinstance(value, Mapping):
            message = self._class()
            try:
                json_format.ParseDict(dict(value), message, ignore_unknown_fields=self._ignore_unknown_fields)
            except (json_format.Error, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise EncodeError(str(error)[:500]) from None
        else:
            raise EncodeError(f"{value!r:.60} ({type(value).__name__}) is neither a message nor a dictionary")
        try:
            return Body(message.SerializeToString(deterministic=True), path)
        except (ProtobufEncodeError, ValueError, RecursionError) as error:
            raise EncodeError(str(error)[:500]) from None

    def _path_of(self, full_name: str) -> bytes:
        descriptor = self._messages.named(full_name)
        if descriptor is None:
            raise EncodeError(f"the schema declares no message {full_name}")
        return message_path(self._messages.path_to(descriptor))


class ProtobufReader:
    __slots__ = ("_options", "_reader", "_writer")

    def __init__(
        self, writer: tuple[str, Mapping[str, str]], reader: tuple[str, Mapping[str, str]] | None, options: ReadOptions
    ) -> None:
        self._writer = Messages(*writer)
        self._reader = None if reader is None else Messages(*reader)
        self._options = options

    def read(self, frame: Frame) -> object | Poison:
        try:
            return self._read(frame)
        except Fault as fault:
            return Poison(fault.reason, fault.describe(), frame.body)

    def _read(self, frame: Frame) -> object:
        if frame.header_path is None:
            path, start = read_message_path(frame.body)
        else:
            # A header without a path means the first message.
            path, start = (read_message_path(frame.header_path)[0] if frame.header_path else (0,)), 0
        written = self._writer.at(path)
        if written is None:
            raise Fault(Reason.CORRUPT, f"the message path {list(path)} does not exist in the schema")
        descriptor = written
        if self._reader is not None:
            found = self._reader.named(written.full_name)
            if found is None:
                raise Fault(Reason.UNRESOLVABLE, f"the reader's schema has no message {written.full_name}")
            descriptor = found
        message = (self._options.protobuf_class or class_of(descriptor))()
        content = frame.body[start:]
        try:
            message.MergeFromString(content)
        except DecodeError:
            raise explain(written, content) from None
        if not message.IsInitialized():
            raise Fault(Reason.INVALID_VALUE, "required fields are missing")
        if self._options.protobuf_as_dict:
            try:
                return json_format.MessageToDict(
                    message,
                    preserving_proto_field_name=not self._options.protobuf_json_names,
                    always_print_fields_with_no_presence=self._options.protobuf_json_names,
                )
            except (json_format.Error, TypeError, ValueError, RecursionError) as error:
                raise Fault(Reason.INVALID_VALUE, str(error)[:200]) from None
        return message
