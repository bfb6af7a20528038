"""protoc as the reference: the compiler in grpcio-tools, in this process."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc_tools
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

PROTOS = Path(__file__).parent / "protos"
RUNTIME = Path(grpc_tools.__file__).parent / "_proto"
KNOWN = Path(__file__).parents[4] / "registry" / "formats" / "protobuf" / "known"

FileProto = descriptor_pb2.FileDescriptorProto


def compiled(name: str, files: Mapping[str, str]) -> FileProto | None:
    """The descriptor of one of `files`, or None if protoc rejects it."""
    with tempfile.TemporaryDirectory() as directory:
        for path, text in files.items():
            target = Path(directory, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "surrogatepass"))
        out = Path(directory, "out.bin")
        status = protoc.main(  # type: ignore[no-untyped-call]  # grpcio-tools ships no types
            ["protoc", f"-I{directory}", f"-I{KNOWN}", f"-I{RUNTIME}", f"--descriptor_set_out={out}", name]
        )
        if status != 0:
            return None
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]


def comparable(proto: FileProto, *, sort_fields: bool = False) -> FileProto:
    """A copy without irrelevant parts: the file name, and the position of generated messages.

    protoc also removes declarations of extension ranges and keeps empty method bodies. `sort_fields` ignores the order
    of fields, which a canonical text does not keep across oneofs.
    """
    copy = FileProto()
    copy.CopyFrom(proto)
    copy.name = ""
    if copy.syntax == "proto2":
        copy.syntax = ""
    for message in copy.message_type:
        _sort(message, sort_fields)
    _sort_messages(copy.message_type)
    for service in copy.service:
        for method in service.method:
            if not method.options.ByteSize():
                method.ClearField("options")
    return copy


def _sort(message: descriptor_pb2.DescriptorProto, sort_fields: bool) -> None:
    for nested in message.nested_type:
        _sort(nested, sort_fields)
    _sort_messages(message.nested_type)
    for numbers in message.extension_range:
        numbers.options.ClearField("declaration")
        if not numbers.options.ByteSize():
            numbers.ClearField("options")
    if sort_fields:
        message.field.sort(key=lambda field: field.number)
        message.extension.sort(key=lambda field: (field.extendee, field.number))


def _sort_messages(messages: Any) -> None:
    messages.sort(key=lambda message: message.name)
