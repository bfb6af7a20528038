"""Broker settings, and the topic settings derived from them."""

import typing
from collections.abc import Mapping

import pytest

from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.configs.broker_definitions import BROKER_CONFIGS
from headgate.broker.state.configs.definition import Definition
from headgate.broker.state.configs.effective import check_topic_overrides, effective_topic_values
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import ConfigType, InvalidConfig
from headgate.broker.state.settings import BrokerSettings, Scope

PYTHON_TYPES: dict[ConfigType, object] = {
    ConfigType.BOOLEAN: bool,
    ConfigType.INT: int,
    ConfigType.SHORT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.STRING: str,
    ConfigType.LIST: tuple[str, ...],
}


def annotated_type(definition: Definition) -> object:
    python_type = PYTHON_TYPES[definition.type]
    return python_type if definition.default is not None else python_type | None  # type: ignore[operator]  # types


@pytest.mark.parametrize(("holder", "definitions"), [(TopicSettings, TOPIC_CONFIGS), (BrokerSettings, BROKER_CONFIGS)])
def test_typed_attributes_are_those_of_the_definitions(holder: type, definitions: Mapping[str, Definition]) -> None:
    by_attribute = {definition.attribute: definition for definition in definitions.values()}
    derived = {"is_compacted", "deletes_old_segments", "uses_log_append_time"}
    hints = {name: hint for name, hint in typing.get_type_hints(holder).items() if name not in derived}
    assert hints
    for name, hint in hints.items():
        assert hint == annotated_type(by_attribute[name]), name


def test_every_broker_name_that_a_topic_config_follows_is_defined() -> None:
    for definition in TOPIC_CONFIGS.values():
        assert set(definition.broker_names) <= set(BROKER_CONFIGS)


@pytest.mark.parametrize("definitions", [TOPIC_CONFIGS, BROKER_CONFIGS])
def test_every_default_is_valid_and_every_config_is_documented(definitions: Mapping[str, Definition]) -> None:
    for definition in definitions.values():
        assert definition.documentation.endswith("."), definition.name
        if definition.default is not None and definition.check is not None:
            definition.check(definition.name, definition.default)


def test_a_topics_own_value_wins_over_the_brokers_and_that_over_the_default() -> None:
    settings = BrokerSettings({"log.segment.bytes": "2000000"})
    assert BrokerSettings().topic_settings({}).segment_bytes == 1_073_741_824
    assert settings.topic_settings({}).segment_bytes == 2_000_000
    assert settings.topic_settings({"segment.bytes": " 3000000 "}).segment_bytes == 3_000_000


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "5"}, 5),
    ],
)
def test_the_finest_retention_that_is_set_wins(static: dict[str, str], retention_ms: int) -> None:
    assert BrokerSettings(static).topic_settings({}).retention_ms == retention_ms


@pytest.mark.parametrize(
    ("static", "segment_ms", "jitter_ms"),
    [
        ({}, 604_800_000, 0),
        ({"log.roll.hours": "2", "log.roll.jitter.hours": "3"}, 7_200_000, 10_800_000),
        ({"log.roll.hours": "2", "log.roll.ms": "7", "log.roll.jitter.ms": "8"}, 7, 8),
    ],
)
def test_the_finest_roll_time_that_is_set_wins(static: dict[str, str], segment_ms: int, jitter_ms: int) -> None:
    values = effective_topic_values(BrokerSettings(static).values, {})
    assert (values["segment.ms"], values["segment.jitter.ms"]) == (segment_ms, jitter_ms)


def test_a_topic_knows_what_its_cleanup_policy_and_timestamp_type_mean() -> None:
    settings = BrokerSettings().topic_settings({"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
    assert (settings.is_compacted, settings.deletes_old_segments, settings.uses_log_append_time) == (True, False, True)
    kept = BrokerSettings().topic_settings({"cleanup.policy": ""})
    assert (kept.is_compacted, kept.deletes_old_segments) == (False, False)


def test_the_internal_segment_size_has_no_lower_bound() -> None:
    assert BrokerSettings().topic_settings({"internal.segment.bytes": "100"}).segment_bytes == 100


def test_an_unknown_name_or_a_bad_value_stops_the_start() -> None:
    with pytest.raises(InvalidConfig, match=r"Unknown broker config name: log\.retention\.seconds"):
        BrokerSettings({"log.retention.seconds": "5"})
    with pytest.raises(InvalidConfig, match=r"num\.partitions"):
        BrokerSettings({"num.partitions": "0"})


@pytest.mark.parametrize(
    "listener", ["host:9092", "PLAINTEXT://host", "PLAINTEXT://host:x", "PLAINTEXT://host:65536", "x"]
)
def test_an_address_that_is_none_stops_the_start(listener: str) -> None:
    with pytest.raises(InvalidConfig):
        BrokerSettings({"advertised.listeners": listener})


@pytest.mark.parametrize("listener", ["PLAINTEXT://host:9092", "PLAINTEXT://[::1]:9092", "OUTSIDE://:0", "A://h:65535"])
def test_addresses_are_accepted(listener: str) -> None:
    assert BrokerSettings({"advertised.listeners": listener}).advertised_listeners == (listener,)


def test_node_id_and_broker_id_name_the_same_thing() -> None:
    assert BrokerSettings({"broker.id": "7"}).node_id == 7
    assert BrokerSettings({"node.id": "8"}).broker_id == 8
    with pytest.raises(InvalidConfig):
        BrokerSettings({"node.id": "1", "broker.id": "2"})


class RecordingJournal:
    def __init__(self, *, fails: bool = False) -> None:
        self.saved: list[tuple[Scope, dict[str, str]]] = []
        self.fails = fails

    def save_broker_overrides(self, scope: Scope, overrides: Mapping[str, str]) -> None:
        if self.fails:
            raise StorageError("no room")
        self.saved.append((scope, dict(overrides)))


def test_a_dynamic_change_is_saved_and_takes_effect_at_once() -> None:
    journal = RecordingJournal()
    settings = BrokerSettings({"log.retention.ms": "1000"})
    changes: list[int] = []
    for scope, overrides in (
        (Scope.ALL_BROKERS, {"log.retention.ms": "2000"}),
        (Scope.THIS_BROKER, {"log.retention.ms": "3000"}),
        (Scope.THIS_BROKER, {}),
        (Scope.ALL_BROKERS, {}),
    ):
        settings.alter(scope, overrides, journal.save_broker_overrides)
        changes.append(settings.topic_settings({}).retention_ms)
    assert changes == [2000, 3000, 2000, 1000]
    assert journal.saved[1] == (Scope.THIS_BROKER, {"log.retention.ms": "3000"})


def test_a_dynamic_change_that_cannot_be_saved_changes_nothing() -> None:
    settings = BrokerSettings()
    journal = RecordingJournal(fails=True)
    with pytest.raises(StorageError):
        settings.alter(Scope.THIS_BROKER, {"message.max.bytes": "5"}, journal.save_broker_overrides)
    assert settings.message_max_bytes == 1_048_588


@pytest.mark.parametrize("overrides", [{"node.id": "2"}, {"message.max.bytes": "x"}, {"nobody.knows": "1"}])
def test_static_configs_are_rejected_and_not_saved(overrides: dict[str, str]) -> None:
    journal = RecordingJournal()
    settings = BrokerSettings()
    with pytest.raises(InvalidConfig):
        settings.alter(Scope.THIS_BROKER, overrides, journal.save_broker_overrides)
    assert journal.saved == []


def test_contradicting_compaction_lags_are_refused_from_clients_but_lived_with() -> None:
    settings = BrokerSettings({"log.cleaner.min.compaction.lag.ms": "100"})
    overrides = {"max.compaction.lag.ms": "50"}
    with pytest.raises(InvalidConfig, match=r"min\.compaction\.lag\.ms \(100\) > max\.compaction\.lag\.ms \(50\)"):
        check_topic_overrides(settings.values, overrides)
    assert settings.topic_settings(overrides).max_compaction_lag_ms == 50
    # Equal lags do not contradict each other.
    check_topic_overrides(settings.values, {"max.compaction.lag.ms": "100"})
