"""Field-level encryption with a local KMS, and associations: clients in two languages with a live registry."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import Clock, FieldEncryptionExecutor
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.conftest import unavailable
from tests.live.headgate import HeadgateBroker
from tests.live.npm import SCHEMA_REGISTRY, NodeUnavailable, install, run
from tests.live.registry import RegistryProcess

SECRET = {"secret": "a secret of the tests"}
DAY_MS = 24 * 60 * 60 * 1000
USER = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string", "confluent:tags": ["PII"]}],
}
LATEST = {"auto.register.schemas": False, "use.latest.version": True}


class SettableClock(Clock):
    def __init__(self) -> None:
        self.ahead_ms = 0

    def now(self) -> int:
        return super().now() + self.ahead_ms


@pytest.fixture(scope="module")
def client(live: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    LocalKmsDriver.register()
    with SchemaRegistryClient({"url": live.url}) as client:
        yield client


@contextmanager
def rules(clock: Clock | None = None) -> Iterator[RuleRegistry]:
    """A new rule registry, without keys that another serializer or deserializer cached."""
    make_registry: Any = RuleRegistry
    registry = make_registry()
    executor: Any = FieldEncryptionExecutor(clock or Clock())
    registry.register_executor(executor)
    yield registry
    executor.close()


def parameters_of(kek: str) -> dict[str, str]:
    return {"encrypt.kek.name": kek, "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "mykey"}


def register(client: SchemaRegistryClient, subject: str, kek: str, **parameters: str) -> None:
    params = parameters_of(kek) | parameters
    rule = Rule(
        "encrypt-pii", "", RuleKind.TRANSFORM, RuleMode.WRITEREAD, "ENCRYPT", ["PII"], RuleParams(params), None, None,
        "ERROR,NONE", False,
    )  # fmt: skip
    client.register_schema(subject, Schema(json.dumps(USER), "AVRO", [], None, RuleSet(None, [rule])))


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def sent(client: SchemaRegistryClient, topic: str, clock: Clock | None = None) -> bytes:
    with rules(clock) as registry:
        serialize = AvroSerializer(client, conf=LATEST, rule_conf=SECRET, rule_registry=registry)
        payload: bytes = serialize({"id": 1, "name": "Ada Lovelace"}, value_of(topic))
    assert b"Ada" not in payload
    return payload


def received(client: SchemaRegistryClient, topic: str, payload: bytes) -> Any:
    with rules() as registry:
        return AvroDeserializer(client, rule_conf=SECRET, rule_registry=registry)(payload, value_of(topic))


@pytest.mark.parametrize("algorithm", ["AES128_GCM", "AES256_GCM", "AES256_SIV"])
def test_a_field_is_encrypted_by_the_producer_and_decrypted_by_the_consumer(
    live: RegistryProcess, client: SchemaRegistryClient, algorithm: str
) -> None:
    topic, kek = f"users-{algorithm}", f"kek-{algorithm}"
    register(client, f"{topic}-value", kek, **{"encrypt.dek.algorithm": algorithm})
    payload = sent(client, topic)
    assert received(client, topic, payload) == {"id": 1, "name": "Ada Lovelace"}
    place = f"{live.url}/dek-registry/v1/keks/{kek}"
    stored = httpx.get(place).json()
    assert (stored["kmsType"], stored["kmsKeyId"], stored["shared"]) == ("local-kms", "mykey", False)
    dek = httpx.get(f"{place}/deks/{topic}-value?algorithm={algorithm}").json()
    assert (dek["algorithm"], dek["version"]) == (algorithm, 1)
    assert "keyMaterial" not in dek


def test_the_broker_sees_the_encrypted_field_only(
    headgate_broker: HeadgateBroker, client: SchemaRegistryClient
) -> None:
    register(client, "encrypted-value", "kek-broker")
    address = {"bootstrap.servers": headgate_broker.address}
    producer = Producer(address)
    producer.produce("encrypted", sent(client, "encrypted"))
    assert producer.flush(30) == 0
    consumer = Consumer({**address, "group.id": "encrypted", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["encrypted"])
        message = consumer.poll(30)
    finally:
        consumer.close()
    assert message is not None
    payload = message.value()
    assert payload is not None
    assert b"Ada" not in payload
    assert received(client, "encrypted", payload) == {"id": 1, "name": "Ada Lovelace"}


def test_an_expired_key_is_rotated_and_old_records_stay_readable(
    live: RegistryProcess, client: SchemaRegistryClient
) -> None:
    register(client, "rotated-value", "kek-rotated", **{"encrypt.dek.expiry.days": "1"})
    clock = SettableClock()
    first = sent(client, "rotated", clock)
    clock.ahead_ms = 2 * DAY_MS
    second = sent(client, "rotated", clock)
    versions = httpx.get(f"{live.url}/dek-registry/v1/keks/kek-rotated/deks/rotated-value/versions").json()
    assert versions == [1, 2]
    for payload in (first, second):
        assert received(client, "rotated", payload) == {"id": 1, "name": "Ada Lovelace"}


def test_a_subject_of_a_context_has_its_own_key(live: RegistryProcess, client: SchemaRegistryClient) -> None:
    subject = ":.lab:users-value"
    register(client, subject, "kek-lab")
    conf = {**LATEST, "subject.name.strategy": lambda _context, _record: subject}
    with rules() as registry:
        serialize = AvroSerializer(client, conf=conf, rule_conf=SECRET, rule_registry=registry)
        payload = serialize({"id": 1, "name": "Ada Lovelace"}, value_of("users"))
    assert payload is not None
    assert b"Ada" not in payload
    assert httpx.get(f"{live.url}/dek-registry/v1/keks/kek-lab/deks").json() == [subject]


@pytest.fixture(scope="module")
def javascript_packages() -> Path:
    try:
        return install(SCHEMA_REGISTRY)
    except NodeUnavailable as error:
        unavailable(str(error))
        raise


def test_the_javascript_client_shares_keys_and_uses_associations(
    live: RegistryProcess, client: SchemaRegistryClient, javascript_packages: Path
) -> None:
    register(client, "from-python-value", "kek-both")
    register(client, "js-users-value", "kek-both")
    argument = {
        "url": live.url,
        "secret": SECRET["secret"],
        "schema": json.dumps(USER),
        "rule": {
            "name": "encrypt-pii",
            "kind": "TRANSFORM",
            "mode": "WRITEREAD",
            "type": "ENCRYPT",
            "tags": ["PII"],
            "params": parameters_of("kek-both"),
            "onFailure": "ERROR,NONE",
        },
        "received": {"topic": "from-python", "payload": b64encode(sent(client, "from-python")).decode()},
    }
    shown = run(javascript_packages, Path(__file__).with_name("javascript_client.js"), argument)
    payload = b64decode(shown["payload"])
    assert b"Grace" not in payload
    assert shown["own"] == {"id": 2, "name": "Grace Hopper"}
    assert shown["received"] == {"id": 1, "name": "Ada Lovelace"}
    assert received(client, "js-users", payload) == {"id": 2, "name": "Grace Hopper"}
    assert shown["created"]["associations"][0]["subject"] == "shared-subject"
    assert [one["resourceId"] for one in shown["found"]] == ["js-id"]
    assert shown["associated"] == client.get_latest_version("shared-subject").schema_id
    assert shown["left"] == []


def test_the_python_client_uses_associations(client: SchemaRegistryClient) -> None:
    id = client.register_schema("py-subject", Schema(json.dumps({**USER, "name": "Associated"}), "AVRO"))
    request = AssociationCreateOrUpdateRequest(
        "py-topic", "lkc-py", "py-id", "topic", [AssociationCreateOrUpdateInfo("py-subject", "value", "STRONG")]
    )
    created = client.create_association(request)
    assert created.associations is not None
    assert [one.lifecycle for one in created.associations] == ["STRONG"]
    [found] = client.get_associations_by_resource_name("py-topic", "-", "topic", ["value"])
    assert (found.subject, found.resource_id) == ("py-subject", "py-id")
    payload = AvroSerializer(client, conf=LATEST)({"id": 1, "name": "Ada"}, value_of("py-topic"))
    assert payload is not None
    assert int.from_bytes(payload[1:5], "big") == id
    client.delete_associations("py-id", cascade_lifecycle=True)
    assert "py-subject" not in client.get_subjects()
