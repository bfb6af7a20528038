"""Several workers: requests are forwarded to the owner of the consumer, and only to configured URLs."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from headgate.proxy.consumers.ownership import Ownership
from tests.clients.proxy.consume.api import JSON, V2, Api, objects
from tests.clients.proxy.error_responses import error_of
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.ports import free_port


class Workers:
    """Two running workers. Their list also contains a third worker that is not running."""

    def __init__(self, apis: list[Api], urls: list[str]) -> None:
        self.apis = apis
        self.urls = urls

    def name_owned_by(self, url: str, group: str) -> str:
        ownership = Ownership(url, tuple(self.urls))
        return next(name for name in map(str, range(1000)) if ownership.elsewhere(group, name) is None)


@pytest.fixture(scope="module")
def workers(headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    ports = [free_port() for _ in range(3)]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    proxies = []
    for port, url in zip(ports[:2], urls, strict=False):
        settings = {"worker.url": url, "worker.urls": ",".join(urls), "access.control.allow.origin": "*"}
        proxy = HeadgateProxy(tmp_path_factory.mktemp("worker"), headgate_broker.address, settings=settings)
        proxy.port = port
        proxy.start()
        proxies.append(proxy)
    apis = [Api(proxy.url, headgate_broker.address, "") for proxy in proxies]
    yield Workers(apis, urls)
    for api, proxy in zip(apis, proxies, strict=True):
        api.client.close()
        proxy.stop()


@pytest.mark.parametrize("owner", [0, 1])
def test_every_worker_serves_every_instance(workers: Workers, owner: int) -> None:
    first, second = workers.apis
    topic, group = first.topic(), f"{first.group()}/100%"
    first.produce(topic, "x")
    name = workers.name_owned_by(workers.urls[owner], group)
    body = {"name": name, "format": "json", "auto.offset.reset": "earliest"}
    created = first.client.post(f"/consumers/{quote(group, safe='')}", json=body, headers={"content-type": V2})
    path = f"/consumers/{quote(group, safe='')}/instances/{name}"
    # Links point to the worker that received the request, not to the owner of the instance.
    assert created.json()["base_uri"] == first.url + path
    partitions = {"partitions": [{"topic": topic, "partition": 0}]}
    for api in (second, first):
        assigned = api.client.post(f"{path}/assignments", json=partitions, headers={"content-type": V2})
        assert assigned.status_code == 204
    read = second.client.get(f"{path}/records?timeout=5000", headers={"accept": JSON})
    assert read.status_code == 200, read.text
    assert [row["value"] for row in read.json()] == ["x"]
    assert read.headers["x-headgate-replay"] == "1"
    for api in (first, second):
        # Only the worker that received the request adds CORS headers, even if another worker handles it.
        told = api.client.get(f"{path}/subscription", headers={"origin": "https://a.example"})
        assert told.headers.get_list("access-control-allow-origin") == ["*"]
        assert len(told.headers.get_list("date")) == 1
        with httpx.Client() as plain:
            plain.headers.clear()
            bare = plain.get(api.url + f"{path}/subscription")
        assert "content-encoding" not in bare.headers
    again = second.client.post(f"/consumers/{quote(group, safe='')}", json=body, headers={"content-type": V2})
    assert error_of(again) == (409, 40902)
    assert first.client.delete(path).status_code == 204
    assert error_of(second.client.get(f"{path}/records")) == (404, 40403)


def test_an_unavailable_owner_is_503(workers: Workers) -> None:
    group = "orphans"
    name = workers.name_owned_by(workers.urls[2], group)
    for api in workers.apis:
        assert error_of(api.client.post(f"/consumers/{group}", json={"name": name})) == (503, 50302)
        assert error_of(api.client.get(f"/consumers/{group}/instances/{name}/records")) == (503, 50302)


def test_unnamed_instances_belong_to_the_worker_that_created_them(workers: Workers) -> None:
    first, second = workers.apis
    for _ in range(5):
        created = first.client.post(f"/consumers/{first.group()}", json={"format": "json"}).json()
        path = created["base_uri"].removeprefix(first.url)
        assert second.client.get(f"{path}/subscription").json() == {"topics": []}


def test_a_forwarded_request_is_not_forwarded_again(workers: Workers) -> None:
    headers = {"x-headgate-forwarded": "1"}
    for number in range(6):
        for api in workers.apis:
            answer = api.client.get(f"/consumers/g/instances/loop-{number}/records", headers=headers)
            assert error_of(answer) == (404, 40403)


def test_another_worker_forwards_an_acknowledgement(workers: Workers) -> None:
    first, second = workers.apis
    topic, group = first.topic(), first.group()
    first.produce(topic, 1)
    with first.stream(f"consumer-groups/{group}/records?topics={topic}") as answer:
        rows = objects(answer)
        acks = next(rows)["open"]["acks"].replace(first.url, second.url)
        token = next(row for row in rows if "ack" in row)["ack"]
        told = httpx.post(acks, json={"ack": token}, timeout=30)
        assert told.json()["acknowledged"] == 1
