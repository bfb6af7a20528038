"""`/metrics` of the registry and the proxy, as Prometheus reads it."""

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from headgate.testing import Headgate


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headgate]:
    with Headgate(tmp_path_factory.mktemp("metrics")) as headgate:
        yield headgate


def value(url: str, name: str, **labels: str) -> float:
    answer = httpx.get(f"{url}/metrics", timeout=30)
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    found = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in found if labels.items() <= sample.labels.items())


def test_the_registry_counts_responses(gateway: Headgate) -> None:
    for _ in range(3):
        httpx.get(f"{gateway.registry_url}/subjects/missing/versions", timeout=30)
    assert value(gateway.registry_url, "headgate_http_requests_total", status="404", method="GET") == 3
    assert httpx.get(gateway.registry_url, headers={"Host": "evil.example"}, timeout=30).status_code == 421
    assert value(gateway.registry_url, "headgate_http_refusals_total", status="421") == 1
    assert value(gateway.registry_url, "process_resident_memory_bytes") > 0


def test_the_proxy_counts_requests_and_poison(gateway: Headgate) -> None:
    media = {"Content-Type": "application/vnd.kafka.binary.v2+json"}
    body = {"records": [{"value": "AAAP//8C"}, {"value": "aGk="}]}
    assert httpx.post(f"{gateway.proxy_url}/topics/poisoned", json=body, headers=media, timeout=60).status_code == 200
    cluster = httpx.get(f"{gateway.proxy_url}/v3/clusters", timeout=30).json()["data"][0]["cluster_id"]
    page = httpx.get(f"{gateway.proxy_url}/v3/clusters/{cluster}/topics/poisoned/records", timeout=60).json()
    assert ["poison" in row for row in page["data"]] == [True, False]
    assert value(gateway.proxy_url, "headgate_poison_records_total", reason="UNKNOWN_SCHEMA") == 1
    assert value(gateway.proxy_url, "headgate_http_requests_total", method="POST", status="200") == 1
    assert value(gateway.proxy_url, "headgate_http_requests_in_flight") == 0
