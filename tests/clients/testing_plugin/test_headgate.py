"""`headgate.testing` as a library: services, faults, poison payloads and assertions."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from headgate.serdes import Deserializer, Poison, Reason, RegistryClient, RegistrySettings
from headgate.testing import Headgate, PoisonPayloads, ServiceFailed, assert_topic_contains
from headgate.testing.faults import FAILABLE
from tests.wire.entities import Plain
from tests.wire.raw_client import RawConnection


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


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Headgate]:
    with Headgate(tmp_path_factory.mktemp("faulty"), inject_faults=True) as headgate:
        yield headgate


def produce_errors(headgate: Headgate, topic: str, value: bytes, **options: object) -> list[str | None]:
    """The error of each attempt to produce; None if it succeeded."""
    errors: list[str | None] = []
    config = {"bootstrap.servers": headgate.bootstrap_servers, "acks": "all", "log_level": 0, **options}
    producer = Producer(config)
    producer.produce(topic, value, on_delivery=lambda error, _: errors.append(None if error is None else error.name()))
    assert producer.flush(60) == 0
    return errors


def test_error_codes_of_the_next_requests(faulty: Headgate) -> None:
    produce(faulty, "failing", b"first")
    faulty.faults.fail_requests("Produce", "TOPIC_AUTHORIZATION_FAILED", count=2)
    for _ in range(2):
        assert produce_errors(faulty, "failing", b"never stored") == ["TOPIC_AUTHORIZATION_FAILED"]
    # A producer retries retriable errors.
    faulty.faults.fail_requests("Produce", "NOT_ENOUGH_REPLICAS", count=3)
    assert produce_errors(faulty, "failing", b"second", **{"retry.backoff.ms": 1}) == [None]
    assert_topic_contains(faulty.bootstrap_servers, "failing", [b"first", b"second"])


@pytest.mark.parametrize("api", [api for api in FAILABLE if api != "Produce"])
def test_every_failable_api_returns_the_error_code(faulty: Headgate, api: str) -> None:
    entity = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api).lower()
    produce(faulty, "probe", b"x")
    bodies: dict[str, Plain] = {
        "Fetch": {"topics": [{"topic": "probe", "partitions": [{"partition": 0, "partition_max_bytes": 100}]}]},
        "ListOffsets": {"topics": [{"name": "probe", "partitions": [{"partition_index": 0, "timestamp": -1}]}]},
        "OffsetCommit": {"topics": [{"name": "probe", "partitions": [{"partition_index": 0}]}]},
        "CreateTopics": {"topics": [{"name": "new", "num_partitions": 1, "replication_factor": 1}], "timeout": 1000},
    }
    faulty.faults.fail_requests(api, "CLUSTER_AUTHORIZATION_FAILED")
    version = {"Fetch": 11, "ListOffsets": 5, "OffsetCommit": 7, "CreateTopics": 5}.get(api, 4)
    with RawConnection(faulty.bootstrap_servers) as client:
        answer = client.ask(entity, version, bodies.get(api, {}))
    assert "cluster_authorization_failed" in json.dumps(answer, default=str).lower()


def test_a_full_disk_rejects_records_until_there_is_space(faulty: Headgate) -> None:
    produce(faulty, "full", b"before")
    with faulty.faults.full_disk():
        (error,) = produce_errors(faulty, "full", b"not stored", **{"message.timeout.ms": 1500})
        assert error is not None
    produce(faulty, "full", b"after")
    assert_topic_contains(faulty.bootstrap_servers, "full", [b"before", b"after"])


def test_a_slow_fsync_delays_the_acknowledgement(faulty: Headgate) -> None:
    produce(faulty, "slow", b"before")
    with faulty.faults.slow_fsync(0.5):
        started = time.monotonic()
        produce(faulty, "slow", b"later")
        assert time.monotonic() - started >= 0.5
    assert_topic_contains(faulty.bootstrap_servers, "slow", [b"before", b"later"])


def test_unknown_faults_are_rejected(faulty: Headgate, running: Headgate) -> None:
    with pytest.raises(ValueError, match="Metadata cannot fail; use one of Produce"):
        faulty.faults.fail_requests("Metadata", "UNKNOWN_SERVER_ERROR")
    with pytest.raises(ValueError, match="NO_SUCH_CODE is not an error code"):
        faulty.faults.fail_requests("Produce", "NO_SUCH_CODE")
    with pytest.raises(RuntimeError, match="inject_faults=True"):
        _ = running.faults
