"""Invalid schemas are rejected with a reason and a position."""

import pytest

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import parse
from tests.unit.registry.protobuf.protoc import compiled

P3 = 'syntax = "proto3"; '

# Schema, position and part of the reason. protoc must reject all of them, too.
REFUSED = [
    (P3 + "message M { string a = 1; string b = 1; }", "M.b", "already used by 'a'"),
    (P3 + "message M { string a = 1; string a = 2; }", "M.a", "already used by another field"),
    (P3 + "message M {} message M {}", "M", "already used by another message"),
    (P3 + "message M {} enum M { A = 0; }", "M", "already used by another message"),
    (P3 + "enum E { A = 0; } enum F { A = 0; }", "A", "already used by another enum constant"),
    (P3 + "message M { string a = 0; }", "M.a", "between 1 and 536870911"),
    (P3 + "message M { string a = 536870912; }", "M.a", "between 1 and 536870911"),
    (P3 + "message M { string a = 19000; }", "M.a", "reserved for Protobuf"),
    (P3 + "message M { string a = 19999; }", "M.a", "reserved for Protobuf"),
    (P3 + "message M { string a = 99999999999999999999; }", "line 1", "not between"),
    (P3 + "message M { string a = -1; }", "line 1", "not between"),
    (P3 + "message M { reserved 3; string a = 3; }", "M.a", "is reserved"),
    (P3 + "message M { reserved 2 to 4; string a = 3; }", "M.a", "is reserved"),
    (P3 + "message M { reserved 2 to max; string a = 3; }", "M.a", "is reserved"),
    (P3 + 'message M { reserved "a"; string a = 3; }', "M.a", "is reserved"),
    (P3 + 'message M { reserved "a", "a"; }', "M", "reserved twice"),
    (P3 + "message M { reserved 4 to 2; }", "M", "ends before it starts"),
    (P3 + "message M { reserved 1 to 5, 3; }", "M", "overlap at 3"),
    (P3 + 'message M { reserved 1, "a"; }', "line 1", "not both"),
    (P3 + "message M { Missing a = 1; }", "M.a", "'Missing' is not defined"),
    (P3 + "message M { .M.Missing a = 1; }", "M.a", "is not defined"),
    (P3 + "message M { M.a b = 1; string a = 2; }", "M.b", "not a enum or message"),
    (P3 + "message M { google.protobuf.Timestamp t = 1; }", "M.t", "is not defined"),
    (P3 + 'import "missing.proto"; message M {}', "line 1", "'missing.proto' is neither"),
    (P3 + "enum E { A = 1; }", "E", "first constant of a proto3 enum must be 0"),
    (P3 + "enum E {}", "E", "at least one constant"),
    (P3 + "enum E { A = 0; B = 0; }", "E.B", "allow_alias"),
    (P3 + "enum E { A = 0; A = 1; }", "A", "already used"),
    (P3 + "enum E { A = 0; reserved 1 to 3; B = 2; }", "E.B", "is reserved"),
    (P3 + 'enum E { A = 0; reserved "B"; B = 2; }', "E.B", "is reserved"),
    (P3 + "enum E { A = 2147483648; }", "line 1", "not between"),
    (P3 + "message M { map<float, string> m = 1; }", "M.MEntry", "key of a map"),
    (P3 + "message M { map<bytes, string> m = 1; }", "M.MEntry", "key of a map"),
    (P3 + "message M { map<M, string> m = 1; }", "M.MEntry", "key of a map"),
    (P3 + "enum E { A = 0; } message M { map<E, string> m = 1; }", "M.MEntry", "key of a map"),
    (P3 + "message M { repeated map<string, string> m = 1; }", "line 1", "no label"),
    (P3 + "message M { oneof o { map<string, string> m = 1; } }", "line 1", "no map"),
    (P3 + "message M { map<string, string> m = 1; message MEntry {} }", "M.MEntry", "already used"),
    (P3 + "message M { map<string, map<string, string>> m = 1; }", "line 1", "Expected"),
    ("enum E { A = 1; } message M { map<string, E> m = 1; }", "M.MEntry", "enum in a map must be 0"),
    (P3 + "message M { required string a = 1; }", "line 1", "no required"),
    (P3 + "message M { string a = 1 [default = 'x']; }", "M.a", "no explicit default"),
    (P3 + "message M { optional group G = 1 {} }", "line 1", "Groups exist in proto2"),
    (P3 + "message M { extensions 1 to 5; }", "M", "no extension ranges"),
    (P3 + "message M { oneof o {} }", "M.o", "at least one field"),
    (P3 + "message M { oneof o { repeated string a = 1; } }", "line 1", "no label"),
    (P3 + "message M { oneof o { string a = 1; } string o = 2; }", "M.o", "already used"),
    (P3 + "message M { string a = 1; oneof o { string b = 1; } }", "M.b", "already used by 'a'"),
    (P3 + "message M { string foo_bar = 1; string fooBar = 2; }", "M.fooBar", "JSON name"),
    (P3 + "message M { repeated string a = 1 [packed = true]; }", "M.a", "packed"),
    (P3 + "message M { int32 a = 1 [packed = true]; }", "M.a", "packed"),
    (P3 + "message M { string a = 1 [deprecated = 3]; }", "M.a", "wrong type"),
    (P3 + "message M { string a = 1 [deprecated = yes]; }", "M.a", "true or false"),
    (P3 + "message M { string a = 1 [deprecated = true, deprecated = true]; }", "M.a", "set twice"),
    (P3 + "message M { string a = 1 [jstype = NOPE]; }", "M.a", "does not fit"),
    (P3 + "message M { string a = 1 [json_name = 1]; }", "M.a", "string"),
    (P3 + "option java_package = 3;", "line 1", "wrong type"),
    (P3 + "extend M { string a = 1; } message M {}", "a", "no extension range with number 1"),
    ("message M { extensions 5 to 6; optional string a = 5; }", "M.a", "in an extension range"),
    ("message M { extensions 5 to 6; reserved 6; }", "M", "both reserved"),
    ("message M { extensions 5 to 6; } extend M { required string a = 5; }", "a", "cannot be required"),
    ("message M { extensions 5 to 6; } extend M { optional string a = 7; }", "a", "no extension range with number 7"),
    ("extend Missing { optional string a = 7; }", "a", "is not defined"),
    ("message M { string a = 1; }", "line 1", "begins with required"),
    ("message M { optional int32 a = 1 [default = 'x']; }", "M.a", "must be an integer"),
    ("message M { optional int32 a = 1 [default = 2147483648]; }", "M.a", "not between"),
    ("message M { optional uint32 a = 1 [default = -1]; }", "M.a", "not between"),
    ("message M { optional bool a = 1 [default = 1]; }", "M.a", "does not fit"),
    ("message M { optional M a = 1 [default = 1]; }", "M.a", "does not fit"),
    ("message M { repeated int32 a = 1 [default = 1]; }", "M.a", "cannot have a default"),
    ("enum E { A = 0; } message M { optional E a = 1 [default = B]; }", "M.a", "not a constant"),
    ("message M { optional group g = 1 {} }", "line 1", "capital letter"),
    (P3 + "service S { rpc A (M) returns (M); } enum M { Z = 0; }", "S.A", "not a message"),
    (P3 + "service S { rpc A (M) returns (Nope); } message M {}", "S.A", "is not defined"),
    (P3 + "service S { rpc A (M) returns (M); rpc A (M) returns (M); } message M {}", "S.A", "already used"),
    (P3 + "service S { rpc A (int32) returns (M); } message M {}", "S.A", "is not defined"),
    ('syntax = "proto4"; message M {}', "line 1", "neither proto2 nor proto3"),
    ('edition = "1999"; message M {}', "line 1", "Edition"),
    ('message M {} syntax = "proto3";', "line 1", "must be the first"),
    (P3 + "package a; package b;", "line 1", "one package"),
    (P3 + "message M { string a = 1 }", "line 1", "Expected ;"),
    (P3 + "message M { string a; }", "line 1", "Expected ="),
    (P3 + "message M { string = 1; }", "line 1", "Expected a name"),
    (P3 + "message { }", "line 1", "Expected a name"),
    (P3 + "message M {", "line 1", "ends here"),
    (P3 + "message M { } }", "line 1", "Expected message"),
    (P3 + "\n\nmessage M {\n  strin#g a = 1;\n}", "line 4, column 8", "does not belong"),
    (P3 + "message M { string 1a = 1; }", "line 1", "Expected a name"),
    (P3 + 'option java_package = "a', "line 1", "not closed"),
    (P3 + "/* never closed", "line 1", "comment is not closed"),
    (P3 + r'option java_package = "\q";', "line 1", "escape"),
    (P3 + "message Ünïcode {}", "line 1", "does not belong"),
    (P3 + "message M { string a = 1.5; }", "line 1", "whole number"),
    ('edition = "2023"; message M { optional string a = 1; }', "line 1", "no label optional"),
    ('edition = "2023"; message M { reserved "a"; }', "line 1", "without quotes"),
    ('import "google/protobuf/any.proto"; package google.protobuf; message Any {}', "google.protobuf.Any", "also"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_an_invalid_schema_is_rejected_with_reason_and_position(text: str, place: str, reason: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse(text, {})
    assert place in caught.value.path
    assert reason in caught.value.reason


@pytest.mark.parametrize("text", [text for text, _, _ in REFUSED], ids=range(len(REFUSED)))
def test_protoc_also_rejects_the_schema(text: str) -> None:
    assert compiled("refused.proto", {"refused.proto": text}) is None


@pytest.mark.parametrize("text", ["", " \n", "{}", '"string"', "AAAA", "null", "foo", "//", "[]", "Zm9v", "=", "CgA="])
def test_text_of_another_format_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(text, {})


def test_files_that_import_each_other_are_rejected() -> None:
    references = {"a.proto": 'import "b.proto";', "b.proto": 'import "a.proto";'}
    with pytest.raises(InvalidSchema, match="circular"):
        parse('import "a.proto";', references)


def test_a_file_that_imports_itself_is_rejected() -> None:
    with pytest.raises(InvalidSchema, match="circular"):
        parse('import "a.proto";', {"a.proto": 'import "a.proto";'})


def test_an_error_in_a_reference_names_the_reference() -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse('import "a.proto";', {"a.proto": "message M { optional Nope n = 1; }"})
    assert caught.value.path == "a.proto: M.n"
    with pytest.raises(InvalidSchema) as caught:
        parse('import "a.proto";', {"a.proto": "message M {"})
    assert caught.value.path.startswith("a.proto: line 1")


def test_a_type_of_an_indirect_import_is_not_visible() -> None:
    references = {"a.proto": 'import "b.proto";', "b.proto": "message B {}"}
    with pytest.raises(InvalidSchema, match="not defined"):
        parse('import "a.proto"; message M { optional B b = 1; }', references)
    public = {**references, "a.proto": 'import public "b.proto";'}
    parse('import "a.proto"; message M { optional B b = 1; }', public)


def test_two_imports_that_declare_one_name_are_rejected() -> None:
    references = {"a.proto": "message X {}", "b.proto": "message X {}"}
    with pytest.raises(InvalidSchema):
        parse('import "a.proto"; import "b.proto"; message M {}', references)


def test_a_reference_overrides_a_well_known_file() -> None:
    timestamp = 'syntax = "proto3"; package google.protobuf; message Timestamp { int32 s = 1; }'
    own = {"google/protobuf/timestamp.proto": timestamp}
    text = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }'
    schema = parse(text, own)
    assert schema.files[0].proto.message_type[0].field[0].name == "s"


def test_references_may_be_serialized() -> None:
    serialized = parse('syntax = "proto3"; package p; message A { int32 x = 1; }', {}).serialized()
    schema = parse('syntax = "proto3"; import "a.proto"; message M { p.A a = 1; }', {"a.proto": serialized})
    assert schema.main.proto.message_type[0].field[0].type_name == ".p.A"
