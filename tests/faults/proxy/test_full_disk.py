"""A broker with a full disk behind the proxy.

Each record gets its own result. Reads continue. Writes resume when space is available.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.proxy.consume.api import JSON, Api
from tests.clients.proxy.error_responses import error_of
from tests.conftest import BROKER_SETTINGS
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

# Short timeouts, so that the tests do not wait long for failed requests.
SETTINGS = {"produce.timeout.ms": "1500", "kafka.request.timeout.ms": "2000"}
LARGE = "x" * 100_000
RETRIABLE = 50003


@dataclass
class Small:
    """A broker on a small disk, with a proxy in front of it."""

    broker: HeadgateBroker
    api: Api
    ballast: Path

    def fill(self) -> None:
        """Fill the disk to the last page."""
        with self.ballast.open("ab", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def post(self, topic: str, *records: dict[str, Any], **headers: str) -> httpx.Response:
        fields = {"content-type": JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.api.client.post(f"/topics/{topic}", content=json.dumps({"records": records}), headers=fields)

    def kept(self, topic: str) -> list[str]:
        return [row["value"]["data"] for row in self.api.lines(topic)]


@pytest.fixture
def small(small_disk: Path, tmp_path: Path) -> Iterator[Small]:
    broker = HeadgateBroker(small_disk, BROKER_SETTINGS)
    broker.start()
    proxy = HeadgateProxy(tmp_path / "proxy", broker.address, settings=SETTINGS)
    proxy.start()
    api = Api(proxy.url, broker.address, "")
    yield Small(broker, api, small_disk / "ballast")
    api.client.close()
    assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""
    broker.stop()


def test_each_record_has_its_answer_and_reads_go_on(small: Small) -> None:
    api, topic, group = small.api, small.api.topic(partitions=2), small.api.group()
    assert small.post(topic, {"value": "before", "partition": 0}).json()["offsets"][0]["offset"] == 0
    instance = api.instance(group, auto_commit_enable="false").subscribe(topic)
    assert [row["value"] for row in instance.read(1)] == ["before"]
    small.fill()

    refused = small.post(topic, {"value": LARGE, "partition": 1}, {"value": LARGE, "partition": 1})
    assert refused.status_code == 200, refused.text
    for row in refused.json()["offsets"]:
        assert (row["partition"], row["offset"], row["error_code"]) == (None, None, RETRIABLE)
        assert "disk, which may be full" in row["error"]
    entries = [{"id": str(number), "value": {"type": "STRING", "data": LARGE}} for number in range(2)]
    batch = api.client.post(f"{api.base}/topics/{topic}/records:batch", json={"entries": entries})
    assert batch.status_code == 207
    assert [row["error_code"] for row in batch.json()["failures"]] == [RETRIABLE] * 2
    assert batch.json()["successes"] == []
    record = {"value": {"type": "STRING", "data": LARGE}}
    stream = api.client.post(f"{api.base}/topics/{topic}/records", json=record)
    assert (stream.status_code, stream.json()["error_code"]) == (200, RETRIABLE)
    keyed = small.post(topic, {"value": LARGE, "partition": 1}, idempotency_key="once")
    assert error_of(keyed) == (500, RETRIABLE), keyed.text

    assert small.kept(topic) == ["before"]
    assert [row["value"] for row in api.instance(accept=JSON).assign(topic, 0).read(1)] == ["before"]
    assert api.client.get("/topics").status_code == 200

    small.ballast.unlink()
    again = small.post(topic, {"value": LARGE, "partition": 1}, idempotency_key="once")
    assert [row["error_code"] for row in again.json()["offsets"]] == [None], again.text
    assert small.post(topic, {"value": "after", "partition": 0}).json()["offsets"][0]["offset"] == 1
    assert sorted(small.kept(topic)) == ["after", "before", LARGE]
    instance.do("POST", "/offsets")
    assert instance.committed(topic) == 1
    assert len(instance.read(2)) == 2


def test_topic_creations_and_commits_on_a_full_disk_fail_with_a_code(small: Small) -> None:
    api, topic = small.api, small.api.topic()
    small.post(topic, {"value": 1})
    instance = api.instance(auto_commit_enable="false").subscribe(topic)
    instance.read(1)
    small.fill()
    for number in range(40):
        body = {"topic_name": f"more-{number}", "partitions_count": 5}
        made = api.client.post(f"{api.base}/topics", json=body)
        if made.status_code != 201:
            assert error_of(made) in ((500, 50002), (500, 50003)), made.text
            break
        committed = instance.ask("POST", "/offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]})
        assert committed.status_code in (200, 500), committed.text
    else:
        pytest.fail("a full disk took 200 partitions")
    small.ballast.unlink()
    instance.do("POST", "/offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]})
    assert instance.committed(topic) == 1
    assert api.client.post(f"{api.base}/topics", json={"topic_name": "room-again"}).status_code == 201
