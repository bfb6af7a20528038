"""Contexts as path prefixes and in qualified subjects."""

import pytest

from tests.contract.registry.schemas import distinct, record
from tests.live.registry import RegistryApi, error_of


def test_every_context_has_its_own_ids(free_api: RegistryApi) -> None:
    first, second = distinct(2)
    assert free_api.register("s", first) == 1
    assert free_api.register(":.c:s", second) == 1
    assert free_api.register(":.c:s", first) == 2
    assert free_api.get("/contexts").json() == [".", ".c"]
    guid = free_api.get("/schemas/ids/1").json()["guid"]
    assert free_api.get("/schemas/ids/2?subject=:.c:").json()["guid"] == guid
    assert free_api.get(f"/schemas/guids/{guid}/ids").json() == [{"context": ".", "id": 1}, {"context": ".c", "id": 2}]


def test_subjects_are_listed_by_context(free_api: RegistryApi) -> None:
    names = [":.ctx1:t1", ":.ctx2:t2", ":.ctx3:t1", "t1"]
    for name, schema in zip(names, distinct(4), strict=True):
        free_api.register(name, schema)
    assert free_api.get("/subjects?subjectPrefix=:.ctx1:").json() == [":.ctx1:t1"]
    assert free_api.get("/subjects?subjectPrefix=").json() == ["t1"]
    assert free_api.get("/subjects?subjectPrefix=:*:").json() == names
    assert free_api.get("/subjects").json() == names
    assert len(free_api.get("/schemas?subjectPrefix=:*:").json()) == 4
    assert len(free_api.get("/schemas?subjectPrefix=:*:t1").json()) == 3
    assert len(free_api.get("/schemas").json()) == 1


def test_a_bare_subject_is_found_in_another_context(free_api: RegistryApi) -> None:
    free_api.register(":.c:only", record("a"))
    assert free_api.get("/subjects/only/versions/1").json()["subject"] == ":.c:only"
    assert free_api.post("/subjects/only", {"schema": record("a")}).json()["subject"] == ":.c:only"
    assert free_api.get("/schemas/ids/1?subject=only").json()["subject"] == ":.c:only"


@pytest.mark.parametrize("spelling", [".c", "c", ":.c:", "%3A.c%3A"])
def test_a_path_prefix_is_a_context(free_api: RegistryApi, spelling: str) -> None:
    base = f"/contexts/{spelling}"
    first, second = distinct(2)
    assert free_api.post(f"{base}/subjects/s/versions", {"schema": first}).json()["id"] == 1
    assert free_api.get(f"{base}/subjects").json() == [":.c:s"]
    assert free_api.get(f"{base}/subjects/s/versions/1").json()["subject"] == ":.c:s"
    assert free_api.get(f"{base}/schemas/ids/1").json()["schema"] == first
    assert free_api.get(f"{base}/schemas").json()[0]["subject"] == ":.c:s"
    assert free_api.get(f"{base}/contexts").json() == [".", ".c"]
    assert free_api.get(f"{base}/schemas/types").status_code == 200
    assert free_api.put(f"{base}/config", {"compatibility": "FULL"}).status_code == 200
    assert free_api.get("/config/:.c:").json() == {"compatibilityLevel": "FULL"}
    assert free_api.put(f"{base}/mode/s", {"mode": "READONLY"}).status_code == 200
    assert free_api.get("/mode/:.c:s").json() == {"mode": "READONLY"}
    assert free_api.post(f"{base}/compatibility/subjects/s/versions/latest", {"schema": second}).json() == {
        "is_compatible": False
    }
    assert error_of(free_api.get("/schemas/ids/1")) == (404, 40403)


def test_the_default_context_as_a_prefix(api: RegistryApi) -> None:
    api.post("/contexts/:.:/subjects/s/versions", {"schema": record("a")})
    assert api.get("/contexts/:.:/subjects").json() == ["s"]
    assert api.get("/subjects/:.:s/versions").json() == [1]
    assert api.get("/contexts/./schemas/ids/1").status_code in (200, 404)


def test_a_qualified_subject_overrides_the_prefix(api: RegistryApi) -> None:
    api.post("/contexts/.one/subjects/:.two:s/versions", {"schema": record("a")})
    assert api.get("/subjects").json() == [":.two:s"]


def test_a_context_with_a_colon_is_rejected(api: RegistryApi) -> None:
    assert error_of(api.get("/contexts/a:b/subjects")) == (400, 400)


def test_contexts_are_listed_in_pages_and_by_prefix(free_api: RegistryApi) -> None:
    for name in ("prod", "prod-eu", "staging", "dev"):
        free_api.register(f":.{name}:s", record(name[:3]))
    assert free_api.get("/contexts").json() == [".", ".dev", ".prod", ".prod-eu", ".staging"]
    assert free_api.get("/contexts?contextPrefix=.prod").json() == [".prod", ".prod-eu"]
    assert free_api.get("/contexts?contextPrefix=.PROD").json() == []
    assert free_api.get("/contexts?offset=2&limit=2").json() == [".prod", ".prod-eu"]


def test_an_empty_context_can_be_deleted(free_api: RegistryApi) -> None:
    free_api.register(":.c:s", record("a"))
    answer = free_api.delete("/contexts/.c")
    assert error_of(answer) == (422, 42211)
    free_api.delete("/subjects/:.c:s")
    assert error_of(free_api.delete("/contexts/.c")) == (422, 42211)
    free_api.delete("/subjects/:.c:s?permanent=true")
    assert free_api.delete("/contexts/.c").status_code == 204
    assert free_api.get("/contexts").json() == ["."]
