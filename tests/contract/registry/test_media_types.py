"""Content negotiation, request bodies and HTTP errors."""

import json

import pytest

from tests.contract.registry.schemas import record
from tests.live.registry import RegistryApi, error_of

V1 = "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, V1),
        ("", V1),
        ("*/*", V1),
        ("*", V1),
        ("application/*", V1),
        ("*/does_not_matter", V1),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", V1),
        (
            "application/vnd.schemaregistry.v2+json; q=0.1, application/vnd.schemaregistry+json; q=0.9",
            "application/vnd.schemaregistry+json",
        ),
        ("application/json;q=0.9, application/vnd.schemaregistry.v1+json;q=0.5", "application/json"),
        ("application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json", V1),
    ],
)
def test_the_response_follows_the_weights_of_the_accept_header(
    api: RegistryApi, accept: str | None, expected: str
) -> None:
    api.register("s", record("a"))
    headers = {} if accept is None else {"accept": accept}
    for path in ("/subjects", "/schemas/ids/1", "/schemas/ids/1"):
        answer = api.get(path, headers=headers)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == expected


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "text/*",
        "application/vnd.schemaregistry.v2+json",
        "application/octet-stream",
        "application/json;q=0",
    ],
)
def test_an_unsupported_accept_header_is_406(api: RegistryApi, accept: str) -> None:
    api.register("s", record("a"))
    api.get("/schemas/ids/1")
    for path in ("/subjects", "/schemas/ids/1"):
        answer = api.get(path, headers={"accept": accept})
        assert error_of(answer) == (406, 406)
        assert answer.json()["message"] == "HTTP 406 Not Acceptable"
        assert answer.headers["content-type"] == V1


@pytest.mark.parametrize(
    "media",
    [
        V1,
        "application/vnd.schemaregistry+json",
        "application/json",
        "application/octet-stream",
        "Application/JSON; charset=utf-8",
    ],
)
def test_supported_media_types_of_bodies_are_accepted(api: RegistryApi, media: str) -> None:
    answer = api.put("/config", b'{"compatibility":"NONE"}', headers={"content-type": media})
    assert answer.status_code == 200, answer.text


def test_other_media_types_are_415(api: RegistryApi) -> None:
    answer = api.put("/config", b'{"compatibility":"NONE"}', headers={"content-type": "text/html"})
    assert error_of(answer) == (415, 415)
    assert answer.json()["message"] == "HTTP 415 Unsupported Media Type"


@pytest.mark.parametrize("media", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_that_any_web_page_can_send_is_415_and_the_message_names_a_media_type(
    api: RegistryApi, media: str
) -> None:
    headers = {"content-type": media} if media else {}
    for method, path in (
        ("PUT", "/config"),
        ("POST", "/subjects/s/versions"),
        ("POST", "/import"),
        ("DELETE", "/mode"),
    ):
        answer = api.send(method, path, b'{"compatibility":"NONE"}', headers=headers)
        assert error_of(answer) == (415, 415)
        assert V1 in answer.json()["message"]
    assert api.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


def test_a_body_may_have_another_charset(api: RegistryApi) -> None:
    body = '{"compatibility":"NONE"}'.encode("utf-16")
    answer = api.put("/config", body, headers={"content-type": f"{V1}; charset=utf-16"})
    assert answer.json() == {"compatibility": "NONE"}
    answer = api.put("/config", body, headers={"content-type": f"{V1}; charset=klingon"})
    assert error_of(answer) == (400, 400)


@pytest.mark.parametrize("path", ["/subjects/s", "/subjects/s/versions", "/compatibility/subjects/s/versions"])
def test_unknown_fields_are_named(api: RegistryApi, path: str) -> None:
    for body in ({"invalid_field": "x"}, {"schema": '"string"', "invalid_field": "x"}):
        answer = api.post(path, body)
        assert error_of(answer) == (422, 422)
        assert answer.json()["message"] == "Unrecognized field: invalid_field"


def test_numbers_may_come_as_strings(api: RegistryApi) -> None:
    answer = api.post("/subjects/s/versions", {"schema": '"string"', "version": "1"})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("rest", [b'"', b"}", b" x", b"\n{}", b" \xff"])
def test_bytes_after_the_object_in_a_body_are_ignored(api: RegistryApi, rest: bytes) -> None:
    body = json.dumps({"schema": record("a")}).encode()
    registered = api.send("POST", "/subjects/s/versions", body + rest)
    assert registered.json()["id"] == api.send("POST", "/subjects/s", body).json()["id"]
    assert api.send("PUT", "/config/s", b'{"alias": "\xc3\xa9"}' + rest).json()["alias"] == "é"
    assert error_of(api.send("POST", "/subjects/s/versions", rest + body))[0] in (400, 422)


def test_trailing_slashes_do_not_matter(api: RegistryApi) -> None:
    api.post("/subjects/s/versions/", {"schema": record("a")})
    for path in ("/subjects/", "/subjects/s/versions/", "/schemas/ids/1/", "/config/", "/mode/", "/schemas/types/"):
        assert api.get(path).status_code == 200, path


def test_head_is_get_without_the_body(api: RegistryApi) -> None:
    answer = api.send("HEAD", "/subjects")
    assert (answer.status_code, answer.content) == (200, b"")


def test_wrong_methods_are_405_and_wrong_paths_404(api: RegistryApi) -> None:
    answer = api.send("PATCH", "/subjects")
    assert error_of(answer) == (405, 405)
    assert answer.json()["message"] == "HTTP 405 Method Not Allowed"
    assert error_of(api.delete("/schemas/ids/1")) == (405, 405)
    for path in (
        "/nonsense",
        "/schemas/ids/abc",
        "/schemas/ids/-1",
        "/subjects/s/versions/1/nonsense",
        "/contexts/.c/x",
    ):
        answer = api.get(path)
        assert error_of(answer) == (404, 404), path
        assert answer.json()["message"] == "HTTP 404 Not Found"


def test_the_root_and_the_server_describe_themselves(api: RegistryApi) -> None:
    assert api.get("/").json() == {}
    cluster = api.get("/v1/metadata/id").json()
    assert cluster["id"] == ""
    assert cluster["scope"]["path"] == []
    assert set(cluster["scope"]["clusters"]) == {"kafka-cluster", "schema-registry-cluster"}
    assert set(api.get("/v1/metadata/version").json()) == {"version", "commitId"}


def test_a_body_is_read_as_utf_8_json_text(api: RegistryApi) -> None:
    body = json.dumps({"schema": record({"name": "a", "type": "string", "doc": "né 🦆"})}, ensure_ascii=False).encode()
    assert api.post("/subjects/s/versions", body).status_code == 200
    assert "né 🦆" in api.get("/schemas/ids/1").json()["schema"]
