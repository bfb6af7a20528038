"""A schema with rules is neither written nor read as if it had none."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from headgate.proxy.api.errors import status_of
from headgate.proxy.errors import SerializationFailed
from headgate.proxy.formats import Format, SchemaChoice
from headgate.proxy.reading.payloads import Example, Payloads
from headgate.proxy.schemas import SchemaEncoders
from headgate.proxy.settings import ProxySettings, UnknownSetting
from headgate.serdes import (
    AsyncRegistryClient,
    Decoded,
    Deserializer,
    DeserializerOptions,
    Poison,
    Reason,
    RegistryClient,
    RegistrySettings,
    RegistrySource,
    RulePolicy,
    RulesNotExecuted,
    Serializer,
    SerializerOptions,
    avro_schema,
)
from headgate.serdes.framing import frame
from headgate.serdes.rules import parse_rules
from headgate.spark_udfs.driver.reader_choice import ReaderChoice
from headgate.spark_udfs.driver.writer_choice import WriterChoice
from headgate.spark_udfs.executor.encoding import EncodingError
from headgate.spark_udfs.executor.row_reading import RowReader
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas
from headgate.spark_udfs.spec.registry_options import OptionError, RegistryOptions
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry

TEXT = '{"type":"record","name":"R","fields":[{"name":"ssn","type":"string"}]}'
WIDER = '{"type":"record","name":"R","fields":[{"name":"ssn","type":["null","string"]}]}'
VALUE = {"ssn": "123"}
PAYLOAD = frame(1, b"\x06123")
ENCRYPT = {"name": "encryptPii", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD", "tags": ["PII"]}
CONDITION = {"name": "checkSsn", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "onFailure": "ERROR"}
ON_READ = {"name": "mask", "kind": "TRANSFORM", "type": "CEL_FIELD", "mode": "READ"}
UPGRADE = {"name": "rename", "kind": "TRANSFORM", "type": "JSONATA", "mode": "UPGRADE"}
STRANGE = {"name": "new", "type": "X", "mode": "SOMETIMES"}


def domain(*rules: Mapping[str, object]) -> dict[str, object]:
    return {"schema": TEXT, "ruleSet": {"domainRules": list(rules)}}


def registry(*schemas: Mapping[str, object]) -> StubRegistry:
    stub = StubRegistry()
    for schema in schemas:
        stub.add("t-value", dict(schema))
    return stub


def client(stub: StubRegistry, rules: RulePolicy = RulePolicy.FAIL) -> RegistryClient:
    return RegistryClient(RegistrySettings((ADDRESS,), rules=rules), transport=stub.transport)


WRITE_RULES = [
    pytest.param(domain(ENCRYPT), "encryptPii (ENCRYPT, WRITEREAD)", id="encryption"),
    pytest.param(domain(CONDITION), "checkSsn (CEL, WRITE)", id="condition"),
    pytest.param(domain(STRANGE), "new (X, SOMETIMES)", id="unknown-mode"),
    pytest.param(
        {"schema": TEXT, "ruleSet": {"encodingRules": [ENCRYPT]}}, "encryptPii (ENCRYPT, WRITEREAD)", id="encoding"
    ),
]
READ_RULES = [
    pytest.param(domain(ENCRYPT), "encryptPii", id="encryption"),
    pytest.param(domain(ON_READ), "mask", id="transformation"),
    pytest.param(domain(STRANGE), "new", id="unknown-mode"),
]


@pytest.mark.parametrize(("schema", "rule"), WRITE_RULES)
@pytest.mark.parametrize("options", [SerializerOptions(use_latest=True), SerializerOptions(schema_id=1)])
def test_writing_fails_and_names_the_rule(schema: dict[str, object], rule: str, options: SerializerOptions) -> None:
    with client(registry(schema)) as registry_client:
        serializer = Serializer(registry_client, None, options)
        for _ in range(2):
            with pytest.raises(RulesNotExecuted) as raised:
                serializer.serialize(VALUE, topic="t")
        assert rule in str(raised.value)
        assert "rules=ignore" in str(raised.value)


def test_rules_that_a_new_version_inherits_are_found_although_the_response_has_only_an_id() -> None:
    stub = registry(domain(ENCRYPT))
    stub.intercept = lambda request: httpx.Response(200, json={"id": 1}) if request.method == "POST" else None
    with client(stub) as registry_client, pytest.raises(RulesNotExecuted, match="encryptPii"):
        Serializer(registry_client, avro_schema(TEXT)).serialize(VALUE, topic="t")


@pytest.mark.parametrize(("schema", "rule"), READ_RULES)
def test_reading_returns_poison_that_names_the_rule(schema: dict[str, object], rule: str) -> None:
    with client(registry(schema)) as registry_client:
        outcome = Deserializer(registry_client).decode(PAYLOAD)
        assert isinstance(outcome, Poison)
        assert (outcome.reason, outcome.raw, outcome.schema_id) == (Reason.RULES_NOT_EXECUTED, PAYLOAD, 1)
        assert rule in outcome.detail
        assert RegistrySource(registry_client).writer_schema(1) is Reason.RULES_NOT_EXECUTED


@pytest.mark.parametrize(
    ("rule", "can_write", "can_read"),
    [
        (CONDITION, False, True),
        (ON_READ, True, False),
        (UPGRADE, True, True),
        ({**ENCRYPT, "disabled": True}, True, True),
    ],
)
def test_a_rule_prevents_only_its_operation(rule: dict[str, object], can_write: bool, can_read: bool) -> None:
    with client(registry(domain(rule))) as registry_client:
        serializer = Serializer(registry_client, None, SerializerOptions(schema_id=1))
        if can_write:
            assert serializer.serialize(VALUE) == PAYLOAD
        else:
            with pytest.raises(RulesNotExecuted):
                serializer.serialize(VALUE)
        assert isinstance(Deserializer(registry_client).decode(PAYLOAD), Decoded) is can_read


def test_a_migration_rule_prevents_only_reading_as_another_version() -> None:
    newer: dict[str, object] = {"schema": WIDER, "ruleSet": {"migrationRules": [UPGRADE]}}
    with client(registry({"schema": TEXT}, newer)) as registry_client:
        as_latest = Deserializer(registry_client, DeserializerOptions(reader_subject="t-value"))
        outcome = as_latest.decode(PAYLOAD)
        assert isinstance(outcome, Poison)
        assert outcome.reason is Reason.RULES_NOT_EXECUTED
        assert isinstance(as_latest.decode(frame(2, b"\x02\x06123")), Decoded)
        assert isinstance(Deserializer(registry_client).decode(PAYLOAD), Decoded)


def test_the_user_can_ignore_rules() -> None:
    with client(registry(domain(ENCRYPT, UPGRADE)), RulePolicy.IGNORE) as registry_client:
        assert Serializer(registry_client, None, SerializerOptions(schema_id=1)).serialize(VALUE) == PAYLOAD
        assert Deserializer(registry_client).decode(PAYLOAD) == Decoded(VALUE, 1)


@pytest.mark.parametrize("broken", [[], "x", {"domainRules": ["x"]}, {"domainRules": 7}])
def test_a_malformed_rule_set_does_not_count_as_no_rules(broken: Any) -> None:
    with pytest.raises(TypeError):
        parse_rules(broken)
    with client(registry({"schema": TEXT, "ruleSet": broken})) as registry_client:
        outcome = Deserializer(registry_client).decode(PAYLOAD)
        assert isinstance(outcome, Poison)
        assert outcome.reason is Reason.REGISTRY_UNAVAILABLE


@pytest.mark.parametrize(("environment", "count"), [("ALL", 1), ("CLIENT", 1), ("LATER", 1), (None, 1)])
def test_rules_run_in_clients_unless_another_environment_runs_them(environment: str | None, count: int) -> None:
    assert len(parse_rules({"domainRules": [ENCRYPT], "enableAt": environment})) == count
    for other in ("GATEWAY", "SERVER", "NONE"):
        assert parse_rules({"domainRules": [ENCRYPT], "enableAt": other}) == ()


def test_the_proxy_rejects_writes_and_explains_poison() -> None:
    async def run() -> None:
        async with AsyncRegistryClient(ADDRESS, transport=registry(domain(ENCRYPT)).transport) as registry_client:
            with pytest.raises(SerializationFailed, match="encryptPii") as raised:
                await SchemaEncoders(registry_client).find(Format.AVRO, SchemaChoice(1, None, None, "t-value"))
            assert status_of(raised.value) == (422, 42207)
            faults: dict[Any, Poison] = {}
            await Payloads(registry_client).load(1, Example(PAYLOAD, (), False), faults)
            assert faults[1].reason is Reason.RULES_NOT_EXECUTED

    asyncio.run(run())


def test_the_proxy_has_a_setting() -> None:
    assert ProxySettings.of({"rules": "ignore"}).rules == "ignore"
    with pytest.raises(UnknownSetting, match="fail or ignore"):
        ProxySettings.of({"rules": "maybe"})


def test_spark_plans_contain_the_rules() -> None:
    newer: dict[str, object] = {"schema": WIDER, "ruleSet": {"domainRules": [ENCRYPT]}}
    with client(registry({"schema": TEXT}, newer)) as registry_client:
        reader = ReaderChoice(subject="t-value", version=1).resolve(registry_client)
    writers = WriterSchemas(reader, RegistryOptions())
    rows = RowReader(reader, writers)
    assert writers.writer_schema(2) is Reason.RULES_NOT_EXECUTED
    outcome = rows.read(frame(2, b"\x02\x06123"), [])
    assert isinstance(outcome, Poison)
    assert "encryptPii" in outcome.detail
    assert isinstance(rows.read(PAYLOAD, []), Decoded)


def test_spark_rejects_to_write_with_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = registry(domain(CONDITION))
    monkeypatch.setattr(RegistryOptions, "client", lambda options: client(stub, RulePolicy(options.rules)))
    with pytest.raises(EncodingError, match="checkSsn"):
        WriterChoice("t-value").resolve(RegistryOptions())
    assert WriterChoice("t-value").resolve(RegistryOptions.from_options({"registry.rules": "ignore"}))[1] == 1
    with pytest.raises(OptionError, match="fail or ignore"):
        RegistryOptions.from_options({"registry.rules": "maybe"})
