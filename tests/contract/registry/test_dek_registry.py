"""The DEK registry has Confluent's routes, fields, error codes and messages."""

from typing import Any

import pytest

from headgate.registry import limits
from tests.contract.registry.encryption_keys import KEKS, make_dek, make_kek
from tests.live.registry import RegistryApi, error_of


def test_a_kek_is_created_read_listed_and_changed(api: RegistryApi) -> None:
    made = make_kek(api, kmsProps={"b": "2", "a": "1"}, doc="mine")
    ts = made.pop("ts")
    assert ts > 0
    assert made == {
        "name": "kek1",
        "kmsType": "local-kms",
        "kmsKeyId": "mykey",
        "kmsProps": {"a": "1", "b": "2"},
        "doc": "mine",
        "shared": False,
    }
    assert api.get(f"{KEKS}/kek1").json() == {**made, "ts": ts}
    assert api.get(KEKS).json() == ["kek1"]
    changed = api.put(f"{KEKS}/kek1", {"doc": None, "shared": True}).json()
    assert "doc" not in changed
    assert (changed["shared"], changed["kmsProps"]) == (True, {"a": "1", "b": "2"})
    assert api.put(f"{KEKS}/kek1", {"kmsProps": None}).json()["kmsProps"] == {}
    assert error_of(api.put(f"{KEKS}/other", {"doc": "x"})) == (404, 40470)


def test_the_context_parameter_of_clients_has_no_effect_on_keks(api: RegistryApi) -> None:
    assert api.post(f"{KEKS}?context=.x", {"name": "k", "kmsType": "t", "kmsKeyId": "i"}).status_code == 200
    assert api.get(f"{KEKS}/k?deleted=False").status_code == 200
    assert api.get(f"{KEKS}/k?context=.y").json()["name"] == "k"


def test_kms_types_of_clouds_have_one_name(api: RegistryApi) -> None:
    for sent, stored in (("AWS", "aws-kms"), ("azure-x", "azure-kms"), ("gcp", "gcp-kms"), ("my-kms", "my-kms")):
        assert make_kek(api, f"kek-{stored}", kmsType=sent)["kmsType"] == stored


def test_kms_credentials_are_stored_and_never_returned(api: RegistryApi) -> None:
    props = {"token.id": "hush", "client.secret": "hush", "region": "eu"}
    assert make_kek(api, kmsProps=props)["kmsProps"] == {"region": "eu"}
    changed = api.put(f"{KEKS}/kek1", {"kmsProps": {"region": "us", "client.secret": "[hidden]"}}).json()
    assert changed["kmsProps"] == {"region": "us"}
    with api.registry.store.reading() as store:
        kek = store.keys.kek("kek1")
    assert kek is not None
    assert dict(kek.kms_props) == {"token.id": "hush", "client.secret": "hush", "region": "us"}


INVALID_KEKS: list[tuple[dict[str, Any], str]] = [
    ({"kmsType": "t", "kmsKeyId": "i"}, "name"),
    ({"name": "", "kmsType": "t", "kmsKeyId": "i"}, "name"),
    ({"name": "1k", "kmsType": "t", "kmsKeyId": "i"}, "name"),
    ({"name": "a b", "kmsType": "t", "kmsKeyId": "i"}, "name"),
    ({"name": "k²", "kmsType": "t", "kmsKeyId": "i"}, "name"),
    ({"name": "k" * 257, "kmsType": "t", "kmsKeyId": "i"}, "name"),
    ({"name": "k", "kmsType": "t"}, "kmsKeyId"),
    ({"name": "k", "kmsKeyId": "i"}, "kmsType"),
    ({"name": "k", "kmsType": "t", "kmsKeyId": "i", "doc": "x" * limits.KEK_CHARS_MAX}, "doc"),
]


def test_an_invalid_kek_is_rejected_with_its_field(api: RegistryApi) -> None:
    for body, field in INVALID_KEKS:
        answer = api.post(KEKS, body)
        assert error_of(answer) == (422, 42271)
        assert answer.json()["message"] == f"Invalid or missing value for field '{field}' of key"


def test_a_kek_exists_once_and_creating_it_again_undeletes_it(api: RegistryApi) -> None:
    body = {"name": "kek1", "kmsType": "local-kms", "kmsKeyId": "mykey"}
    make_kek(api)
    answer = api.post(KEKS, body)
    assert error_of(answer) == (409, 40971)
    assert answer.json()["message"] == "Key 'kek1' already exists; use a different value"
    assert api.delete(f"{KEKS}/kek1").status_code == 204
    assert error_of(api.post(KEKS, {**body, "kmsKeyId": "another"})) == (409, 40971)
    assert "deleted" not in api.post(KEKS, body).json()


def test_keks_need_a_soft_delete_first(api: RegistryApi) -> None:
    make_kek(api)
    answer = api.delete(f"{KEKS}/kek1?permanent=true")
    assert error_of(answer) == (404, 40471)
    assert answer.json()["message"] == "Key 'kek1' was not deleted first before being permanently deleted"
    assert api.delete(f"{KEKS}/kek1").status_code == 204
    assert api.delete(f"{KEKS}/kek1").status_code == 204
    assert error_of(api.get(f"{KEKS}/kek1")) == (404, 40470)
    assert error_of(api.put(f"{KEKS}/kek1", {"doc": "x"})) == (404, 40470)
    assert api.get(f"{KEKS}/kek1?deleted=true").json()["deleted"] is True
    assert (api.get(KEKS).json(), api.get(f"{KEKS}?deleted=true").json()) == ([], ["kek1"])
    assert api.send("POST", f"{KEKS}/kek1/undelete").status_code == 204
    assert api.get(KEKS).json() == ["kek1"]
    assert api.delete(f"{KEKS}/kek1").status_code == 204
    assert api.delete(f"{KEKS}/kek1?permanent=true").status_code == 204
    assert error_of(api.delete(f"{KEKS}/kek1?permanent=true")) == (404, 40470)
    assert error_of(api.send("POST", f"{KEKS}/kek1/undelete")) == (404, 40470)


def test_a_dek_is_created_and_read_by_subject_version_and_algorithm(api: RegistryApi) -> None:
    make_kek(api)
    made = make_dek(api).json()
    ts = made.pop("ts")
    expected = {
        "kekName": "kek1",
        "subject": "orders-value",
        "version": 1,
        "algorithm": "AES256_GCM",
        "encryptedKeyMaterial": "c2VjcmV0",
    }
    assert made == expected
    place = f"{KEKS}/kek1/deks/orders-value"
    assert api.get(place).json() == {**expected, "ts": ts}
    assert make_dek(api, version=2, encryptedKeyMaterial="dHdv").json()["version"] == 2
    assert make_dek(api, algorithm="AES256_SIV").status_code == 200
    assert api.get(f"{place}/versions/latest").json()["version"] == 2
    assert api.get(f"{place}/versions/-1?algorithm=AES256_SIV").json()["algorithm"] == "AES256_SIV"
    assert api.get(f"{place}/versions").json() == [1, 2]
    assert api.get(f"{place}/versions?algorithm=AES256_SIV").json() == [1]
    assert api.get(f"{place}/versions?algorithm=AES128_GCM").json() == []
    assert api.get(f"{place}/versions?offset=1&limit=1").json() == [2]
    assert error_of(api.get(f"{place}/versions/3")) == (404, 40470)
    assert error_of(api.get(f"{place}?algorithm=AES128_GCM")) == (404, 40470)
    assert error_of(api.get(f"{place}?algorithm=ROT13")) == (422, 42271)
    assert error_of(api.get(f"{place}/versions/0")) == (422, 42202)
    assert error_of(make_dek(api, version=0)) == (422, 42202)
    assert error_of(make_dek(api, algorithm="ROT13")) == (422, 42271)


def test_a_dek_may_be_created_without_the_subject_in_the_path(api: RegistryApi) -> None:
    make_kek(api)
    body = {"subject": "a/b", "encryptedKeyMaterial": "eA=="}
    assert api.post(f"{KEKS}/kek1/deks", body).json()["subject"] == "a/b"
    assert api.get(f"{KEKS}/kek1/deks/a%2Fb").status_code == 200
    assert error_of(api.post(f"{KEKS}/kek1/deks", {"encryptedKeyMaterial": "eA=="})) == (422, 42271)
    assert error_of(api.post(f"{KEKS}/kek1/deks/other", body)) == (422, 42271)
    assert error_of(api.post(f"{KEKS}/none/deks", body)) == (404, 40470)


def test_a_dek_without_a_shared_kek_needs_key_material(api: RegistryApi) -> None:
    make_kek(api)
    for missing in (None, ""):
        answer = make_dek(api, encryptedKeyMaterial=missing)
        assert error_of(answer) == (422, 42271)
        assert answer.json()["message"] == "Invalid or missing value for field 'encryptedKeyMaterial' of key"


def test_a_shared_kek_needs_a_kms_that_the_registry_does_not_have(api: RegistryApi) -> None:
    make_kek(api)
    make_dek(api)
    api.put(f"{KEKS}/kek1", {"shared": True})
    answer = make_dek(api, "other", encryptedKeyMaterial=None)
    assert error_of(answer) == (500, 50070)
    assert answer.json()["message"].startswith("Could not generate encrypted dek for other: ")
    answer = api.get(f"{KEKS}/kek1/deks/orders-value")
    assert error_of(answer) == (500, 50070)
    assert answer.json()["message"].startswith("Could not generate raw dek for orders-value: ")
    assert api.get(f"{KEKS}/kek1/deks").json() == ["orders-value"]
    assert error_of(api.send("POST", f"{KEKS}/kek1/test")) == (500, 50070)
    assert api.delete(f"{KEKS}/kek1/deks/orders-value").status_code == 204


def test_deks_of_a_shared_kek_can_be_imported(api: RegistryApi) -> None:
    make_kek(api, shared=True)
    assert error_of(make_dek(api)) == (500, 50070)
    assert api.get(f"{KEKS}/kek1/deks").json() == []
    api.mode("IMPORT")
    assert "keyMaterial" not in make_dek(api).json()
    assert api.get(f"{KEKS}/kek1/deks").json() == ["orders-value"]


def test_only_a_shared_kek_can_be_tested(api: RegistryApi) -> None:
    make_kek(api)
    assert error_of(api.send("POST", f"{KEKS}/kek1/test")) == (422, 42271)
    assert error_of(api.send("POST", f"{KEKS}/none/test")) == (404, 40470)
    shared = {"name": "k", "kmsType": "t", "kmsKeyId": "i", "shared": True}
    assert error_of(api.post(f"{KEKS}?testSharing=true", shared)) == (500, 50070)
    assert error_of(api.get(f"{KEKS}/k")) == (404, 40470)


def test_a_dek_exists_once_and_rewrapping_replaces_its_key_material(api: RegistryApi) -> None:
    make_kek(api)
    make_dek(api)
    answer = make_dek(api)
    assert error_of(answer) == (409, 40971)
    assert answer.json()["message"] == "Key 'orders-value' already exists; use a different value"
    body = {"subject": "orders-value", "encryptedKeyMaterial": "bmV3"}
    place = f"{KEKS}/kek1/deks/orders-value"
    assert error_of(api.post(place, body)) == (409, 40971)
    assert api.post(f"{place}?rewrap=true", body).json()["encryptedKeyMaterial"] == "bmV3"
    assert api.get(place).json()["encryptedKeyMaterial"] == "bmV3"


def test_deks_are_deleted_and_undeleted_by_version_and_by_subject(api: RegistryApi) -> None:
    make_kek(api)
    make_dek(api)
    make_dek(api, version=2)
    place = f"{KEKS}/kek1/deks/orders-value"
    assert error_of(api.delete(f"{place}/versions/2?permanent=true")) == (404, 40471)
    assert api.delete(f"{place}/versions/2").status_code == 204
    assert error_of(api.get(f"{place}/versions/2")) == (404, 40470)
    assert api.get(f"{place}/versions/2?deleted=true").json()["deleted"] is True
    assert api.get(f"{place}/versions/latest").json()["version"] == 1
    assert (api.get(f"{place}/versions").json(), api.get(f"{place}/versions?deleted=true").json()) == ([1], [1, 2])
    assert api.send("POST", f"{place}/versions/2/undelete").status_code == 204
    assert api.get(f"{place}/versions").json() == [1, 2]
    assert error_of(api.delete(f"{place}?permanent=true")) == (404, 40471)
    assert api.delete(place).status_code == 204
    assert api.get(f"{KEKS}/kek1/deks").json() == []
    assert api.send("POST", f"{place}/undelete").status_code == 204
    assert api.get(f"{place}/versions").json() == [1, 2]
    assert api.delete(place).status_code == 204
    assert api.delete(f"{place}/versions/1?permanent=true").status_code == 204
    assert api.delete(f"{place}?permanent=true").status_code == 204
    assert api.get(f"{place}/versions?deleted=true").json() == []
    assert error_of(api.delete(f"{place}?permanent=true")) == (404, 40470)
    assert error_of(api.send("POST", f"{place}/undelete")) == (404, 40470)


def test_a_kek_with_deks_cannot_be_deleted(api: RegistryApi) -> None:
    make_kek(api)
    make_dek(api)
    answer = api.delete(f"{KEKS}/kek1")
    assert error_of(answer) == (422, 42272)
    assert answer.json()["message"] == "One or more references exist to the key kek1"
    api.delete(f"{KEKS}/kek1/deks/orders-value")
    assert api.delete(f"{KEKS}/kek1").status_code == 204
    assert error_of(api.delete(f"{KEKS}/kek1?permanent=true")) == (422, 42272)
    assert error_of(make_dek(api, "other")) == (404, 40470)
    answer = api.send("POST", f"{KEKS}/kek1/deks/orders-value/undelete")
    assert error_of(answer) == (404, 40472)
    assert answer.json()["message"] == "Key 'kek1' must be undeleted first"
    assert error_of(api.send("POST", f"{KEKS}/kek1/deks/orders-value/versions/1/undelete")) == (404, 40472)
    assert error_of(api.get(f"{KEKS}/kek1/deks")) == (404, 40470)
    assert api.get(f"{KEKS}/kek1/deks?deleted=true").json() == ["orders-value"]


def test_lists_have_pages_and_keks_are_found_by_the_subjects_of_their_deks(api: RegistryApi) -> None:
    for name in ("c", "a", "b"):
        make_kek(api, name)
    make_dek(api, "foo-1", "a")
    make_dek(api, "foo-2", "a")
    make_dek(api, "bar", "b")
    assert api.get(f"{KEKS}?offset=1&limit=1").json() == ["b"]
    assert api.get(f"{KEKS}?subjectPrefix=foo").json() == ["a"]
    assert api.get(f"{KEKS}?subjectPrefix=foo&subjectPrefix=b").json() == ["a", "b"]
    assert api.get(f"{KEKS}/a/deks?offset=1&limit=5").json() == ["foo-2"]
    api.delete(f"{KEKS}/b/deks/bar")
    assert api.get(f"{KEKS}?subjectPrefix=b").json() == []
    assert api.get(f"{KEKS}?subjectPrefix=b&deleted=true").json() == ["b"]


def test_the_subject_of_a_dek_may_name_a_context(api: RegistryApi) -> None:
    make_kek(api)
    make_dek(api, ":.lab:orders-value")
    assert api.get(f"{KEKS}/kek1/deks").json() == [":.lab:orders-value"]
    assert api.get(f"/contexts/lab{KEKS}/kek1/deks/orders-value").json()["subject"] == ":.lab:orders-value"
    assert error_of(api.get(f"{KEKS}/kek1/deks/orders-value")) == (404, 40470)
    body = {"subject": "x", "encryptedKeyMaterial": "eA=="}
    assert api.post(f"/contexts/.lab{KEKS}/kek1/deks/x", body).json()["subject"] == ":.lab:x"
    assert api.get(f"{KEKS}?subjectPrefix=:.lab:").json() == ["kek1"]
    make_kek(api, "deks")
    assert api.post(f"/contexts/lab{KEKS}/deks/deks/x", body).json()["subject"] == ":.lab:x"
    make_dek(api, ":.:plain")
    assert api.get(f"{KEKS}/kek1/deks/plain").status_code == 200


def test_read_only_mode_does_not_apply_to_keys(api: RegistryApi) -> None:
    api.mode("READONLY")
    make_kek(api)
    assert make_dek(api).status_code == 200


def test_the_number_of_keys_is_limited(api: RegistryApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEKS_MAX", 1)
    monkeypatch.setattr(limits, "DEKS_MAX", 1)
    make_kek(api)
    answer = api.post(KEKS, {"name": "another", "kmsType": "t", "kmsKeyId": "i"})
    assert error_of(answer) == (409, 40972)
    assert answer.json()["message"] == "A maximum of 1 keys already exist"
    assert make_dek(api).status_code == 200
    assert error_of(make_dek(api, version=2)) == (409, 40972)
    body = {"encryptedKeyMaterial": "bmV3"}
    assert api.post(f"{KEKS}/kek1/deks/orders-value?rewrap=true", body).status_code == 200


def test_a_subject_uses_the_deks_of_its_alias_for_deks(api: RegistryApi) -> None:
    make_kek(api)
    api.config("copy", aliasForDeks="orders-value", alias="schemas-only")
    assert make_dek(api, "copy").json()["subject"] == "orders-value"
    place = f"{KEKS}/kek1/deks"
    assert api.get(place).json() == ["orders-value"]
    assert api.get(f"{place}/copy").json() == api.get(f"{place}/orders-value").json()
    assert api.get(f"{place}/copy/versions").json() == [1]
    assert error_of(make_dek(api, "orders-value")) == (409, 40971)
    assert api.delete(f"{place}/copy/versions/1").status_code == 204
    assert error_of(api.get(f"{place}/orders-value")) == (404, 40470)
    assert api.send("POST", f"{place}/copy/undelete").status_code == 204
    assert api.get(f"{place}/orders-value").status_code == 200
    assert api.delete(f"{place}/copy").status_code == 204
    assert api.send("POST", f"{place}/copy/versions/1/undelete").status_code == 204


def test_an_alias_for_deks_may_be_in_another_context(api: RegistryApi) -> None:
    make_kek(api)
    api.config(":.two:copy", aliasForDeks=":.one:real")
    api.config(":.two:near", aliasForDeks="real")
    assert make_dek(api, ":.two:copy").json()["subject"] == ":.one:real"
    assert make_dek(api, ":.two:near").json()["subject"] == ":.two:real"
