"""The broker lists fewer settings than Kafka (none for controllers, replicas or TLS). The listed ones match Kafka's."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.live.headgate import HeadgateBroker
from tests.wire.golden_files import BROKER_SETTINGS, load
from tests.wire.scenarios.broker_settings import every_setting_of_the_broker
from tests.wire.transcript import differences, run_scenario

OWN_PREFIX = "headgate."

# Intended differences and their reasons.
DIFFERENT: Mapping[str, str] = {
    "fetch.max.bytes": "clients wait for the whole of an answer, and read many partitions a quarter faster this way",
    "group.coordinator.rebalance.protocols": "only the classic protocol is there",
    "listeners": "the listener is fixed while the broker runs",
    "socket.listen.backlog.size": "one thread accepts and serves, so more may have to wait for it",
}

# Settings that clients and tools look up by name, or that users change first.
EXPECTED = frozenset(
    {
        "auto.create.topics.enable",
        "compression.type",
        "connections.max.idle.ms",
        "default.replication.factor",
        "delete.topic.enable",
        "fetch.max.bytes",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.min.session.timeout.ms",
        "listeners",
        "log.cleanup.policy",
        "log.dirs",
        "log.message.timestamp.type",
        "log.retention.bytes",
        "log.retention.check.interval.ms",
        "log.retention.hours",
        "log.retention.ms",
        "log.segment.bytes",
        "max.connections",
        "message.max.bytes",
        "min.insync.replicas",
        "node.id",
        "num.partitions",
        "offset.metadata.max.bytes",
        "offsets.retention.minutes",
        "producer.id.expiration.ms",
        "socket.request.max.bytes",
    }
)


def _settings(steps: list[Any]) -> dict[str, Any]:
    return {config["name"]: config for config in steps[0]["answer"]["results"][0]["configs"]}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HeadgateBroker]:
    """A broker with the settings of the recorded Kafka. The shared broker has additional settings."""
    broker = HeadgateBroker(tmp_path, {"group.initial.rebalance.delay.ms": "0", "node.id": "1"})
    broker.start()
    yield broker
    broker.stop()


def test_every_setting_that_the_broker_lists_agrees_with_kafkas(broker: HeadgateBroker) -> None:
    kafkas = _settings(load(BROKER_SETTINGS)["every_setting_of_the_broker"])
    steps = run_scenario(broker.address, "settings", every_setting_of_the_broker)
    ours = _settings(json.loads(json.dumps(steps)))
    lines = [
        line
        for name in sorted(kafkas.keys() & ours.keys() - DIFFERENT.keys())
        for line in differences(kafkas[name], ours[name], name)
    ]
    assert not lines, "\n".join(lines)
    assert sorted(EXPECTED - ours.keys()) == []
    assert [name for name in ours if name not in kafkas and not name.startswith(OWN_PREFIX)] == []
    unneeded = [name for name in DIFFERENT if not list(differences(kafkas[name], ours[name], name))]
    assert unneeded == [], "these agree with Kafka by now"
