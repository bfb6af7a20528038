"""Requests that Confluent's registry does not have."""

import asyncio
import json
from pathlib import Path
from typing import Any

from headgate.registry.api import create_app
from headgate.registry.api.server import open_registry
from tests.contract.registry.schemas import defaulted, distinct, record
from tests.live.registry import RegistryApi, error_of


def found(api: RegistryApi, query: str) -> list[tuple[str, int]]:
    answer = api.get(f"/search?{query}")
    assert answer.status_code == 200, answer.text
    return [(one["subject"], one["version"]) for one in answer.json()]


def test_search_finds_fields_types_tags_and_text(free_api: RegistryApi) -> None:
    nested = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": ["null", "int"]}]}
    free_api.register("avro", record("email", ("address", nested), doc="who pays"))
    free_api.register(
        "json",
        '{"type":"object","properties":{"email":{"type":"string","confluent:tags":["PII"]}}}',
        schemaType="JSON",
    )
    free_api.register(
        "proto", 'syntax = "proto3"; message M { string email = 1; int32 zip = 2; }', schemaType="PROTOBUF"
    )
    assert found(free_api, "field=email") == [("avro", 1), ("json", 1), ("proto", 1)]
    assert found(free_api, "field=zip&type=int") == [("avro", 1)]
    assert found(free_api, "field=zip&type=int32") == [("proto", 1)]
    assert free_api.get("/search?field=zip&type=int").json()[0]["fields"] == ["address.zip"]
    assert found(free_api, "type=Address") == [("avro", 1)]
    assert found(free_api, "text=WHO%20PAYS") == [("avro", 1)]
    assert found(free_api, "tag=PII") == [("json", 1)]
    assert found(free_api, "schemaType=PROTOBUF") == [("proto", 1)]
    assert found(free_api, "field=email&subject=js") == [("json", 1)]
    assert found(free_api, "field=email&offset=1&limit=1") == [("json", 1)]
    assert found(free_api, "field=nothing") == []
    assert error_of(free_api.get("/search?schemaType=XML")) == (422, 42201)


def test_search_covers_the_latest_versions_by_default(free_api: RegistryApi) -> None:
    free_api.register("s", record("old"))
    free_api.register("s", record("new"))
    assert found(free_api, "field=old") == []
    assert found(free_api, "field=old&allVersions=true") == [("s", 1)]
    free_api.delete("/subjects/s/versions/2")
    assert found(free_api, "field=old") == [("s", 1)]


def test_latest_lists_all_subjects_with_their_latest_version(free_api: RegistryApi) -> None:
    for index, schema in enumerate(distinct(4)):
        free_api.register(f"s{index % 2}", schema)
    free_api.register(":.c:x", '{"type":"object"}', schemaType="JSON")
    shown = [(one["subject"], one["version"], one["id"], one["schemaType"]) for one in free_api.get("/latest").json()]
    assert shown == [(":.c:x", 1, 1, "JSON"), ("s0", 2, 3, "AVRO"), ("s1", 2, 4, "AVRO")]
    assert len(free_api.get("/latest?subjectPrefix=s1").json()) == 1


def test_incompatibilities_come_with_advice(api: RegistryApi) -> None:
    api.register("s", record("a", ("b", "int")))
    body = {"schema": record("a", ("b", "string"), "c")}
    answer = api.post("/compatibility/subjects/s/versions?verbose=true", body).json()
    assert answer["is_compatible"] is False
    shown = {one["path"]: one for one in answer["incompatibilities"]}
    assert shown["/fields/2"]["advice"] == "give the field c a default"
    assert shown["/fields/2"]["kind"] == "READER_FIELD_MISSING_DEFAULT_VALUE"
    assert shown["/fields/1/type"]["reader"] == '"string"'
    assert shown["/fields/1/type"]["writer"] == '"int"'
    assert shown["/fields/1/type"]["version"] == 1


def test_a_transitive_level_reports_all_incompatible_versions(api: RegistryApi) -> None:
    api.config(compatibility="NONE")
    for kind in ("int", "boolean", "string"):
        api.register("s", record(("a", kind)))
    api.config(compatibility="BACKWARD_TRANSITIVE")
    body = {"schema": record(("a", "bytes"))}
    answer = api.post("/compatibility/subjects/s/versions?verbose=true", body).json()
    assert [one["version"] for one in answer["incompatibilities"]] == [2, 1]
    assert api.post("/compatibility/subjects/s/versions/latest", body).json() == {"is_compatible": True}


def test_an_invalid_schema_is_a_message_when_verbose(api: RegistryApi) -> None:
    body = {"schema": record(defaulted("a", None))}
    assert error_of(api.post("/compatibility/subjects/s/versions", body)) == (422, 42201)
    answer = api.post("/compatibility/subjects/s/versions?verbose=true", body).json()
    assert answer["is_compatible"] is False
    assert "Invalid schema" in answer["messages"][0]


def test_an_empty_subject_is_compatible_with_any_schema(api: RegistryApi) -> None:
    for path in ("", "/latest"):
        body = {"schema": record("a")}
        assert api.post(f"/compatibility/subjects/new/versions{path}", body).json() == {"is_compatible": True}
    assert error_of(api.post("/compatibility/subjects/new/versions/1", body)) == (404, 40402)
    assert error_of(api.post("/compatibility/subjects/new/versions/earliest", body)) == (422, 42202)


def test_changes_are_listed_in_order(free_api: RegistryApi) -> None:
    free_api.register("s", record("a"))
    free_api.config("s", compatibility="FULL")
    free_api.mode("READWRITE", "s")
    free_api.delete("/subjects/s")
    free_api.delete("/subjects/s?permanent=true")
    changes = free_api.get("/changes").json()
    assert [change["kind"] for change in changes] == [
        "version-registered",
        "config-changed",
        "mode-changed",
        "version-deleted",
        "version-removed",
        "config-removed",
        "mode-removed",
    ]
    assert [change["sequence"] for change in changes] == list(range(1, 8))
    assert (changes[0]["subject"], changes[0]["version"], changes[0]["id"]) == ("s", 1, 1)
    assert [change["sequence"] for change in free_api.get("/changes?after=5").json()] == [6, 7]


async def _stream(data_dir: Path) -> list[dict[str, Any]]:
    """Read the stream after the first change while two more changes happen, then disconnect."""
    registry = open_registry(data_dir)
    front = create_app(registry)
    sent: list[dict[str, Any]] = []
    enough = asyncio.Event()

    async def register(field: str) -> None:
        body = json.dumps({"schema": record("a", defaulted(field))}).encode()
        asked = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return asked.pop()

        async def ignore(_: Any) -> None:
            return

        scope = {"type": "http", "method": "POST", "path": "/subjects/s/versions", "raw_path": b"/subjects/s/versions"}
        await front(
            {
                **scope,
                "query_string": b"",
                "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            },
            receive,
            ignore,
        )

    async def wait() -> dict[str, Any]:
        await enough.wait()
        return {"type": "http.disconnect"}

    async def collect(message: Any) -> None:
        for event in message.get("body", b"").decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in event.splitlines() if not line.startswith(":"))
            if fields:
                sent.append({"id": int(fields["id"]), "event": fields["event"], **json.loads(fields["data"])})
        if len(sent) >= 3:
            enough.set()

    await register("one")
    await register("two")
    headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream"), (b"last-event-id", b"1")]
    scope = {"type": "http", "method": "GET", "path": "/changes", "raw_path": b"/changes", "query_string": b""}
    following = asyncio.create_task(front({**scope, "headers": headers}, wait, collect))
    await asyncio.sleep(0)
    await register("three")
    await register("four")
    await asyncio.wait_for(following, 20)
    registry.store.close()
    return sent


def test_the_stream_of_changes_resumes_after_the_last_event(tmp_path: Path) -> None:
    events = asyncio.run(_stream(tmp_path))
    assert [event["id"] for event in events] == [2, 3, 4]
    assert {event["event"] for event in events} == {"version-registered"}
    assert [event["version"] for event in events] == [2, 3, 4]


def test_an_import_restores_the_exported_registry(free_api: RegistryApi, tmp_path: Path) -> None:
    free_api.register("child", record("x", name="Child", namespace="ns"))
    free_api.register(
        "aparent",
        record(("c", "ns.Child"), name="P"),
        references=[{"name": "ns.Child", "subject": "child", "version": 1}],
        metadata={"properties": {"k": "v"}},
        ruleSet={"domainRules": [{"name": "r", "mode": "READ", "type": "CEL"}]},
    )
    free_api.register(":.c:s", '{"type":"object"}', schemaType="JSON")
    free_api.register("gone", record("z"))
    free_api.delete("/subjects/gone")
    free_api.config("child", compatibility="FULL")
    free_api.mode("READONLY", ":.c:")
    exported = free_api.get("/export")
    assert exported.headers["content-type"] == "application/x-ndjson"
    other = RegistryApi(tmp_path / "other")
    try:
        headers = {"content-type": "application/x-ndjson"}
        taken = other.post("/import", exported.content, headers=headers)
        assert taken.json() == {"versions": 4, "configs": 1, "modes": 1}
        assert other.get("/export").content == exported.content
        again = other.post("/import", exported.content, headers=headers)
        assert again.status_code == 200
        for path in ("/schemas?deleted=true&subjectPrefix=:*:", "/schemas/ids/2", "/config/child", "/mode/:.c:"):
            assert other.get(path).json() == free_api.get(path).json()
        clash = b'{"kind":"schema","subject":"q","version":1,"id":1,"schema":"\\"int\\""}'
        assert error_of(other.post("/import", clash, headers=headers)) == (422, 42205)
        assert other.register("fresh", record("fresh")) == 4
    finally:
        other.close()
    selected = free_api.get("/export?subjectPrefix=child&deleted=false").text
    assert [json.loads(line)["kind"] for line in selected.splitlines()] == ["config", "schema"]


def test_ids_used_before_an_export_are_not_reused_after_the_import(free_api: RegistryApi, tmp_path: Path) -> None:
    for subject in ("kept", "gone", ":.c:gone"):
        free_api.register(subject, record(subject[-4:]))
    for subject in ("gone", ":.c:gone"):
        free_api.delete(f"/subjects/{subject}")
        free_api.delete(f"/subjects/{subject}?permanent=true")
    exported = free_api.get("/export").content
    assert [json.loads(line)["kind"] for line in exported.splitlines()] == ["ids", "ids", "schema"]
    other = RegistryApi(tmp_path / "other")
    try:
        headers = {"content-type": "application/x-ndjson"}
        for _ in range(2):
            assert other.post("/import", exported, headers=headers).status_code == 200
        assert other.get("/export").content == exported
        assert other.register("new", record("new")) == 3
        assert other.register(":.c:new", record("new")) == 2
        for wrong in (b"0", b"-1", b"99999999999"):
            line = b'{"kind":"ids","subject":"","id":' + wrong + b"}"
            assert error_of(other.post("/import", line, headers=headers)) == (422, 42201)
    finally:
        other.close()
    assert json.loads(free_api.get("/export?subjectPrefix=:.c:").text) == {"kind": "ids", "subject": ":.c:", "id": 2}


def test_health_reflects_the_store(api: RegistryApi) -> None:
    api.register("s", record("a"))
    assert api.get("/health").json() == {
        "status": "UP",
        "stored": {"contexts": 1, "subjects": 1, "versions": 1, "schemas": 1},
    }
    api.registry.store._writer.execute("PRAGMA query_only = ON")  # type: ignore[attr-defined]
    answer = api.get("/health")
    assert answer.status_code in (200, 503)
    failed = api.try_register("t", record("b"))
    assert error_of(failed) == (500, 50001)
    api.registry.store._writer.execute("PRAGMA query_only = OFF")  # type: ignore[attr-defined]
    assert api.register("t", record("b")) == 2
