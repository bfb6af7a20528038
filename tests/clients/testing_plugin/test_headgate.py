"""`headgate.testing` as a library: services, faults, poison payloads and assertions."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from headgate.serdes import Deserializer, Poison, Reason, RegistryClient, RegistrySettings
from headgate.testing import Headgate, PoisonPayloads, ServiceFailed, assert_topic_contains


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headgate]:
    with Headgate(tmp_path_factory.mktemp("testing")) as headgate:
        yield headgate


def produce(headgate: Headgate, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": headgate.bootstrap_servers, "acks": "all", "log_level": 0})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def test_records_survive_a_kill_and_a_restart(running: Headgate) -> None:
    produce(running, "kept", b"a", b"b", b"b")
    running.broker.kill()
    assert not running.broker.is_running
    running.broker.start()
    assert_topic_contains(running.bootstrap_servers, "kept", [b"a", b"b", b"b"])


def test_a_difference_is_named(running: Headgate) -> None:
    produce(running, "differs", b"a", b"c")
    with pytest.raises(AssertionError, match=r"missing \[b'b' x 1\], not expected \[b'c' x 1\]"):
        assert_topic_contains(running.bootstrap_servers, "differs", [b"a", b"b"], timeout_seconds=20)


def test_a_paused_service_does_not_respond(running: Headgate) -> None:
    running.registry.pause()
    with pytest.raises(httpx.TimeoutException):
        httpx.get(f"{running.registry_url}/subjects", timeout=0.2)
    running.registry.resume()
    assert httpx.get(f"{running.registry_url}/subjects", timeout=30).status_code == 200


@pytest.mark.parametrize("reason", PoisonPayloads.REASONS, ids=lambda reason: reason.name)
def test_every_poison_payload_has_its_reason(running: Headgate, reason: Reason) -> None:
    with RegistryClient(RegistrySettings(urls=(running.registry_url,))) as registry:
        outcome = Deserializer(registry).decode(PoisonPayloads(registry)(reason))
    assert isinstance(outcome, Poison)
    assert outcome.reason is reason


def test_the_good_payload_is_decoded_and_other_reasons_are_rejected(running: Headgate) -> None:
    with RegistryClient(RegistrySettings(urls=(running.registry_url,))) as registry:
        poison = PoisonPayloads(registry)
        assert not isinstance(Deserializer(registry).decode(poison.good()), Poison)
        with pytest.raises(ValueError, match="REGISTRY_UNAVAILABLE does not depend on the payload"):
            poison(Reason.REGISTRY_UNAVAILABLE)


def test_a_service_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    headgate = Headgate(tmp_path, broker_configs={"num.partitions": "none"})
    with pytest.raises(ServiceFailed, match=r"num\.partitions"), headgate:
        pass
    assert not headgate.registry.is_running


def test_a_temporary_folder_is_removed() -> None:
    with Headgate() as headgate:
        folder = headgate.folder
        assert (folder / "broker").is_dir()
    assert not folder.exists()
