"""Invalid requests: each gets an error code and a message, none gets an internal error, and none takes long."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.registry.schemas import record
from tests.live.registry import RegistryApi, error_of


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryApi]:
    api = RegistryApi(tmp_path_factory.mktemp("registry"))
    api.register("s", record("a"))
    yield api
    api.close()


def nested(kind: str, depth: int) -> str:
    if kind == "array":
        return '{"type":"array","items":' * depth + '"int"' + "}" * depth
    if kind == "record":
        opened = "".join(f'{{"type":"record","name":"R{n}","fields":[{{"name":"f","type":' for n in range(depth))
        return opened + '"int"' + "}]}" * depth
    if kind == "list":
        return "[" * depth + "]" * depth
    if kind == "default":
        return '{"type":"record","name":"R","fields":[{"name":"f","type":"int","p":' + "[" * depth + "]" * depth + "}]}"
    if kind == "recursive default":
        return (
            '{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"array","items":["null","R",'
            '{"type":"array","items":"R"}]},"default":' + "[" * depth + "]" * depth + "}]}"
        )
    if kind == "type":
        return '{"type":' + "[" * depth + "]" * depth + "}"
    if kind == "chain":
        names = [f'{{"type":"record","name":"T{n}","fields":[{{"name":"f","type":"T{n + 1}"}}]}}' for n in range(depth)]
        return "[" + ",".join([*names, f'{{"type":"record","name":"T{depth}","fields":[]}}']) + "]"
    if kind == "json":
        return '{"properties":{"p":' * depth + "true" + "}}" * depth
    return 'syntax = "proto3"; ' + "message M { " * depth + "}" * depth


@pytest.mark.parametrize("depth", [150, 300, 900, 1_000, 3_000, 10_000])
@pytest.mark.parametrize(
    "kind", ["array", "record", "list", "default", "recursive default", "type", "chain", "json", "proto"]
)
def test_nesting_is_refused_in_good_time(api: RegistryApi, kind: str, depth: int) -> None:
    language = {"json": "JSON", "proto": "PROTOBUF"}.get(kind, "AVRO")
    for path in ("/subjects/deep/versions", "/subjects/s", "/compatibility/subjects/s/versions"):
        answer = api.post(path, {"schema": nested(kind, depth), "schemaType": language})
        assert answer.status_code in (200, 404, 409, 422), answer.text[:300]


@pytest.mark.parametrize("language", ["AVRO", "JSON", "PROTOBUF"])
def test_a_schema_of_ten_megabytes_is_too_large(api: RegistryApi, language: str) -> None:
    answer = api.post("/subjects/large/versions", {"schema": "x" * 10_000_000, "schemaType": language})
    assert error_of(answer) == (422, 42209)
    answer = api.post("/subjects/large/versions", {"schema": "x" * 2_000_000, "schemaType": language})
    assert error_of(answer) == (422, 42209)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b"1",
        b'"x"',
        b"{",
        b"{}{}",
        b"\xff\xfe\x00",
        b'{"schema": "\xff"}',
        b'{"schema": "\\ud800"}',
        b'{"schema": 1}',
        b'{"schema": {"type":"string"}}',
        b'{"schema": null}',
        b'{"schema": ""}',
        b'{"schema": "\\u0000"}',
        b'{"schema": "\\"string\\"", "references": 1}',
        b'{"schema": "\\"string\\"", "references": [1]}',
        b'{"schema": "\\"string\\"", "metadata": []}',
        b'{"schema": "\\"string\\"", "version": "x"}',
        b'{"schema": "\\"string\\"", "version": 99999999999999999999}',
        b'{"schema": "\\"string\\"", "id": 1e400}',
        b'{"schema": "\\"string\\"", "schemaType": 5}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"NaN",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/subjects/x/versions"),
        ("POST", "/subjects/s"),
        ("POST", "/compatibility/subjects/s/versions/latest"),
        ("POST", "/subjects/s/versions/1/tags"),
        ("PUT", "/config"),
        ("PUT", "/mode/x"),
    ],
)
def test_malformed_bodies_are_refused(api: RegistryApi, method: str, path: str, body: bytes) -> None:
    answer = api.send(method, path, body)
    assert answer.status_code in (200, 400, 404, 409, 422), answer.text
    if answer.status_code != 200:
        assert set(answer.json()) == {"error_code", "message"}


SCHEMAS = (
    record("a", {"name": "b", "type": ["null", {"type": "enum", "name": "E", "symbols": ["A"]}], "default": None}),
    '{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]},{"name":"d","type":'
    '{"type":"fixed","name":"F","size":8,"logicalType":"decimal","precision":5}}]}',
    '{"type":"map","values":{"type":"array","items":"double"}}',
)
JUNK = [
    '"',
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "null",
    "-1",
    "1e999",
    "true",
    "\\u0000",
    "type",
    "é",
    "\x00",
    "fields",
    "name",
]


def test_mutilated_avro_schemas_never_break_the_registry(api: RegistryApi) -> None:
    chance = random.Random(4)
    for number in range(600):
        text = chance.choice(SCHEMAS)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice([*JUNK, ""]) + text[at + chance.randint(0, 8) :]
        answer = api.post(f"/subjects/m{number}/versions", {"schema": text})
        assert answer.status_code in (200, 422), (text, answer.text)


def random_value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(8 if depth else 5)
    if kind < 5:
        return [None, True, chance.randint(-5, 2**40), chance.choice(["int", "record", "R", "", "null", "A"]), 1.5][
            kind
        ]
    if kind == 5:
        return [random_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    keys = (
        "type",
        "name",
        "fields",
        "items",
        "values",
        "symbols",
        "size",
        "default",
        "aliases",
        "namespace",
        "doc",
        "order",
        "logicalType",
        "precision",
        "scale",
    )
    return {chance.choice(keys): random_value(chance, depth - 1) for _ in range(chance.randrange(1, 6))}


def test_random_documents_never_break_the_registry(api: RegistryApi) -> None:
    chance = random.Random(5)
    for number in range(600):
        text = json.dumps(random_value(chance, 4))
        language = chance.choice(["AVRO", "JSON"])
        answer = api.post(f"/subjects/r{number}/versions", {"schema": text, "schemaType": language})
        assert answer.status_code in (200, 422), (text, answer.text)


@pytest.mark.parametrize(
    "path",
    [
        "/subjects/%00/versions",
        "/subjects/%ff%fe/versions",
        "/subjects/%/versions",
        "/subjects/a/versions/%00",
        "/schemas/ids/99999999999999999999999",
        "/schemas/ids/1?subject=%00",
        "/schemas/ids/%31",
        "/schemas/guids/%00",
        "/contexts/%00/subjects",
        "/contexts/:::/subjects",
        "/subjects?subjectPrefix=%00%ff",
        "/subjects?offset=x",
        "/subjects?offset=-1",
        "/subjects?limit=99999999999999999999",
        "/subjects?deleted=maybe",
        "/schemas?offset=2147483647",
        "/config/%0a",
        "/mode/%0a",
        "//subjects",
        "/" + "x" * 5000,
        "/subjects/" + "%61" * 3000 + "/versions",
        "/search?text=%00",
        "/search?schemaType=XML",
        "/changes?after=x",
        "/export?subjectPrefix=%ff",
    ],
)
def test_odd_paths_and_parameters_are_answered(api: RegistryApi, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code in (200, 400, 404, 422), answer.text


@pytest.mark.parametrize("text", ["%FF", "a%C3", "%ED%A0%80", "%80b", "%F4%90%80%80"])
def test_names_that_are_not_utf_8_are_refused(api: RegistryApi, text: str) -> None:
    """Otherwise different names would become the same subject, because U+FFFD replaces invalid bytes."""
    body = {"schema": record("a")}
    refused = [
        api.post(f"/subjects/{text}/versions", body),
        api.post(f"/subjects/{text}", body),
        api.post(f"/contexts/{text}/subjects/s/versions", body),
        api.put(f"/config/{text}", {"compatibility": "NONE"}),
        api.get(f"/subjects/{text}/versions"),
        api.get(f"/schemas/ids/1?subject={text}"),
        api.delete(f"/subjects/{text}"),
    ]
    assert [error_of(answer) for answer in refused] == [(400, 400)] * len(refused)
    assert "is not UTF-8" in refused[0].json()["message"]


def test_a_schema_with_thousands_of_fields_is_handled(api: RegistryApi) -> None:
    fields = [{"name": f"f{n}", "type": ["null", "string"], "default": None} for n in range(5000)]
    api.register("wide", record(*fields))
    changed = [*fields[:-1], {"name": "f4999", "type": "int"}]
    assert error_of(api.try_register("wide", record(*changed))) == (409, 409)


def test_intertwined_recursive_types_are_compared(api: RegistryApi) -> None:
    def ring(size: int, last: str) -> str:
        types = []
        for n in range(size):
            following = f"T{(n + 1) % size}"
            fields = [{"name": "next", "type": ["null", following]}, {"name": "v", "type": "int" if n else last}]
            types.append({"type": "record", "name": f"T{n}", "fields": fields})
        return json.dumps(types)

    api.register("ring", ring(40, "int"))
    answer = api.try_register("ring", ring(41, "string"))
    assert answer.status_code in (200, 409, 422)


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"{}",
        b'{"kind":"x"}',
        b'{"kind":"schema"}',
        b'{"kind":"schema","subject":"a","schema":"\\"int\\"","id":-1,"version":1}',
        b'{"kind":"mode","subject":"a","mode":"x"}',
        b'{"kind":"config","subject":"a","config":{"compatibility":"x"}}',
        b'{"kind":"schema","subject":"a","schema":"{","id":900,"version":1}',
        b"[" * 10000,
    ],
)
def test_a_bad_line_spoils_an_import_and_nothing_is_taken(api: RegistryApi, line: bytes) -> None:
    good = b'{"kind":"schema","subject":"imported","version":1,"id":901,"schema":"\\"string\\""}\n'
    answer = api.post("/import", good + line + b"\n", headers={"content-type": "application/x-ndjson"})
    assert answer.status_code == 422, answer.text
    assert "Line 2" in answer.json()["message"]
    assert error_of(api.get("/subjects/imported/versions")) == (404, 40401)


def test_a_second_registry_on_the_same_file_is_refused(tmp_path: Path) -> None:
    from headgate.registry.api.server import open_registry
    from headgate.registry.errors import StoreFailed

    first = open_registry(tmp_path)
    try:
        with pytest.raises(StoreFailed, match="in use by another process"):
            open_registry(tmp_path)
    finally:
        first.store.close()
