"""Modes: read-only, import of ids and versions, override, recursive delete."""

import pytest

from tests.contract.registry.schemas import distinct, record
from tests.live.registry import RegistryApi, error_of


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE", "readonly"])
def test_a_read_only_registry_accepts_no_new_schema(api: RegistryApi, mode: str) -> None:
    api.register("s", record("a"))
    assert api.mode(mode).json() == {"mode": mode.upper()}
    answer = api.try_register("t", record("b"))
    assert error_of(answer) == (422, 42205)
    assert answer.json()["message"] == "Subject t in context  is in read-only mode"
    assert error_of(api.delete("/subjects/s")) == (422, 42205)
    assert error_of(api.delete("/subjects/s/versions/1")) == (422, 42205)
    assert api.register("s", record("a")) == 1


def test_an_unknown_mode_is_rejected(api: RegistryApi) -> None:
    assert error_of(api.mode("SLEEPING")) == (422, 42204)


def test_clearing_the_mode_restores_the_default(api: RegistryApi) -> None:
    api.mode("READONLY")
    assert api.mode(None).json() == {"mode": None}
    assert api.get("/mode").json() == {"mode": "READWRITE"}


def test_the_mode_of_a_subject_has_precedence_except_over_an_override(api: RegistryApi) -> None:
    assert error_of(api.get("/mode/s")) == (404, 40409)
    assert api.get("/mode/s?defaultToGlobal=true").json() == {"mode": "READWRITE"}
    api.mode("READONLY")
    api.mode("READWRITE", "s")
    api.register("s", record("a"))
    assert api.delete("/mode/s").json() == {"mode": "READWRITE"}
    assert api.get("/mode/s?defaultToGlobal=true").json() == {"mode": "READONLY"}
    api.mode("READWRITE", "s")
    api.mode("READONLY_OVERRIDE")
    assert api.get("/mode/s").json() == {"mode": "READONLY_OVERRIDE"}
    assert error_of(api.try_register("s", record("b"))) == (422, 42205)


def test_explicit_ids_need_import_mode(api: RegistryApi) -> None:
    answer = api.try_register("s", record("a"), id=7, version=1)
    assert error_of(answer) == (422, 42205)
    assert answer.json()["message"] == "Subject s in context  is not in import mode"
    assert api.mode("IMPORT").status_code == 200
    assert api.register("s", record("a"), id=7, version=3) == 7
    assert api.get("/subjects/s/versions").json() == [3]
    assert error_of(api.try_register("t", record("b"))) == (422, 42205)
    assert api.register("s", record("a")) == 7
    api.mode("READWRITE")
    assert api.register("t", record("new")) == 8


def test_import_skips_compatibility(api: RegistryApi) -> None:
    api.mode("IMPORT")
    first, second = distinct(2)
    api.register("s", first, id=1, version=1)
    api.register("s", second, id=2, version=2)
    assert api.get("/subjects/s/versions").json() == [1, 2]


def test_an_id_keeps_its_content(api: RegistryApi) -> None:
    api.mode("IMPORT")
    first, second = distinct(2)
    api.register("s", first, id=1, version=1)
    for subject, version in (("s", 2), ("t", 1)):
        answer = api.try_register(subject, second, id=1, version=version)
        assert error_of(answer) == (422, 42205)
        assert answer.json()["message"] == "Overwrite new schema with id 1 in context  is not permitted."
    assert api.register("s", first, id=1, version=2) == 1
    assert api.register("s", first, id=1, version=1) == 1


def test_the_same_schema_may_be_imported_under_two_ids(api: RegistryApi) -> None:
    api.mode("IMPORT")
    assert api.register("s", record("a"), id=100, version=1) == 100
    assert api.register("t", record("a"), id=200, version=1) == 200
    for subject in ("s", "t"):
        assert api.post(f"/subjects/{subject}", {"schema": record("a")}).json()["version"] == 1
    assert api.get("/schemas/ids/100").json()["schema"] == api.get("/schemas/ids/200").json()["schema"]


def test_import_needs_an_empty_scope_unless_forced(api: RegistryApi) -> None:
    api.register("s", record("a"))
    for scope in ("", "s"):
        answer = api.mode("IMPORT", scope)
        assert error_of(answer) == (422, 42205)
        assert answer.json()["message"] == "Cannot import since found existing subjects"
    assert api.mode("IMPORT", "t").status_code == 200
    assert api.mode("IMPORT", "s", "?force=true").json() == {"mode": "IMPORT"}
    assert api.mode("IMPORT", "", "?force=true").json() == {"mode": "IMPORT"}


def test_import_mode_removes_soft_deleted_versions(api: RegistryApi) -> None:
    api.register("s", record("a"))
    api.delete("/subjects/s")
    assert api.mode("IMPORT").status_code == 200
    assert api.get("/subjects?deleted=true").json() == []
    metadata = {"properties": {"k": "v"}}
    for _ in range(2):
        assert api.register("s", record("a"), id=1, version=1, metadata=metadata) == 1
        assert api.get("/subjects/s/versions/1").json()["metadata"] == metadata
        api.delete("/subjects/s")


def test_a_mode_of_the_global_context_applies_to_all_contexts(api: RegistryApi) -> None:
    api.mode("READONLY", ":.__GLOBAL:")
    assert api.get("/mode?defaultToGlobal=true").json() == {"mode": "READONLY"}
    assert error_of(api.try_register("s", record("a"))) == (422, 42205)
    assert error_of(api.try_register(":.c:s", record("a"))) == (422, 42205)


def test_deleting_modes_recursively_stays_inside_the_context(api: RegistryApi) -> None:
    for scope in (":.one:", ":.one:s", ":.one:t", ":.two:", ":.two:s"):
        api.mode("READONLY", scope)
    assert api.delete("/mode/:.one:").json() == {"mode": "READONLY"}
    assert api.get("/mode/:.one:s").json() == {"mode": "READONLY"}
    assert api.delete("/mode/:.one:?recursive=true").json() == {"mode": None}
    for scope in (":.one:", ":.one:s", ":.one:t"):
        assert error_of(api.get(f"/mode/{scope}")) == (404, 40409)
    assert api.get("/mode/:.two:s").json() == {"mode": "READONLY"}


def test_deleting_the_global_mode_recursively(api: RegistryApi) -> None:
    api.mode("READONLY")
    api.mode("READONLY", "s")
    assert api.delete("/mode?recursive=true").json() == {"mode": "READONLY"}
    assert api.get("/mode").json() == {"mode": "READWRITE"}
    assert error_of(api.get("/mode/s")) == (404, 40409)
    assert error_of(api.delete("/mode/s")) == (404, 40401)
