"""Every acknowledged record is stored exactly once, at its acknowledged offset.

The workloads use each way to produce, alone and mixed, with and without kills.
`python -m tests.history` runs longer workloads against Headgate or Apache Kafka.
"""

import secrets
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import BROKER_SETTINGS
from tests.history.producers import WAYS
from tests.history.workload import Outcome, Workload, kill_and_restart, run
from tests.live.apache_kafka import SHORT_LIVED, KafkaNode
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy

SHOWN_VIOLATIONS = 10
MIXED = tuple(WAYS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    broker = HeadgateBroker(tmp_path_factory.mktemp("broker"), BROKER_SETTINGS)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, broker: HeadgateBroker) -> Iterator[HeadgateProxy]:
    proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), broker.address)
    proxy.start()
    yield proxy
    proxy.stop()


def check(outcome: Outcome) -> None:
    assert not outcome.violations, "\n".join([f"{len(outcome.violations)}:", *outcome.violations[:SHOWN_VIOLATIONS]])
    assert not outcome.unfinished_keys, "a key never got its answer"
    assert outcome.acknowledged, "nothing was acknowledged"


def topic() -> str:
    return f"history-{secrets.token_hex(4)}"


@pytest.mark.parametrize(
    ("ways", "connections", "requests", "partitions"),
    [
        *(pytest.param((way,), 1, 8, 1, id=f"{way}-1") for way in WAYS),
        *(pytest.param((way,), 20, 80, 1, id=f"{way}-20") for way in WAYS),
        pytest.param(("v2", "v2-keyed"), 40, 200, 1, id="keyed-and-unkeyed-40"),
        pytest.param(MIXED, 200, 400, 3, id="mixed-200"),
    ],
)
def test_acknowledged_records_are_stored_once(
    ways: Sequence[str], connections: int, requests: int, partitions: int, broker: HeadgateBroker, proxy: HeadgateProxy
) -> None:
    workload = Workload(topic(), ways, connections, requests, partitions)
    outcome = run(workload, proxy.url, broker.address)
    check(outcome)
    assert outcome.history.acknowledged.keys() == outcome.history.sent, "a healthy broker takes every record"


def test_kills_lose_and_repeat_nothing(broker: HeadgateBroker, proxy: HeadgateProxy) -> None:
    kill_proxy, kill_broker = partial(kill_and_restart, proxy), partial(kill_and_restart, broker)
    disturbances = {0.2: kill_proxy, 0.4: kill_broker, 0.6: kill_proxy, 0.8: kill_broker}
    check(run(Workload(topic(), MIXED, 50, 500, 2, disturbances), proxy.url, broker.address))


@pytest.mark.kafka
def test_apache_kafka_behind_the_proxy_loses_and_repeats_nothing(java_tools: None, tmp_path: Path) -> None:
    kafka = KafkaNode(tmp_path / "kafka", flags=SHORT_LIVED)
    kafka.start()
    proxy = HeadgateProxy(tmp_path / "proxy", kafka.address)
    proxy.start()
    disturbances = {0.4: partial(kill_and_restart, proxy), 0.6: partial(kill_and_restart, kafka)}
    check(run(Workload(topic(), MIXED, 30, 300, 2, disturbances), proxy.url, kafka.address))
    proxy.stop()
    kafka.stop()
