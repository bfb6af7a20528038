"""Soft and permanent deletion."""

from tests.contract.registry.schemas import defaulted, distinct, record
from tests.live.registry import RegistryApi, error_of


def test_a_version_is_soft_deleted_then_permanently_deleted(free_api: RegistryApi) -> None:
    for schema in distinct(2):
        free_api.register("s", schema)
    answer = free_api.delete("/subjects/s/versions/2?permanent=true")
    assert error_of(answer) == (404, 40407)
    assert answer.json()["message"] == ("Subject 's' Version 2 was not deleted first before being permanently deleted")
    assert free_api.delete("/subjects/s/versions/2").json() == 2
    answer = free_api.delete("/subjects/s/versions/2")
    assert error_of(answer) == (404, 40406)
    assert answer.json()["message"] == (
        "Subject 's' Version 2 was soft deleted.Set permanent=true to delete permanently"
    )
    assert error_of(free_api.get("/subjects/s/versions/2")) == (404, 40402)
    assert free_api.get("/subjects/s/versions/2?deleted=true").json()["deleted"] is True
    assert free_api.get("/subjects/s/versions").json() == [1]
    assert free_api.get("/subjects/s/versions?deleted=true").json() == [1, 2]
    assert free_api.get("/subjects/s/versions?deletedOnly=true").json() == [2]
    assert free_api.get("/subjects/s/versions?deletedAsNegative=true").json() == [1, -2]
    assert free_api.delete("/subjects/s/versions/2?permanent=true").json() == 2
    assert error_of(free_api.get("/subjects/s/versions/2?deleted=true")) == (404, 40402)
    assert error_of(free_api.delete("/subjects/s/versions/2?permanent=true")) == (404, 40402)


def test_a_soft_deleted_schema_is_still_found_by_id(api: RegistryApi) -> None:
    api.register("s", record("a"))
    api.delete("/subjects/s")
    assert api.get("/schemas/ids/1").json()["deleted"] is True
    assert api.get("/schemas/ids/1/subjects").json() == []
    assert api.get("/schemas/ids/1/subjects?deleted=true").json() == ["s"]
    assert api.get("/schemas/ids/1/versions").json() == []
    api.delete("/subjects/s?permanent=true")
    assert error_of(api.get("/schemas/ids/1")) == (404, 40403)


def test_a_subject_is_soft_deleted_then_permanently_deleted(free_api: RegistryApi) -> None:
    for schema in distinct(2):
        free_api.register("s", schema)
    assert error_of(free_api.delete("/subjects/s?permanent=true")) == (404, 40405)
    assert free_api.delete("/subjects/s").json() == [1, 2]
    assert error_of(free_api.delete("/subjects/s")) == (404, 40404)
    assert free_api.get("/subjects").json() == []
    assert free_api.get("/subjects?deleted=true").json() == ["s"]
    assert free_api.get("/subjects?deletedOnly=true").json() == ["s"]
    found = free_api.post("/subjects/s?deleted=true", {"schema": distinct(2)[1]})
    assert found.json()["version"] == 2
    assert free_api.delete("/subjects/s?permanent=true").json() == [1, 2]
    assert error_of(free_api.delete("/subjects/s")) == (404, 40401)
    assert error_of(free_api.post("/subjects/s?deleted=true", {"schema": distinct(1)[0]})) == (404, 40401)


def test_version_numbers_continue_after_soft_deleted_versions(free_api: RegistryApi) -> None:
    first, second = distinct(2)
    free_api.register("s", first)
    free_api.register("s", second)
    free_api.delete("/subjects/s")
    assert free_api.register("s", first) == 1
    assert free_api.register("s", second) == 2
    assert free_api.get("/subjects/s/versions").json() == [3, 4]
    assert error_of(free_api.get("/subjects/s/versions/1")) == (404, 40402)


def test_the_number_of_a_permanently_deleted_version_is_reused(free_api: RegistryApi) -> None:
    first, second = distinct(2)
    free_api.register("s", first)
    free_api.register("s", second)
    free_api.delete("/subjects/s/versions/2")
    free_api.delete("/subjects/s/versions/2?permanent=true")
    free_api.delete("/subjects/s/versions/latest")
    for _ in range(2):
        assert free_api.register("s", first) == 1
        assert free_api.get("/subjects/s/versions").json() == [2]


def test_a_soft_deleted_schema_that_is_registered_again_keeps_its_id(free_api: RegistryApi) -> None:
    first, second = distinct(2)
    free_api.register("s", first)
    free_api.register("s", second)
    free_api.delete("/subjects/s/versions/1")
    assert error_of(free_api.post("/subjects/s", {"schema": first})) == (404, 40403)
    assert free_api.post("/subjects/s?deleted=true", {"schema": first}).json()["version"] == 1
    assert free_api.register("s", first) == 1
    assert free_api.post("/subjects/s?deleted=true", {"schema": first}).json()["version"] == 3
    assert free_api.post("/subjects/s", {"schema": first}).json()["version"] == 3


def test_a_permanently_deleted_schema_that_is_registered_again_keeps_its_id(free_api: RegistryApi) -> None:
    first, second = distinct(2)
    free_api.register("s", first)
    free_api.register("t", second)
    free_api.delete("/subjects/s")
    free_api.delete("/subjects/s?permanent=true")
    assert free_api.register("u", first) == 1
    assert free_api.register("u", record("new")) == 3


def test_an_id_is_never_assigned_to_another_schema(free_api: RegistryApi) -> None:
    first, second, third = distinct(3)
    free_api.register("s", first)
    free_api.register("s", second)
    free_api.delete("/subjects/s")
    free_api.delete("/subjects/s?permanent=true")
    assert free_api.register("s", third) == 3


def test_compatibility_is_checked_against_live_versions_only(api: RegistryApi) -> None:
    api.register("s", record("a"))
    api.register("s", record("a", defaulted("b")))
    changed = record("a", defaulted("b", 0, "int"))
    assert error_of(api.try_register("s", changed)) == (409, 409)
    api.delete("/subjects/s/versions/latest")
    assert api.register("s", changed) == 3
    assert api.get("/subjects/s/versions").json() == [1, 3]


def test_the_latest_version_is_the_highest_live_version(free_api: RegistryApi) -> None:
    first, second, third = distinct(3)
    free_api.register("s", first)
    free_api.register("s", second)
    assert free_api.delete("/subjects/s/versions/latest").json() == 2
    assert free_api.get("/subjects/s/versions/latest").json()["schema"] == first
    assert free_api.delete("/subjects/s/versions/latest").json() == 1
    assert error_of(free_api.get("/subjects/s/versions/latest")) == (404, 40401)
    free_api.register("s", third)
    assert free_api.get("/subjects/s/versions/latest").json()["version"] == 3


def test_unknown_objects_cannot_be_deleted(api: RegistryApi) -> None:
    assert error_of(api.delete("/subjects/s")) == (404, 40401)
    assert error_of(api.delete("/subjects/s/versions/1")) == (404, 40401)
    api.register("s", record("a"))
    assert error_of(api.delete("/subjects/s/versions/2")) == (404, 40402)


def test_the_last_permanent_delete_removes_the_settings(free_api: RegistryApi) -> None:
    free_api.register("s", record("a"))
    free_api.config("s", compatibility="FULL")
    free_api.mode("READWRITE", "s")
    free_api.delete("/subjects/s")
    assert free_api.get("/config/s").json() == {"compatibilityLevel": "FULL"}
    free_api.delete("/subjects/s?permanent=true")
    assert error_of(free_api.get("/config/s")) == (404, 40408)
    assert error_of(free_api.get("/mode/s")) == (404, 40409)
