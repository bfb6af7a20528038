"""`logical=native`: decimals, dates and timestamps in a readable form, on every way to produce and read."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from headgate.testing import Headgate

SCHEMA = {
    "type": "record",
    "name": "Sale",
    "fields": [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    ],
}
NATIVE = {"price": "9.99", "at": "2026-11-18T10:15:30.123Z", "day": {"int": "2026-11-18"}}
AVRO = {"price": "\x03\xe7", "at": 1794996930123, "day": {"int": 20775}}
V2 = {"Content-Type": "application/vnd.kafka.avro.v2+json"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headgate]:
    with Headgate(tmp_path_factory.mktemp("logical")) as headgate:
        yield headgate


@pytest.fixture(scope="module")
def http(gateway: Headgate) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=gateway.proxy_url, timeout=60) as client:
        yield client


def produce_v2(http: httpx.Client, topic: str, value: Any, query: str = "", **headers: str) -> httpx.Response:
    body = {"value_schema": json.dumps(SCHEMA), "records": [{"value": value}]}
    return http.post(f"/topics/{topic}{query}", json=body, headers=V2 | headers)


def cluster(http: httpx.Client) -> str:
    return f"/v3/clusters/{http.get('/v3/clusters').json()['data'][0]['cluster_id']}"


def values(http: httpx.Client, topic: str, query: str = "", **headers: str) -> list[Any]:
    page = http.get(f"{cluster(http)}/topics/{topic}/records{query}", headers=headers).json()
    return [row["value"]["data"] for row in page["data"]]


def v3_value(value: Any) -> dict[str, Any]:
    return {"value": {"type": "AVRO", "schema": json.dumps(SCHEMA), "data": value}}


def test_the_native_form_is_the_same_record_as_the_avro_form(http: httpx.Client) -> None:
    assert produce_v2(http, "forms", NATIVE, "?logical=native").status_code == 200
    assert produce_v2(http, "forms", NATIVE, **{"Headgate-Logical": "native"}).status_code == 200
    assert produce_v2(http, "forms", AVRO).status_code == 200
    assert values(http, "forms") == [AVRO] * 3
    assert values(http, "forms", "?logical=native") == [NATIVE] * 3
    assert values(http, "forms", **{"Headgate-Logical": "native"}) == [NATIVE] * 3
    partition = http.get(
        "/topics/forms/partitions/0/records?offset=0&logical=native", headers={"Accept": V2["Content-Type"]}
    )
    assert [row["value"] for row in partition.json()] == [NATIVE] * 3


def test_every_v3_way_accepts_the_native_form(http: httpx.Client, gateway: Headgate) -> None:
    base = f"{cluster(http)}/topics/ways/records"
    produce_v2(http, "ways", NATIVE, "?logical=native")
    stream = http.post(f"{base}?logical=native", json=v3_value(NATIVE))
    assert stream.json()["error_code"] == 200
    batch = http.post(f"{base}:batch?logical=native", json={"entries": [{"id": "1", **v3_value(NATIVE)}]})
    assert len(batch.json()["successes"]) == 1, batch.text
    address = f"ws://{gateway.proxy.address}{base}:produce?logical=native"
    with connect(address) as socket:
        socket.send(json.dumps(v3_value(NATIVE)))
        assert json.loads(socket.recv(timeout=30))["error_code"] == 200
    assert values(http, "ways", "?logical=native") == [NATIVE] * 4


def test_a_consumer_instance_reads_the_native_form(http: httpx.Client) -> None:
    produce_v2(http, "instances", AVRO)
    config = {"format": "avro", "auto.offset.reset": "earliest", "logical.types": "native"}
    made = http.post("/consumers/g", json=config, headers={"Content-Type": "application/vnd.kafka.v2+json"}).json()
    path = httpx.URL(made["base_uri"]).path
    http.post(
        f"{path}/subscription",
        json={"topics": ["instances"]},
        headers={"Content-Type": "application/vnd.kafka.v2+json"},
    )
    rows: list[Any] = []
    for _ in range(60):
        rows += http.get(f"{path}/records?timeout=1000", headers={"Accept": V2["Content-Type"]}).json()
        if rows:
            break
    http.delete(path)
    assert [row["value"] for row in rows] == [NATIVE]


def test_a_value_that_does_not_fit_is_rejected_with_its_field(http: httpx.Client) -> None:
    for field, value in (("price", "9.999"), ("at", "2026-11-18T10:15:30.1234Z"), ("at", "yesterday")):
        answer = produce_v2(http, "rejected", NATIVE | {field: value}, "?logical=native")
        assert answer.status_code == 422
        assert field in answer.json()["message"]
    for query in ("?logical=java", "?other=%C3%94%F3&logical=%C3%94", "?logical=%ff&logical=%00"):
        assert produce_v2(http, "rejected", NATIVE, query).status_code == 400
    assert produce_v2(http, "rejected", AVRO, "?other=%C3%94%F3&logical=avro").status_code == 200


def test_a_decimal_that_looks_like_a_number_has_a_warning(http: httpx.Client) -> None:
    mistake = AVRO | {"price": "9.99"}
    answer = produce_v2(http, "mistakes", mistake).json()
    assert answer["offsets"][0]["error_code"] is None
    (warning,) = answer["warnings"]
    assert warning.startswith("records[0].value: price: '9.99' is stored as the bytes of this text")
    report = http.post(f"{cluster(http)}/topics/mistakes/records", json=v3_value(mistake)).json()
    assert report["error_code"] == 200
    assert "logical=native" in report["value"]["warning"]
    assert "warnings" not in produce_v2(http, "mistakes", AVRO).json()
    assert "warnings" not in produce_v2(http, "mistakes", NATIVE, "?logical=native").json()


def test_an_idempotency_key_covers_the_form(http: httpx.Client) -> None:
    text = AVRO | {"price": "1.25"}
    key = {"Idempotency-Key": "form-1"}
    assert produce_v2(http, "keyed", text, **key).status_code == 200
    repeated = produce_v2(http, "keyed", text, **key)
    assert repeated.headers["Idempotency-Replayed"] == "true"
    assert produce_v2(http, "keyed", text, "?logical=native", **key).status_code == 422
