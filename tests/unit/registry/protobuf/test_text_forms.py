"""The canonical and the normalized text, byte for byte. Neither changes the meaning of a schema."""

import base64

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2

from headgate.registry.formats.protobuf import parse
from headgate.registry.model import SchemaType
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

# @ marks a line that ends with spaces.
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


def test_the_canonical_text_has_the_format_of_confluents() -> None:
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
def test_equivalent_schemas_have_the_same_normalized_text(one: str, other: str) -> None:
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
def test_the_serialized_form_is_equivalent_to_the_text(name: str) -> None:
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


def test_map_entries_of_a_serialized_schema_keep_their_position_among_the_messages() -> None:
    text = 'syntax = "proto3"; message M { map<string, N> m = 1; message N {} message O {} }'
    proto = parse(text, {}).main.proto
    shuffled = descriptor_pb2.FileDescriptorProto()
    shuffled.CopyFrom(proto)
    names = ["MEntry", "N", "O"]
    shuffled.message_type[0].nested_type.sort(key=lambda message: names.index(message.name))
    schema = parse(base64.b64encode(shuffled.SerializeToString()).decode(), {})
    kept = parse(schema.canonical, {}).main.proto.message_type[0].nested_type
    assert [message.name for message in kept] == names


def test_undefined_options_are_kept() -> None:
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


def test_bytes_that_are_not_utf_8_are_printed_as_octal() -> None:
    schema = parse(r'message M { optional bytes b = 1 [default = "a\377\001\n\"\\é"]; }', {})
    assert r'default = "a\377\001\n\"\\é"' in schema.canonical
    assert parse(schema.canonical, {}).main.proto == schema.main.proto


ENUMS = {
    "negative": 'syntax = "proto3"; enum E { ZERO = 0; ONE = 1; LOW = -2147483648; NEG = -1; HEX = -0x10; }',
    "aliased": (
        'syntax = "proto3"; enum E { option allow_alias = true; '
        "UNSET = 0; STARTED = 1; RUNNING = 1; NONE = 0; GONE = -1; AWAY = -1; }"
    ),
    "aliases of the default": (
        'syntax = "proto3"; enum E { option allow_alias = true; Z = 0; A = 0; M = 0; B = -1; } message Msg { E e = 1; }'
    ),
    "proto2 default": (
        'syntax = "proto2"; message M { optional E e = 1 [default = NEG]; optional E f = 2; '
        "enum E { option allow_alias = true; TWO = 2; NEG = -1; DUE = 2; ONE = 1; reserved -9 to -5, 7, -3; } }"
    ),
    "options": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; '
        "extend google.protobuf.EnumValueOptions { sint32 rank = 50000; E kind = 50001; } "
        "enum E { ZERO = 0; P = 5 [(rank) = -7, (kind) = N]; N = -5 [(kind) = P, (rank) = - 1]; }"
    ),
    "edition": 'edition = "2023"; enum E { option features.enum_type = CLOSED; ONE = 1; NEG = -1; ZERO = 0; }',
}


def enums_of(text: str) -> dict[str, tuple[str, dict[int, str], set[tuple[str, int, bytes]]]]:
    """By name: the default constant, the JSON name of each number, and all constants with their options."""
    proto = parse(text, {}).main.proto
    enums = [*proto.enum_type, *(enum for message in proto.message_type for enum in message.enum_type)]
    return {
        enum.name: (
            enum.value[0].name,
            {one.number: one.name for one in reversed(enum.value)},
            {(one.name, one.number, one.options.SerializeToString(deterministic=True)) for one in enum.value},
        )
        for enum in enums
    }


@pytest.mark.parametrize("text", ENUMS.values(), ids=ENUMS)
def test_normalizing_enums_keeps_their_meaning_and_is_idempotent(text: str) -> None:
    normalized = parse(text, {}).normalized()
    assert enums_of(normalized) == enums_of(text)
    assert parse(normalized, {}).normalized() == normalized
    assert parse(parse(text, {}).serialized(), {}).normalized() == normalized


def test_constants_are_sorted_by_number_after_the_default() -> None:
    def constants(text: str) -> list[str]:
        return [one.name for one in parse(parse(text, {}).normalized(), {}).main.proto.enum_type[0].value]

    assert constants(ENUMS["negative"]) == ["ZERO", "LOW", "HEX", "NEG", "ONE"]
    assert constants(ENUMS["aliased"]) == ["UNSET", "GONE", "AWAY", "NONE", "STARTED", "RUNNING"]


def test_the_serialized_form_has_the_json_names_of_the_source_only() -> None:
    text = """
    syntax = "proto2"; package p;
    message M {
      optional string first_name = 1;
      optional string last_name = 2 [json_name = "lastName"];
      map<string, int32> by_key = 3;
      oneof o { string in_one = 4 [json_name = "x"]; int32 in_two = 5; }
      optional group Inner = 6 { optional int32 deep_one = 1 [json_name = "d"]; optional int32 deep_two = 2; }
      message Nested { optional int32 a_b = 1 [json_name = "ab"]; optional int32 c_d = 2; }
      extensions 100 to 200;
    }
    extend M { optional int32 some_thing = 100; }
    """
    schema = parse(text, {})
    proto = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema.serialized()))
    named: dict[str, str] = {}
    waiting = list(proto.message_type)
    while waiting:
        message = waiting.pop()
        waiting += message.nested_type
        named |= {one.name: one.json_name for one in message.field if one.HasField("json_name")}
    assert named == {"last_name": "lastName", "in_one": "x", "deep_one": "d", "a_b": "ab"}
    assert not proto.extension[0].HasField("json_name")
    again = parse(schema.serialized(), {})
    assert again.main.proto == schema.main.proto
    assert all(one.HasField("json_name") for one in schema.main.proto.message_type[0].field)
