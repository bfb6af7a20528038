import json
import pickle
from typing import Any

import httpx
import pytest

from headgate.serdes import RegistryClient, RegistrySettings, json_schema
from headgate.spark_udfs.driver.reader_choice import ReaderChoice, ReaderError, RegistryNotReady
from headgate.spark_udfs.spec.reader import SchemaText
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry

V1 = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]})
V2 = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})


@pytest.fixture
def stub() -> StubRegistry:
    stub = StubRegistry()
    stub.add("other-value", {"schema": '"string"'})
    stub.add("orders-value", {"schema": V1})
    stub.add("orders-value", {"schema": V2})
    return stub


def client_of(stub: StubRegistry, **settings: Any) -> RegistryClient:
    return RegistryClient(
        RegistrySettings((ADDRESS,), attempts_max=1, **settings), transport=stub.transport, sleep=lambda seconds: None
    )


def test_the_latest_version_is_the_default_and_all_versions_are_fetched(stub: StubRegistry) -> None:
    reader = ReaderChoice("orders-value").resolve(client_of(stub))
    assert reader.schema == SchemaText("AVRO", V2)
    assert (reader.version, reader.schema_id, reader.newest_version) == (2, 3, 2)
    assert dict(reader.writers) == {2: SchemaText("AVRO", V1), 3: SchemaText("AVRO", V2)}


def test_a_version_an_id_or_a_schema_text_can_be_chosen(stub: StubRegistry) -> None:
    client = client_of(stub)
    assert ReaderChoice("orders-value", version=1).resolve(client).schema.text == V1
    assert ReaderChoice(schema_id=2).resolve(client).schema.text == V1
    in_hand = ReaderChoice("orders-value", schema=V2).resolve(client)
    assert (in_hand.schema.text, in_hand.schema_id, in_hand.version) == (V2, None, None)
    assert set(dict(in_hand.writers)) == {2, 3}
    assert ReaderChoice("new-value", schema=V2).resolve(client).newest_version == 0


def test_references_are_fetched_with_the_schema(stub: StubRegistry) -> None:
    stub.add("name", {"schema": '{"type": "fixed", "name": "Name", "size": 2}'})
    using = '{"type": "record", "name": "P", "fields": [{"name": "n", "type": "Name"}]}'
    stub.add("people-value", {"schema": using, "references": [{"name": "Name", "subject": "name", "version": 1}]})
    reader = ReaderChoice("people-value").resolve(client_of(stub))
    assert reader.schema.references == (("Name", '{"type": "fixed", "name": "Name", "size": 2}'),)


def test_a_reader_is_picklable(stub: StubRegistry) -> None:
    reader = ReaderChoice("orders-value", fields=("id",)).resolve(client_of(stub))
    assert pickle.loads(pickle.dumps(reader)) == reader
    assert hash(pickle.loads(pickle.dumps(reader))) == hash(reader)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"version": 1},
        {"subject": "s", "version": 1, "schema_id": 2},
        {"subject": "s", "schema_id": 1, "schema": V1},
        {"subject": "s", "fields": ()},
    ],
)
def test_an_ambiguous_choice_is_rejected(choice: dict[str, Any]) -> None:
    with pytest.raises(ReaderError):
        ReaderChoice(**choice)


def test_an_unavailable_registry_fails_with_advice() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    client = RegistryClient(
        RegistrySettings(("http://ada:secret@host:1",), attempts_max=2),
        transport=httpx.MockTransport(refuse),
        sleep=lambda seconds: None,
    )
    with pytest.raises(RegistryNotReady) as caught:
        ReaderChoice("orders-value").resolve(client)
    text = str(caught.value)
    assert "http://host:1" in text
    assert "spark.headgate.registry.url" in text
    assert "secret" not in text


def test_an_unknown_subject_fails_with_advice(stub: StubRegistry) -> None:
    with pytest.raises(ReaderError, match=r"the latest version of ordrs-value is not in the registry.*spelling"):
        ReaderChoice("ordrs-value").resolve(client_of(stub))


def test_an_invalid_schema_fails_on_the_driver(stub: StubRegistry) -> None:
    with pytest.raises(ReaderError, match="the given schema"):
        ReaderChoice(schema='{"type": "recrod"}').resolve(client_of(stub))


def test_a_permanently_deleted_version_is_skipped(stub: StubRegistry) -> None:
    def gone(request: httpx.Request) -> httpx.Response | None:
        if request.url.path.endswith("/versions/1"):
            return httpx.Response(404, json={"error_code": 40402, "message": "gone"})
        return None

    stub.intercept = gone
    assert set(dict(ReaderChoice("orders-value").resolve(client_of(stub)).writers)) == {3}


def test_fields_are_supported_for_avro_only(stub: StubRegistry) -> None:
    with pytest.raises(ReaderError, match="fields is supported for Avro only"):
        ReaderChoice(schema=json_schema("{}"), fields=("id",)).resolve(client_of(stub))
