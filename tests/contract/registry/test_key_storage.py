"""Encryption keys in the SQLite file, in exports and in rules."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headgate.registry.storage.sqlite.tables import MIGRATIONS
from tests.contract.registry.encryption_keys import KEKS, make_dek, make_kek
from tests.contract.registry.schemas import record
from tests.live.registry import RegistryApi, error_of


def test_a_damaged_key_is_reported_and_not_returned(api: RegistryApi, tmp_path: Path) -> None:
    make_kek(api)
    make_kek(api, "kek2")
    make_dek(api, kek="kek2")
    with closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as connection:
        connection.execute("UPDATE deks SET encrypted_key_material = 'c2VjcmV1'")
        connection.execute("UPDATE keks SET kms_key_id = 'mykez' WHERE name = 'kek1'")
    assert error_of(api.get(f"{KEKS}/kek1")) == (500, 50001)
    answer = api.get(f"{KEKS}/kek2/deks/orders-value")
    assert error_of(answer) == (500, 50001)
    assert "'kek2', 'orders-value'" in answer.json()["message"]


def test_damaged_keys_and_associations_are_logged_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = RegistryApi(tmp_path)
    make_kek(api)
    make_dek(api)
    api.register("s", record("a"))
    resource = {"resourceName": "orders", "resourceNamespace": "lkc", "resourceId": "id-1"}
    api.post("/associations", {**resource, "associations": [{"subject": "s"}]})
    api.close()
    with closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as connection:
        for table, column in (("keks", "doc"), ("deks", "encrypted_key_material"), ("associations", "guid")):
            connection.execute(f"UPDATE {table} SET {column} = 'x'")
    RegistryApi(tmp_path).close()
    for table in ("keks", "deks", "associations"):
        assert f"table '{table}'" in caplog.text


def test_an_export_contains_keys_and_associations_without_credentials(api: RegistryApi, tmp_path: Path) -> None:
    make_kek(api, kmsProps={"secret": "hush", "region": "eu"}, doc="mine")
    make_kek(api, "unused")
    make_dek(api)
    make_dek(api, "old", version=2)
    api.delete(f"{KEKS}/kek1/deks/old")
    api.register("orders-value", record("a"))
    resource = {"resourceName": "orders", "resourceNamespace": "lkc", "resourceId": "id-1"}
    made = api.post("/associations", {**resource, "associations": [{"subject": "orders-value"}]})
    assert made.status_code == 200, made.text
    lines = api.get("/export").content
    assert b"hush" not in lines
    copy = RegistryApi(tmp_path / "copy")
    try:
        for _ in range(2):
            taken = copy.post("/import", lines, headers={"content-type": "application/x-ndjson"})
            assert taken.json() == {
                "versions": 1, "configs": 0, "modes": 0, "keks": 2, "deks": 2, "associations": 1,
            }  # fmt: skip
        for path in (
            f"{KEKS}/kek1",
            f"{KEKS}?deleted=true",
            f"{KEKS}/kek1/deks/orders-value",
            f"{KEKS}/kek1/deks/old/versions/2?deleted=true",
            "/associations/resources/id-1",
        ):
            assert copy.get(path).json() == api.get(path).json(), path
        other = lines.replace(b'"kmsKeyId":"mykey"', b'"kmsKeyId":"other"')
        refused = copy.post("/import", other, headers={"content-type": "application/x-ndjson"})
        assert error_of(refused) == (422, 42205)
        assert "is stored with other content" in refused.json()["message"]
    finally:
        copy.close()
    selected = [json.loads(line)["kind"] for line in api.get("/export?subjectPrefix=old").content.splitlines()]
    assert selected == ["kek", "dek"]


def test_an_imported_line_needs_its_targets(api: RegistryApi) -> None:
    make_kek(api)
    make_dek(api)
    lines = [line for line in api.get("/export").content.splitlines() if b'"kind":"dek"' in line]
    api.delete(f"{KEKS}/kek1/deks/orders-value")
    api.delete(f"{KEKS}/kek1/deks/orders-value?permanent=true")
    api.delete(f"{KEKS}/kek1")
    api.delete(f"{KEKS}/kek1?permanent=true")
    refused = api.post("/import", lines[0], headers={"content-type": "application/x-ndjson"})
    assert error_of(refused) == (422, 42201)
    assert refused.json()["message"] == "Line 1: Key 'kek1' not found"
    assert api.get(f"{KEKS}?subjectPrefix=orders&deleted=true").json() == []


def test_a_rule_with_a_kms_key_gets_the_name_of_a_kek(api: RegistryApi) -> None:
    arn = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    rule = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT", "tags": ["PII"]}
    sent = {"domainRules": [{**rule, "params": {"encrypt.kms.key.id": arn}}]}
    for _ in range(2):
        answer = api.try_register("s", record("a"), ruleSet=sent).json()
        [stored] = answer["ruleSet"]["domainRules"]
        assert stored["params"] == {
            "encrypt.kms.key.id": arn,
            "encrypt.kek.name": "aws-kms-us-west-2-111122223333-key-1234abcd-12ab-34cd-56ef-1234567890ab",
            "encrypt.kms.type": "aws-kms",
        }
        assert answer["version"] == 1
    make_kek(api, stored["params"]["encrypt.kek.name"])
    own = {"encrypt.kms.key.id": "k/1", "encrypt.kek.name": "mine"}
    answer = api.try_register("t", record("a"), ruleSet={"domainRules": [{**rule, "params": own}]}).json()
    assert answer["ruleSet"]["domainRules"][0]["params"] == own


def test_a_file_of_an_earlier_release_gets_the_tables_of_keys(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "registry.db", isolation_level=None)) as connection:
        connection.executescript(MIGRATIONS[0])
        connection.execute("PRAGMA user_version = 1")
    api = RegistryApi(tmp_path)
    try:
        make_kek(api)
        assert api.get(KEKS).json() == ["kek1"]
        assert api.get("/associations/resources/id-1").json() == []
    finally:
        api.close()
