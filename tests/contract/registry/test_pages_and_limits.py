"""Pages of lists, and numbers at the limits of imports and registrations."""

import json
from typing import Any

import pytest

from headgate.registry import limits
from tests.contract.registry.encryption_keys import KEKS, make_dek, make_kek
from tests.contract.registry.schemas import defaulted, distinct, record
from tests.live.registry import RegistryApi, error_of

NDJSON = {"content-type": "application/x-ndjson"}
RULES = {"domainRules": [{"name": "r", "mode": "READ", "type": "CEL"}]}


def listed(api: RegistryApi, query: str) -> list[tuple[str, int]]:
    answer = api.get(f"/schemas?{query}")
    assert answer.status_code == 200, answer.text
    return [(one["subject"], one["version"]) for one in answer.json()]


@pytest.mark.parametrize("query", ["", "&aliases=true", "&ruleType=CEL"])
def test_schemas_have_pages(free_api: RegistryApi, query: str) -> None:
    for index, schema in enumerate(distinct(4)):
        free_api.register(f"s{index % 2}", schema, ruleSet=RULES)
    free_api.config("t", alias="s1")
    everything = [("s0", 1), ("s0", 2), ("s1", 1), ("s1", 2)]
    for offset in range(6):
        for limit in (1, 2, 4, 5):
            expected = everything[offset : offset + limit]
            assert listed(free_api, f"offset={offset}&limit={limit}{query}") == expected, (offset, limit)
    assert listed(free_api, f"latestOnly=true{query}") == [("s0", 2), ("s1", 2)]
    assert listed(free_api, f"latestOnly=true&offset=1&limit=5{query}") == [("s1", 2)]


def test_schemas_are_listed_by_alias_and_rule_type(free_api: RegistryApi) -> None:
    with_rules = record("a")
    free_api.register("b-real", with_rules, ruleSet=RULES)
    free_api.register("a-other", record("b"))
    free_api.register("b-real-too", record("c"))
    free_api.config("a-alias", alias="b-real")
    free_api.config("a-second", alias="b-real")
    found = free_api.get("/schemas?subjectPrefix=a&aliases=true").json()
    assert [(one["subject"], one.get("aliases")) for one in found] == [
        ("a-other", None),
        ("b-real", ["a-alias", "a-second"]),
    ]
    assert listed(free_api, "subjectPrefix=a&aliases=true&offset=1&limit=1") == [("b-real", 1)]
    assert listed(free_api, "subjectPrefix=a&aliases=true&limit=1") == [("a-other", 1)]
    assert listed(free_api, "subjectPrefix=a") == [("a-other", 1)]
    assert listed(free_api, "ruleType=CEL") == [("b-real", 1)]
    assert listed(free_api, "ruleType=ENCRYPT") == []
    assert listed(free_api, "ruleType=CEL&aliases=true&subjectPrefix=a") == [("b-real", 1)]
    # A prefix that selects the alias and its target lists the target once.
    assert listed(free_api, "aliases=true") == [("a-other", 1), ("b-real", 1), ("b-real-too", 1)]


def line(**fields: Any) -> bytes:
    shown = {"kind": "schema", "subject": "s", "version": 1, "id": 1, "schema": '"int"', **fields}
    return json.dumps({name: value for name, value in shown.items() if value is not None}).encode()


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [
        ({"id": 0}, True),
        ({"id": limits.ID_MAX}, True),
        ({"id": limits.ID_MAX + 1}, False),
        ({"id": -1}, False),
        ({"id": None}, False),
        ({"version": 1}, True),
        ({"version": limits.VERSION_MAX}, True),
        ({"version": limits.VERSION_MAX + 1}, False),
        ({"version": 0}, False),
        ({"version": None}, False),
        ({"subject": None}, False),
        ({"schema": None}, False),
        ({"schema": "nonsense"}, False),
        ({"kind": "mode", "mode": "readonly"}, True),
        ({"kind": "mode", "mode": "closed"}, False),
        ({"kind": "mode"}, False),
        ({"kind": "config"}, False),
        ({"kind": "ids", "id": limits.ID_MAX + 1, "subject": ""}, True),
        ({"kind": "ids", "id": limits.ID_MAX + 2, "subject": ""}, False),
        ({"kind": "kek"}, False),
        ({"kind": "other"}, False),
    ],
)
def test_numbers_of_imported_lines_are_checked(api: RegistryApi, fields: dict[str, Any], is_valid: bool) -> None:
    good = line(subject="good", version=1, id=7, schema='"string"')
    answer = api.post("/import", b"\n".join([good, b"", line(**fields)]), headers=NDJSON)
    if is_valid:
        assert answer.status_code == 200, answer.text
        assert "good" in api.get("/subjects").json()
    else:
        assert error_of(answer) == (422, 42201)
        assert answer.json()["message"].removeprefix("Invalid schema ").startswith("Line 3: "), answer.text
        assert api.get("/subjects").json() == [], "a failed import stores nothing"


@pytest.mark.parametrize(("extra", "is_valid"), [(0, True), (1, False)])
def test_the_size_of_a_line_is_limited(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch, extra: int, is_valid: bool
) -> None:
    one = line()
    monkeypatch.setattr(limits, "IMPORT_LINE_BYTES_MAX", len(one))
    answer = api.post("/import", one + b" " * extra, headers=NDJSON)
    assert (answer.status_code == 200) is is_valid


def test_an_import_keeps_times_and_does_not_replace_content(api: RegistryApi) -> None:
    assert api.post("/import", line(ts=5), headers=NDJSON).json()["versions"] == 1
    assert api.post("/import", line(ts=5), headers=NDJSON).status_code == 200
    assert json.loads(api.get("/export").text)["ts"] == 5
    for other in (line(schema='"long"'), line(id=2, schema='"long"')):
        assert error_of(api.post("/import", other, headers=NDJSON)) == (422, 42205)
    assert api.post("/import", line(version=2), headers=NDJSON).status_code == 200
    assert api.get("/subjects/s/versions").json() == [1, 2]


@pytest.mark.parametrize(("size", "is_valid"), [(0, False), (1, True), (10, True), (11, False)])
def test_the_size_of_key_material_is_limited(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch, size: int, is_valid: bool
) -> None:
    monkeypatch.setattr(limits, "KEY_MATERIAL_CHARS_MAX", 10)
    make_kek(api)
    material = "x" * size
    assert (make_dek(api, encryptedKeyMaterial=material).status_code == 200) is is_valid
    dek = {"kekName": "kek1", "subject": "imported", "version": 1, "algorithm": "AES256_GCM", "deleted": False, "ts": 3}
    one = json.dumps({"kind": "dek", "dek": {**dek, "encryptedKeyMaterial": material}}).encode()
    assert (api.post("/import", one, headers=NDJSON).status_code == 200) is is_valid


def test_deleting_a_key_again_does_not_change_it(api: RegistryApi) -> None:
    make_kek(api)
    assert make_dek(api).status_code == 200
    dek = f"{KEKS}/kek1/deks/orders-value"
    for path in (dek, f"{KEKS}/kek1"):
        states = []
        for _ in range(2):
            assert api.delete(path).status_code == 204
            states.append(api.get(f"{path}?deleted=true").json())
        assert states[0] == states[1]
    for path in (f"{KEKS}/kek1", dek):
        states = []
        for _ in range(2):
            assert api.post(f"{path}/undelete", {}).status_code == 204
            states.append(api.get(path).json())
        assert states[0] == states[1]


def test_keys_are_listed_by_prefix_and_state(api: RegistryApi) -> None:
    for name, subject in (("k1", "orders"), ("k2", ":.c:orders"), ("k3", "other")):
        make_kek(api, name)
        assert make_dek(api, subject, name).status_code == 200
    assert api.get(KEKS).json() == ["k1", "k2", "k3"]
    assert api.get(f"{KEKS}?subjectPrefix=or").json() == ["k1"]
    assert api.get(f"{KEKS}?subjectPrefix=:.:or&subjectPrefix=:.c:").json() == ["k1", "k2"]
    api.delete(f"{KEKS}/k1/deks/orders")
    assert api.get(f"{KEKS}?subjectPrefix=or").json() == []
    assert api.get(f"{KEKS}?subjectPrefix=or&deleted=true").json() == ["k1"]
    api.delete(f"{KEKS}/k1")
    assert api.get(KEKS).json() == ["k2", "k3"]
    assert api.get(f"{KEKS}?deleted=true").json() == ["k1", "k2", "k3"]


@pytest.mark.parametrize(("size", "is_valid"), [(100, True), (99, False)])
def test_the_size_of_a_schema_is_limited(
    api: RegistryApi, monkeypatch: pytest.MonkeyPatch, size: int, is_valid: bool
) -> None:
    monkeypatch.setattr(limits, "SCHEMA_CHARS_MAX", size)
    schema = record(doc="").replace('""', '"' + "x" * (100 - len(record(doc=""))) + '"')
    assert len(schema) == 100
    assert (api.try_register("s", schema).status_code == 200) is is_valid


@pytest.mark.parametrize(
    ("id", "is_valid"), [(0, True), (limits.ID_MAX, True), (limits.ID_MAX + 1, False), (-1, False)]
)
def test_an_explicit_id_is_checked(api: RegistryApi, id: int, is_valid: bool) -> None:
    assert api.mode("IMPORT").status_code == 200
    answer = api.try_register("s", record("a"), id=id, version=1)
    assert (answer.status_code == 200) is is_valid


def test_the_highest_version_is_the_last_one(api: RegistryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VERSION_MAX", 2)
    for number in range(2):
        api.register("s", record("a", *(defaulted(f"f{index}") for index in range(number))))
    full = api.try_register("s", record("a", defaulted("f0"), defaulted("f1")))
    assert error_of(full) == (422, 42205)
    assert "The highest version is 2" in full.text
