"""The REST proxy against Apache Kafka with TLS and SASL."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.live.headgate_proxy import HeadgateProxy
from tests.live.secured_kafka import PASSWORD, SecuredKafka

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

V2 = {"content-type": "application/vnd.kafka.json.v2+json", "accept": "application/vnd.kafka.v2+json"}
V2_RECORDS = {"accept": "application/vnd.kafka.json.v2+json"}
V2_PLAIN = {"content-type": "application/vnd.kafka.v2+json", "accept": "application/vnd.kafka.v2+json"}


@contextmanager
def proxy(secured: SecuredKafka, protocol: str, settings: dict[str, str], folder: Path) -> Iterator[httpx.Client]:
    running = HeadgateProxy(folder, secured.address(protocol), settings=settings)
    running.start()
    try:
        with httpx.Client(base_url=running.url, timeout=60) as http:
            yield http
    finally:
        code = running.stop()
    assert code == 0, running.process.tail() if running.process else ""


@pytest.mark.parametrize(("protocol", "mechanism"), [("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-256"), ("SSL", "")])
def test_admin_produce_and_consume(secured_kafka: SecuredKafka, protocol: str, mechanism: str, tmp_path: Path) -> None:
    config = secured_kafka.config_file(f"proxy{protocol}{mechanism}", secured_kafka.properties(protocol, mechanism))
    topic, group = f"proxy-{protocol}-{mechanism}".lower(), f"g-{protocol}-{mechanism}".lower()
    with proxy(secured_kafka, protocol, {"kafka.config": str(config)}, tmp_path) as http:
        cluster = http.get("/v3/clusters").json()["data"][0]["cluster_id"]
        created = http.post(f"/v3/clusters/{cluster}/topics", json={"topic_name": topic, "partitions_count": 1})
        assert created.status_code == 201, created.text
        sent = http.post(f"/topics/{topic}", json={"records": [{"value": "one"}, {"value": "two"}]}, headers=V2)
        assert [row["offset"] for row in sent.json()["offsets"]] == [0, 1], sent.text
        keyed = {"idempotency-key": "k", **V2}
        for _ in range(2):
            once = http.post(f"/topics/{topic}", json={"records": [{"value": "three"}]}, headers=keyed)
            assert [row["offset"] for row in once.json()["offsets"]] == [2], once.text
        read = http.get(f"/v3/clusters/{cluster}/topics/{topic}/partitions/0/records?offset=0")
        assert read.status_code == 200, read.text
        instance = {"name": "i", "format": "json", "auto.offset.reset": "earliest"}
        base = http.post(f"/consumers/{group}", json=instance, headers=V2_PLAIN).json()["base_uri"]
        http.post(f"{base}/subscription", json={"topics": [topic]}, headers=V2_PLAIN).raise_for_status()
        values: list[str] = []
        while len(values) < 3:
            answer = http.get(f"{base}/records?timeout=5000", headers=V2_RECORDS).raise_for_status()
            values += [row["value"] for row in answer.json()]
        assert values == ["one", "two", "three"]
        http.delete(base, headers=V2_PLAIN).raise_for_status()


def test_settings_override_the_file_and_errors_name_the_cause(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    config = secured_kafka.config_file("proxy-wrong", secured_kafka.properties("SASL_SSL", "PLAIN", "wrong"))
    settings = {"kafka.config": str(config)}
    with proxy(secured_kafka, "SASL_SSL", settings, tmp_path / "wrong") as http:
        refused = http.get("/v3/clusters")
        assert refused.status_code == 401
        assert "rejects user 'reader'" in refused.json()["message"]
        refused = http.post("/topics/t", json={"records": [{"value": 1}]}, headers=V2)
        assert (refused.status_code, "sasl.password" in refused.text) == (401, True), refused.text
    with proxy(secured_kafka, "SASL_SSL", settings | {"sasl.password": PASSWORD}, tmp_path / "right") as http:
        assert http.get("/v3/clusters").status_code == 200
    with proxy(secured_kafka, "SASL_SSL", {}, tmp_path / "plain") as http:
        unavailable = http.get("/v3/clusters")
        assert unavailable.status_code == 503
        assert "Set security.protocol to SSL or SASL_SSL" in unavailable.json()["message"]


def test_invalid_settings_end_the_proxy(tmp_path: Path) -> None:
    import subprocess

    for setting, text in (("security.protocol=TLS", "security.protocol"), ("kafka.config=missing", "cannot read")):
        command = [sys.executable, "-m", "headgate.proxy", "--set", setting]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, text in done.stderr) == (2, True), done.stderr
