"""The canonical and the normalized text, byte for byte, and that neither changes what a schema means."""

import base64

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from registry.formats.protobuf import parse
from registry.model import SchemaType
from tests.unit.registry.protobuf.protoc import PROTOS, comparable
from tests.unit.registry.protobuf.test_descriptors_agree_with_protoc import PUBLISHED

FILES = {str(path.relative_to(PROTOS)): path.read_text("utf-8") for path in sorted(PROTOS.rglob("*.proto"))}
CORPUS = {**FILES, **PUBLISHED}

WRITTEN = """
// A comment.
syntax="proto3"; package shop ; import public "b.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto"; import "google/protobuf/timestamp.proto";
option java_package = 'org.shop' ; option cc_enable_arenas=true;
enum Size { SIZE_UNSET = 0; LARGE = 2 [deprecated = true]; SMALL = 1; }
extend google.protobuf.FieldOptions { Rule rule = 50000; string tag = 50001; }
message Rule { int32 min = 1; int32 max = 2; repeated string names = 3; }
message Order { /* nested first */ message Line { int32 n = 2; string sku = 1;
  option deprecated = true; reserved 9, 4 to 6 ; reserved "x", "a"; }
  oneof pay { string card = 8; bytes token = 7; }
  map < string , Line > lines = 3; string id = 1 [ json_name = "ID", (tag) = 'it\\'s', deprecated = true ];
  google.protobuf.Timestamp at = 2; optional Size size = 4 [(rule).max = 9, (rule).min = 0x1, (rule).names = "q"];
  message Empty {}
}
service Shop { rpc Put(Order) returns(stream Order.Line){}
  rpc Get (shop.Order) returns (Order) { option deprecated = true; } }
"""
REFERENCES = {"b.proto": 'syntax = "proto3"; package b;'}

# An @ stands where a line ends in spaces.
CANONICAL = """\
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
import "google/protobuf/timestamp.proto";
import public "b.proto";

option java_package = "org.shop";
option cc_enable_arenas = true;

message Rule {
  int32 min = 1;
  int32 max = 2;
  repeated string names = 3;
}
message Order {
  map<string, Line> lines = 3;
  string id = 1 [
    (tag) = "it\\'s",
    deprecated = true,
    json_name = "ID"
  ];
  google.protobuf.Timestamp at = 2;
  optional Size size = 4 [
    (rule).max = 9,
    (rule).min = 0x1,
    (rule).names = "q"
  ];

  oneof pay {
    string card = 8;
    bytes token = 7;
  }

  message Line {
    reserved 9, 4 to 6;
    reserved "x", "a";
  @
    option deprecated = true;
  @
    int32 n = 2;
    string sku = 1;
  }
  message Empty {}
}
enum Size {
  SIZE_UNSET = 0;
  LARGE = 2 [deprecated = true];
  SMALL = 1;
}

extend google.protobuf.FieldOptions {
  Rule rule = 50000;
  string tag = 50001;
}

service Shop {
  rpc Put (Order) returns (stream Order.Line);
  rpc Get (shop.Order) returns (Order) {
    option deprecated = true;
  };
}
""".replace("@", "")

NORMALIZED = """\
syntax = "proto3";
package shop;

import "google/protobuf/descriptor.proto";
import "google/protobuf/timestamp.proto";
import public "b.proto";

option cc_enable_arenas = true;
option java_package = "org.shop";

message Rule {
  int32 min = 1;
  int32 max = 2;
  repeated string names = 3;
}
message Order {
  string id = 1 [
    deprecated = true,
    json_name = "ID",
    (shop.tag) = "it\\'s"
  ];
  .google.protobuf.Timestamp at = 2;
  map<string, .shop.Order.Line> lines = 3;
  optional .shop.Size size = 4 [(shop.rule) = {
    max: 9,
    min: 1,
    names: "q"
  }];

  oneof pay {
    bytes token = 7;
    string card = 8;
  }

  message Line {
    reserved 4 to 6;
    reserved 9;
    reserved "a";
    reserved "x";
  @
    option deprecated = true;
  @
    string sku = 1;
    int32 n = 2;
  }
  message Empty {}
}
enum Size {
  SIZE_UNSET = 0;
  SMALL = 1;
  LARGE = 2 [deprecated = true];
}

extend .google.protobuf.FieldOptions {
  .shop.Rule rule = 50000;
  string tag = 50001;
}

service Shop {
  rpc Put (.shop.Order) returns (stream .shop.Order.Line);
  rpc Get (.shop.Order) returns (.shop.Order) {
    option deprecated = true;
  };
}
""".replace("@", "")


def test_the_canonical_text_is_laid_out_as_confluents() -> None:
    schema = parse(WRITTEN, REFERENCES)
    assert schema.canonical == CANONICAL
    assert schema.text == WRITTEN
    assert schema.type is SchemaType.PROTOBUF


def test_the_normalized_text_is_sorted_and_fully_qualified() -> None:
    assert parse(WRITTEN, REFERENCES).normalized() == NORMALIZED


def test_a_normalized_proto2_file_loses_its_syntax_line() -> None:
    body = "message M { optional string a = 1; }"
    assert parse('syntax = "proto2"; ' + body, {}).normalized() == parse(body, {}).normalized()
    assert parse('syntax = "proto2"; ' + body, {}).canonical.startswith('syntax = "proto2";\n')


def test_normalizing_keeps_the_first_constant_of_an_enum_first() -> None:
    text = 'syntax = "proto3"; enum E { ZERO = 0; TWO = 2; ONE = 1; BELOW = -1; }'
    normalized = parse(text, {}).normalized()
    assert [line.split()[0] for line in normalized.splitlines()[3:-1]] == ["ZERO", "BELOW", "ONE", "TWO"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("message M { string a = 1; string b = 2; }", "message M { string b = 2; string a = 1; }"),
        ("message M { N n = 1; } message N {}", "message M { .N n = 1; } message N {}"),
        ("message M { reserved 1, 2; }", "message M { reserved 2; reserved 1; }"),
        ("message M { reserved 3 to 3; }", "message M { reserved 3; }"),
        (
            "message M { map<string, string> m = 1; }",
            "message M { repeated E m = 1; message E { option map_entry = true; string key = 1; string value = 2; } }",
        ),
        ("message M { string foo_bar = 1 [json_name = 'fooBar']; }", "message M { string foo_bar = 1; }"),
        ("option java_package = 'a'; option go_package = 'b';", "option go_package = 'b'; option java_package = 'a';"),
        ("// x\nmessage M{}", "message M {\n}"),
    ],
)
def test_schemas_that_mean_the_same_have_one_normalized_form(one: str, other: str) -> None:
    head = 'syntax = "proto3";'
    assert parse(head + one, {}).normalized() == parse(head + other, {}).normalized()


@pytest.mark.parametrize("name", CORPUS)
def test_printing_and_parsing_again_changes_nothing(name: str) -> None:
    schema = parse(CORPUS[name], CORPUS)
    again = parse(schema.canonical, CORPUS)
    assert again.canonical == schema.canonical
    assert comparable(again.main.proto, sort_fields=True) == comparable(schema.main.proto, sort_fields=True)
    normalized = schema.normalized()
    assert parse(normalized, CORPUS).normalized() == normalized


@pytest.mark.parametrize("name", CORPUS)
def test_the_serialized_form_means_what_the_text_means(name: str) -> None:
    schema = parse(CORPUS[name], CORPUS)
    serialized = parse(schema.serialized(), CORPUS)
    assert serialized.serialized() == schema.serialized()
    assert parse(serialized.canonical, CORPUS).canonical == serialized.canonical
    assert comparable(parse(serialized.canonical, CORPUS).main.proto, sort_fields=True) == comparable(
        schema.main.proto, sort_fields=True
    )
    assert serialized.normalized() == schema.normalized()


def test_a_descriptor_of_a_generated_class_is_a_schema() -> None:
    proto = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(proto)
    schema = parse(base64.b64encode(proto.SerializeToString()).decode(), {})
    assert "message Timestamp {\n  int64 seconds = 1;\n  int32 nanos = 2;\n}" in schema.canonical


def test_the_entries_of_a_serialized_map_keep_their_place_among_the_messages() -> None:
    text = 'syntax = "proto3"; message M { map<string, N> m = 1; message N {} message O {} }'
    proto = parse(text, {}).main.proto
    shuffled = descriptor_pb2.FileDescriptorProto()
    shuffled.CopyFrom(proto)
    names = ["MEntry", "N", "O"]
    shuffled.message_type[0].nested_type.sort(key=lambda message: names.index(message.name))
    schema = parse(base64.b64encode(shuffled.SerializeToString()).decode(), {})
    kept = parse(schema.canonical, {}).main.proto.message_type[0].nested_type
    assert [message.name for message in kept] == names


def test_options_that_nobody_defines_survive() -> None:
    text = """syntax = "proto3";
    import "google/protobuf/descriptor.proto";
    option (unknown.note) = "n";
    message M {
      string a = 1 [(validate.rules).string = { min_len: 1, pattern: "^a" }, novel = 3, (x) = -2, (y) = 1.5, (z) = T];
    }
    """
    schema = parse(text, {})
    assert parse(schema.serialized(), {}).normalized() == schema.normalized()
    assert "(validate.rules).string = {\n      min_len: 1," in schema.canonical


def test_bytes_that_are_no_text_are_printed_as_octal() -> None:
    schema = parse(r'message M { optional bytes b = 1 [default = "a\377\001\n\"\\é"]; }', {})
    assert r'default = "a\377\001\n\"\\é"' in schema.canonical
    assert parse(schema.canonical, {}).main.proto == schema.main.proto


def test_extensions_can_be_left_out() -> None:
    text = FILES["custom_options.proto"]
    stripped = parse(text, FILES).without_extensions()
    assert "extend" not in stripped
    assert "rules)" not in stripped
    assert '(confluent.file_meta).doc = "all of it"' in stripped
    assert "string a = 1 [deprecated = true];" in stripped
    assert parse(stripped, FILES).without_extensions() == stripped
