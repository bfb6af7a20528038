"""Decompression bombs: batches that are small on the wire and huge when decompressed."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest

from tests.cases.decompression_bombs import CODECS, GZIP, ZSTD, many_records, one_huge_record
from tests.clients.proxy.conftest import RunningProxy
from tests.clients.proxy.consume.api import BINARY, JSON, Api, Instance, objects
from tests.clients.proxy.consume.test_group_streams import group_path, take
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.installation import ROOT

GROWTH_KIB_MAX = 100 * 1024
LIMIT_MIB = 8
RECORD_LIMIT_MIB = 2


class Measured:
    def __init__(self, proxy: HeadgateProxy, api: Api) -> None:
        assert proxy.process is not None
        self._status = Path(f"/proc/{proxy.process.pid}/status")
        self._before = self._peak_kib()
        self.api = api

    def grown_kib(self) -> int:
        return self._peak_kib() - self._before

    def _peak_kib(self) -> int:
        line = next(line for line in self._status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1])


@pytest.fixture(scope="module")
def measured(headgate_broker: HeadgateBroker, registry_url: str, running_proxy: RunningProxy) -> Iterator[Measured]:
    settings = {
        "fetch.batch.decompressed.bytes.max": str(LIMIT_MIB << 20),
        "fetch.record.decompressed.bytes.max": str(RECORD_LIMIT_MIB << 20),
    }
    with running_proxy(headgate_broker.address, registry_url, settings) as proxy:
        api = Api(proxy.url, headgate_broker.address, registry_url)
        yield Measured(proxy, api)
        api.client.close()


@pytest.fixture(scope="module")
def bombs(measured: Measured) -> str:
    """A topic with one decompression bomb per codec, each between two good batches of the same codec."""
    topic = measured.api.topic()
    asyncio.run(_produce(measured.api.broker, topic, [batch for codec in CODECS for batch in _around(codec)]))
    return topic


def _around(codec: int) -> list[bytes]:
    bomb = one_huge_record(codec, 900 if codec in (GZIP, ZSTD) else 16)
    return [many_records(codec, b"before"), bomb, many_records(codec, b"after")]


async def _produce(broker: str, topic: str, batches: list[bytes]) -> None:
    make: Any = AIOKafkaClient
    client = make(bootstrap_servers=broker)
    await client.bootstrap()
    try:
        await client.force_metadata_update()
        node = next(iter(client.cluster.brokers())).nodeId
        for batch in batches:
            request: Any = ProduceRequest
            answer = await client.send(
                node, request(transactional_id=None, required_acks=-1, timeout=30_000, topics=[(topic, [(0, batch)])])
            )
            ((_, ((_, code, *_),)),) = answer.topics
            assert code == 0, code
    finally:
        await client.close()


def check(rows: list[dict[str, Any]], measured: Measured) -> None:
    assert [row["offset"] for row in rows] == list(range(12))
    reasons = [row.get("poison", {}).get("reason") for row in rows]
    assert reasons == [None, "INVALID_VALUE", None] * 4
    assert "fetch.batch.decompressed.bytes.max" in rows[1]["poison"]["detail"]
    assert measured.grown_kib() < GROWTH_KIB_MAX


def test_a_read_of_one_record_at_a_time_continues_after_them(measured: Measured, bombs: str) -> None:
    rows = []
    for offset in range(12):
        page = measured.api.page(bombs, f"offset={offset}&limit=1", 0)
        rows += page["data"]
    check(rows, measured)


def test_a_read_of_all_records_continues_after_them(measured: Measured, bombs: str) -> None:
    check(measured.api.page(bombs)["data"], measured)


def test_a_consumer_instance_continues_after_them_and_commits(measured: Measured, bombs: str) -> None:
    instance: Instance = measured.api.instance(accept=BINARY, format="binary").subscribe(bombs)
    check(instance.read(12), measured)
    instance.do("POST", "/offsets")
    assert instance.committed(bombs) == 12


def test_a_group_stream_continues_after_them(measured: Measured, bombs: str) -> None:
    with measured.api.stream(group_path(measured.api.group(), bombs)) as answer:
        check(take(objects(answer), 12), measured)


@pytest.mark.parametrize("way", ["page", "instance", "group stream"])
def test_only_a_record_above_the_limit_is_poison(measured: Measured, way: str) -> None:
    topic, api = measured.api.topic(), measured.api
    batch = many_records(ZSTD, b"before", bytes((RECORD_LIMIT_MIB + 1) << 20), b"after")
    asyncio.run(_produce(api.broker, topic, [batch]))
    if way == "page":
        rows = api.page(topic)["data"]
    elif way == "instance":
        rows = api.instance(accept=BINARY, format="binary").subscribe(topic).read(3)
    else:
        with api.stream(group_path(api.group(), topic)) as answer:
            rows = take(objects(answer), 3)
    assert [(row["offset"], row["value"] is None) for row in rows] == [(0, False), (1, True), (2, False)]
    assert "fetch.record.decompressed.bytes.max" in rows[1]["poison"]["detail"]


def test_the_command_line_reports_them_and_continues(measured: Measured) -> None:
    """The limit of the command line is 128 MiB."""
    topic = measured.api.topic()
    asyncio.run(_produce(measured.api.broker, topic, _around(GZIP)))
    command = [
        sys.executable,
        "-m",
        "headgate",
        "consume",
        topic,
        "-e",
        "--bootstrap-server",
        measured.api.broker,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines() == ["before", "after"]
    assert f"{topic}-0 offset 1 skipped: the batch at offset 1 decompresses to more than" in done.stderr


def test_the_log_of_idempotent_requests_continues_after_them(measured: Measured) -> None:
    api, topic = measured.api, measured.api.topic()

    def post(key: str) -> int:
        headers = {"content-type": JSON, "idempotency-key": key}
        return api.client.post(f"/topics/{topic}", json={"records": [{"value": 1}]}, headers=headers).status_code

    assert post("first") == 200
    asyncio.run(_produce(api.broker, "__headgate_idempotency", [one_huge_record(GZIP, 900)]))
    assert [post("second"), post("first"), post("second")] == [200, 200, 200]
    assert api.page(topic)["data"][-1]["offset"] == 1
    assert measured.grown_kib() < GROWTH_KIB_MAX
