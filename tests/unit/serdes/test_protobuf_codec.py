"""Protobuf bodies: message paths, classes, names and mistakes."""

from typing import Any

import pytest
from google.protobuf import duration_pb2, timestamp_pb2

from headgate.registry.errors import InvalidSchema
from headgate.registry.model import SchemaType
from headgate.serdes import RegistryClient, RegistrySettings, Serializer, SerializerOptions
from headgate.serdes.codec import ReadOptions, WriteOptions
from headgate.serdes.errors import EncodeError
from headgate.serdes.framing import Frame
from headgate.serdes.outcome import Poison
from headgate.serdes.protobuf.codec import ProtobufReader, ProtobufWriter
from headgate.serdes.protobuf.messages import Messages, class_of, definition_of, dependencies_of
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry

TEXT = """
syntax = "proto3";
package shop;
message Order { int64 order_id = 1; message Line { string sku = 1; message Part { int32 n = 1; } } Line line = 2; }
message Refund { int64 id = 1; map<string, int32> parts = 2; }
"""
PLAIN = 'syntax = "proto3"; message A { message B { int32 n = 1; } } message C { int32 n = 1; }'


def writer(name: str | None = None, **options: Any) -> ProtobufWriter:
    return ProtobufWriter(TEXT, {}, WriteOptions(protobuf_message=name, **options))


def read(body: bytes, path: bytes | None = None, reader: str | None = None, **options: Any) -> Any:
    found = ProtobufReader((TEXT, {}), None if reader is None else (reader, {}), ReadOptions(**options))
    return found.read(Frame(1, None, body, path))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (None, b"\0"),
        ("shop.Order", b"\0"),
        ("shop.Refund", b"\2\2"),
        ("shop.Order.Line", b"\4\0\0"),
        ("shop.Order.Line.Part", b"\6\0\0\0"),
    ],
)
def test_the_message_path_is_found_by_name(name: str | None, path: bytes) -> None:
    found = writer(name)
    assert found.write({}).path == path
    assert found.record_name == (name or "shop.Order")


@pytest.mark.parametrize("name", ["Order", "shop.Nothing", "shop.Order.Nothing", "shop.Nothing.Line", "shopping.Order"])
def test_an_unknown_message_is_rejected(name: str) -> None:
    with pytest.raises(InvalidSchema, match=f"declares no message {name}"):
        writer(name)


def test_messages_without_a_package_are_found() -> None:
    messages = Messages(PLAIN, {})
    found = [messages.named(name) for name in ("A", "A.B", "C", "B", "A.C")]
    assert [None if each is None else each.full_name for each in found] == ["A", "A.B", "C", None, None]
    assert messages.at((0, 0)) is messages.named("A.B")
    assert messages.at((1, 0)) is None
    assert messages.at((2,)) is None


def test_a_file_without_messages_is_rejected() -> None:
    with pytest.raises(InvalidSchema, match="declares no message"):
        Messages('syntax = "proto3"; enum E { A = 0; }', {}).first()


def test_a_message_of_the_same_file_has_its_own_path() -> None:
    descriptor = Messages(TEXT, {}).named("shop.Refund")
    assert descriptor is not None
    refund = class_of(descriptor)(id=5)
    assert writer().write(refund).path == b"\2\2"
    assert writer("shop.Refund").write(refund).path == b"\2\2"
    with pytest.raises(EncodeError, match=r"declares no message google\.protobuf\.Duration"):
        writer().write(duration_pb2.Duration())


def test_maps_are_written_in_a_fixed_order() -> None:
    parts = {f"k{at}": at for at in range(20)}
    first = writer("shop.Refund").write({"parts": parts})
    assert writer("shop.Refund").write({"parts": dict(reversed(parts.items()))}) == first


def test_unknown_fields_are_mistakes_unless_they_are_ignored() -> None:
    with pytest.raises(EncodeError, match="nothing"):
        writer().write({"nothing": 1})
    assert writer(ignore_unknown_fields=True).write({"nothing": 1, "orderId": "5"}).content == b"\x08\x05"
    with pytest.raises(EncodeError, match=r"5 \(int\) is neither a message nor a dictionary"):
        writer().write(5)


@pytest.mark.parametrize("path", [None, b"", b"\0"])
def test_the_first_message_is_the_default(path: bytes | None) -> None:
    message = read((b"\0" if path is None else b"") + b"\x08\x05", path)
    assert (message.DESCRIPTOR.full_name, message.order_id) == ("shop.Order", 5)


def test_a_path_in_a_header_selects_the_message() -> None:
    assert read(b"\x08\x07", b"\2\2").DESCRIPTOR.full_name == "shop.Refund"
    bad = read(b"\x08\x07", b"\2\4")
    assert isinstance(bad, Poison)
    assert "[2] does not exist" in bad.detail


def test_names_in_dictionaries_are_those_of_the_file_or_of_json() -> None:
    assert read(b"\0\x08\x05", protobuf_as_dict=True) == {"order_id": "5"}
    assert read(b"\0", protobuf_as_dict=True) == {}
    assert read(b"\0\x08\x05", protobuf_as_dict=True, protobuf_json_names=True) == {"orderId": "5"}
    assert read(b"\0", protobuf_as_dict=True, protobuf_json_names=True) == {"orderId": "0"}


def test_a_reader_schema_is_applied_by_name() -> None:
    newer = 'syntax = "proto3"; package shop; message X {} message Order { int64 renamed = 1; }'
    assert read(b"\0\x08\x05", reader=newer).renamed == 5
    missing = read(b"\2\2\x08\x05", reader=newer)
    assert isinstance(missing, Poison)
    assert (missing.reason.name, "shop.Refund" in missing.detail) == ("UNRESOLVABLE", True)


def test_required_fields_must_be_present() -> None:
    text = 'syntax = "proto2"; message R { required int32 n = 1; }'
    found = ProtobufReader((text, {}), None, ReadOptions()).read(Frame(1, None, b"\0", None))
    assert isinstance(found, Poison)
    assert found.reason.name == "INVALID_VALUE"


def test_a_generated_file_becomes_a_definition() -> None:
    assert dependencies_of(timestamp_pb2.DESCRIPTOR) == []
    definition = definition_of(duration_pb2.DESCRIPTOR)
    assert definition.type is SchemaType.PROTOBUF
    assert Messages(definition.text, {}).named("google.protobuf.Duration") is not None


def generated() -> Any:
    """A class of a file that imports another one."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    inner = descriptor_pb2.FileDescriptorProto(name="inner.proto", syntax="proto3")
    inner.message_type.add(name="Inner").field.add(name="n", number=1, type=5, label=1)
    outer = descriptor_pb2.FileDescriptorProto(name="outer.proto", syntax="proto3", dependency=["inner.proto"])
    outer.message_type.add(name="Outer").field.add(name="inner", number=1, type=11, label=1, type_name=".Inner")
    for file in (inner, outer):
        pool.AddSerializedFile(file.SerializeToString())
    return class_of(pool.FindMessageTypeByName("Outer"))


def test_a_serializer_registers_the_imports_of_a_generated_class() -> None:
    stub = StubRegistry()
    client = RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport)
    payload = Serializer(client, generated()).serialize({"inner": {"n": 3}}, topic="t")
    assert sorted(stub.subjects) == ["inner.proto", "t-value"]
    (schema_id,) = stub.subjects["t-value"]
    assert stub.schemas[schema_id - 1]["references"] == [
        {"name": "inner.proto", "subject": "inner.proto", "version": 1}
    ]
    assert payload == b"\0" + schema_id.to_bytes(4) + b"\0" + b"\x0a\x02\x08\x03"


def test_a_serializer_that_does_not_register_needs_registered_imports() -> None:
    stub = StubRegistry()
    client = RegistryClient(RegistrySettings((ADDRESS,)), transport=stub.transport)
    with pytest.raises(Exception, match="not found"):
        Serializer(client, generated(), SerializerOptions(auto_register=False)).serialize({}, topic="t")
    assert stub.subjects == {}
