"""Message classes can be built from the descriptors, and encode as the schema says."""

from typing import Any

import pytest
from google.protobuf import descriptor_pool, message_factory

from headgate.registry.formats.protobuf import ProtobufSchema, file_descriptor_set, parse
from tests.unit.registry.protobuf.protoc import PROTOS

FILES = {str(path.relative_to(PROTOS)): path.read_text("utf-8") for path in sorted(PROTOS.rglob("*.proto"))}


def message_class(schema: ProtobufSchema, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in file_descriptor_set(schema).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_the_set_lists_each_file_after_those_it_imports() -> None:
    files = file_descriptor_set(parse(FILES["proto3_all.proto"], FILES)).file
    seen: set[str] = set()
    for file in files:
        assert set(file.dependency) <= seen
        seen.add(file.name)
    assert files[-1].name == "default"
    assert {"shared/base.proto", "google/protobuf/timestamp.proto"} <= seen


def test_the_set_contains_only_imported_files() -> None:
    schema = parse('syntax = "proto3"; import "a.proto"; message M { A a = 1; }', {"a.proto": "message A {}", "b": "?"})
    assert [file.name for file in file_descriptor_set(schema).file] == ["a.proto", "default"]


@pytest.mark.parametrize("name", FILES)
def test_every_file_builds_from_its_text_and_from_its_serialized_form(name: str) -> None:
    schema = parse(FILES[name], FILES)
    for form in (schema, parse(schema.serialized(), FILES), parse(schema.canonical, FILES)):
        pool = descriptor_pool.DescriptorPool()
        for file in file_descriptor_set(form).file:
            pool.AddSerializedFile(file.SerializeToString())
        assert pool.FindFileByName("default").package == schema.main.proto.package


def test_a_message_survives_a_round_trip_through_its_class() -> None:
    order = message_class(parse(FILES["proto3_all.proto"], FILES), "demo.v1.Order")
    value = order(order_id="o-1", count=0, deltas=[-1, 2], status=-1)
    value.children["x"].order_id = "o-2"
    value.times[7].seconds = 12
    value.note.value = "hello"
    again = order.FromString(value.SerializeToString())
    assert again == value
    assert again.HasField("count")
    assert not again.HasField("odd")


def test_defaults_of_proto2_reach_the_class() -> None:
    everything = message_class(parse(FILES["proto2_all.proto"], FILES), "alpha.beta_gamma.Everything")()
    assert everything.a == -31
    assert everything.o == b"\x00\x01\xff\n\"'\\abc?\x07\x08\x0c\x0b"
    assert everything.n.startswith("quote\" 'q' \t \n \\ \u00e9 A \u00e9 \U0001f600 and more")
    assert everything.k4 == float("-inf")
    assert everything.p == 2
