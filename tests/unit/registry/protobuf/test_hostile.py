"""Malicious schemas: each is rejected or accepted in limited time and memory, without a Python error."""

import base64
import random
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, text_format

from headgate.registry.compatibility.protobuf import check
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import parse
from tests.unit.registry.protobuf.protoc import PROTOS, comparable

ROOT = Path(__file__).resolve().parents[4]
P3 = 'syntax = "proto3"; '
FILES = {str(path.relative_to(PROTOS)): path.read_text("utf-8") for path in sorted(PROTOS.rglob("*.proto"))}

REFUSED = {
    "messages nested 10,000 deep": P3 + "message M {" * 10_000 + "}" * 10_000,
    "one message too deep": P3 + "message M {" * 33 + "}" * 33,
    "option values nested 10,000 deep": P3 + "option x = " + "{a " * 10_000 + "}" * 10_000 + ";",
    "angle brackets nested 10,000 deep": P3 + "option x = {" + "a <" * 10_000,
    "lists in lists": P3 + "option x = {a: " + "[" * 10_000,
    "open parentheses": P3 + "option " + "(" * 10_000,
    "10 MB": P3 + "//" + "x" * 10_000_000,
    "10 MB that might be base64": "QUFB" * 2_500_000,
    "a package of 200,000 parts": "package " + "a." * 200_000 + "b; message M {}",
    "a type name of 100,000 parts": P3 + "message M { " + "a." * 100_000 + "b x = 1; }",
    "a long name around many fields": P3 + f"message {'M' * 500_000} {{ {'int32 a = 1; ' * 9} }}",
    "a comment that never ends": P3 + "/*" + "*" * 1_000_000,
    "a comment of stars and spaces": P3 + "/*" + "* " * 500_000,
    "a string that never ends": P3 + 'option java_package = "' + "\\" * 99_999,
    "only quotes": '"' * 500_000,
    "a number of 500,000 digits": P3 + "message M { string a = " + "9" * 500_000 + "; }",
    "a hexadecimal number of 500,000 digits": P3 + "message M { string a = 0x" + "f" * 500_000 + "; }",
    "a value of 500,000 digits": P3 + "option x = " + "9" * 500_000 + ";",
    "30,000 missing imports": P3 + "".join(f'import "x{index}.proto";' for index in range(30_000)),
    "a zero byte": P3 + "message M\0 {}",
    "a lone surrogate in a string": P3 + 'message M { string a = 1 [json_name = "\ud800"]; }',
    "a lone surrogate in an import": P3 + 'import "\ud800";',
    "a space that is none": P3 + "\u00a0message M {}",
    "bidirectional controls in a name": P3 + "message M\u202e {}",
    "letters that look like others": P3 + "message \u041c {}",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_malicious_schema_is_rejected(name: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parse(REFUSED[name], {})
    assert len(str(caught.value)) < 1_000


def test_nesting_at_the_limit_is_read() -> None:
    schema = parse(P3 + "message M {" * 32 + "}" * 32, {})
    assert parse(schema.serialized(), {}).normalized() == schema.normalized()


def test_names_may_be_long_but_not_their_sum() -> None:
    parse(P3 + f"message {'M' * 1_000} {{}}", {})
    with pytest.raises(InvalidSchema, match="more than 1024 characters"):
        parse(P3 + f"message {'M' * 600} {{ message {'N' * 600} {{}} }}", {})


@pytest.mark.parametrize(
    "text",
    [
        P3 + "option java_package = " + '"a" ' * 100_000 + ";",
        P3 + 'import "google/protobuf/any.proto";' * 10_000,
        P3 + "message M { reserved " + ", ".join(str(2 * index + 1) for index in range(8_000)) + "; }",
        P3 + "enum E { A = 0; " + "".join(f"B{index} = {index + 1}; " for index in range(8_000)) + "}",
        P3 + "".join(f"message M{index} {{ M{index + 1} n = 1; }} " for index in range(3_000)) + "message M3000 {}",
        "message M { optional double a = 1 [default = 1e999999999]; optional float b = 2 [default = -1e-999999999]; }",
        P3 + "option x = 1e999999999; option y = -1e-999999999;",
        P3 + "// \ud800\nmessage M {}",
        "\ufeff" + P3 + "message M {}",
        P3 + "\r\nmessage M {\r\n}\r\n",
    ],
    ids=range(10),
)
def test_a_large_schema_is_parsed_and_printed_in_both_forms(text: str) -> None:
    schema = parse(text, {})
    assert parse(schema.canonical, {}).canonical == schema.canonical
    assert parse(schema.normalized(), {}).normalized() == schema.normalized()


def test_a_chain_of_900_references_is_read_and_compared() -> None:
    def chain(last: str) -> dict[str, str]:
        files = {
            f"r{index}.proto": f'{P3}import "r{index + 1}.proto"; message R{index} {{ R{index + 1} next = 1; }}'
            for index in range(900)
        }
        return {**files, "r900.proto": f"{P3}message R900 {{ {last} x = 1; }}"}

    text = P3 + 'import "r0.proto"; message M { R0 r = 1; }'
    found = check(parse(text, chain("string")), parse(text, chain("int32")))
    assert len(found) == 902
    assert found[0].path == "#/R900/1"
    assert check(parse(text, chain("int32")), parse(text, chain("int32"))) == []


def test_types_that_use_each_other_often_are_compared_once_per_pair() -> None:
    def tangle(last: str) -> dict[str, str]:
        # Each type uses the next one in twenty fields: 20^40 paths.
        body = "".join(
            f"message T{index} {{ {' '.join(f'T{index + 1} f{field} = {field};' for field in range(1, 21))} }}"
            for index in range(40)
        )
        return {"t.proto": f"{P3}{body} message T40 {{ {last} x = 1; T0 back = 2; }}"}

    text = P3 + 'import "t.proto"; message M { T0 t = 1; }'
    found = check(parse(text, tangle("string")), parse(text, tangle("int32")))
    assert len(found) == 1 + 40 * 20 + 1


def test_reports_are_bounded() -> None:
    def many(type_name: str) -> str:
        return P3 + "message M {" + "".join(f"{type_name} f{index} = {index + 1};" for index in range(3_000)) + "}"

    assert len(check(parse(many("string"), {}), parse(many("int32"), {}))) == 1_000


def test_more_references_than_allowed_are_rejected() -> None:
    references = {f"r{index}.proto": P3 + f"message R{index} {{}}" for index in range(1_200)}
    imports = "".join(f'import "{name}";' for name in references)
    with pytest.raises(InvalidSchema, match="more than 1000 files"):
        parse(P3 + imports + "message M {}", references)


FIELD = 'message_type { name: "M" field { name: "a" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }'
MALFORMED = {
    "a message without a name": "message_type {}",
    "a name that is code": 'message_type { name: "M {} message N" }',
    "a package that is code": 'package: "a; message M {}" message_type { name: "M" }',
    "an unknown syntax": 'syntax: "proto9" message_type { name: "M" }',
    "an unknown edition": 'syntax: "editions" edition: EDITION_99999_TEST_ONLY message_type { name: "M" }',
    "a public import that is none": 'public_dependency: 3 message_type { name: "M" }',
    "an import of itself": 'dependency: "default"',
    "a type that is missing": FIELD.replace("TYPE_INT32", "TYPE_MESSAGE"),
    "no type at all": FIELD.replace("type: TYPE_INT32", ""),
    "a oneof that is missing": FIELD.replace("label", "oneof_index: 3 label"),
    "a oneof below zero": FIELD.replace("label", "oneof_index: -1 label"),
    "a group elsewhere": FIELD.replace("TYPE_INT32", 'TYPE_GROUP type_name: ".M"'),
    "a default of another type": FIELD.replace("label", 'default_value: "zzz" label'),
    "a default with half an escape": FIELD.replace("TYPE_INT32", 'TYPE_BYTES default_value: "a\\\\"'),
    "an optional field of proto3 in proto2": FIELD.replace("label", "proto3_optional: true label"),
    "a JSON name that is none": FIELD.replace("label", 'json_name: "a\\000" label'),
    "a number out of range": FIELD.replace("number: 1", "number: -4"),
    "an option without a name": "options { uninterpreted_option {} } " + FIELD,
    "an option whose name is code": 'options { uninterpreted_option { name { name_part: "a b" is_extension: true } } }',
    "an option whose value is no value": 'options { uninterpreted_option { name { name_part: "a" is_extension: true } '
    'aggregate_value: "{{{" } }',
    "nesting": 'message_type { name: "M" ' + 'nested_type { name: "N" ' * 40 + "}" * 41,
}


def serialized(text: str) -> str:
    proto = text_format.Parse(text, descriptor_pb2.FileDescriptorProto())
    return base64.b64encode(proto.SerializeToString()).decode("ascii")


def test_the_base_descriptor_of_the_malformed_ones_is_accepted() -> None:
    assert "optional int32 a = 1;" in parse(serialized(FIELD), {}).canonical


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_descriptor_is_rejected(name: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(serialized(MALFORMED[name]), {})


@pytest.mark.parametrize(
    "data", [b'"\x06\n\x04\xff\xfe\xfd\xfc', b"\x12\x04\xff\xfe\xfd\xfc", b"\x00", b"\x0a\xff\xff\xff\xff\x0f"]
)
def test_bytes_that_are_not_a_descriptor_are_rejected(data: bytes) -> None:
    with pytest.raises(InvalidSchema):
        parse(base64.b64encode(data).decode(), {})


@pytest.mark.parametrize("seed", range(10))
def test_a_damaged_descriptor_is_rejected_or_equivalent_to_its_text(seed: int) -> None:
    chosen = random.Random(seed)
    whole = {name: parse(text, FILES).main.proto.SerializeToString() for name, text in FILES.items()}
    for _ in range(60):
        data = bytearray(whole[chosen.choice(sorted(whole))])
        at = chosen.randrange(len(data))
        match chosen.randrange(4):
            case 0:
                data[at] = chosen.randrange(256)
            case 1:
                data[at] ^= 1 << chosen.randrange(8)
            case 2:
                del data[at]
            case _:
                data.insert(at, chosen.randrange(256))
        try:
            schema = parse(base64.b64encode(bytes(data)).decode(), FILES)
        except InvalidSchema:
            continue
        again = parse(schema.canonical, FILES)
        assert comparable(again.main.proto, sort_fields=True) == comparable(schema.main.proto, sort_fields=True)
        assert check(again, schema) == []


@pytest.mark.parametrize(("depth", "read"), [(30, True), (31, True), (32, False), (60, False)])
def test_options_nest_as_deep_in_a_descriptor_as_in_a_text(depth: int, read: bool) -> None:
    text = P3 + (
        'import "google/protobuf/descriptor.proto"; message R { R r = 1; int32 x = 2; } '
        "extend google.protobuf.MessageOptions { R rule = 50000; } message M {}"
    )
    value = b"\x10\x01"
    for _ in range(depth):
        value = b"\x0a" + bytes([len(value)]) + value
    proto = descriptor_pb2.FileDescriptorProto()
    proto.CopyFrom(parse(text, {}).main.proto)
    proto.message_type[1].options.MergeFromString(b"\x82\xb5\x18" + bytes([len(value)]) + value)
    form = base64.b64encode(proto.SerializeToString()).decode()
    if read:
        schema = parse(form, {})
        assert parse(schema.canonical, {}).main.proto == schema.main.proto
    else:
        with pytest.raises(InvalidSchema, match="nested more than 32 deep"):
            parse(form, {})


OPTIONS_KNOWN_TO_THE_PROCESS = """
import base64
from confluent_kafka.schema_registry.confluent import meta_pb2
from google.protobuf import descriptor_pb2
from headgate.registry.formats.protobuf import parse
file = descriptor_pb2.FileDescriptorProto(name="x.proto", syntax="proto3")
field = file.message_type.add(name="M").field.add(name="a", number=1, type=9, label=1)
meta = field.options.Extensions[meta_pb2.field_meta]
meta.params["k"] = "v"
meta.tags.append("PII")
print(parse(base64.b64encode(file.SerializeToString()).decode(), {}).canonical)
"""


def test_an_option_with_a_map_that_this_process_knows_is_read() -> None:
    """In a separate process, because definitions of a module stay loaded for later tests."""
    command = [sys.executable, "-c", OPTIONS_KNOWN_TO_THE_PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert '"PII"' in done.stdout
    assert 'key: "k"' in done.stdout
