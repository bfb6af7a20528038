"""Conversion between config text and typed values, with the error messages of Kafka 4.3.1."""

import pytest

from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import (
    VALUE_LENGTH_MAX,
    ConfigType,
    InvalidConfig,
    Value,
    parse,
    text_of,
)


@pytest.mark.parametrize(
    ("config_type", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "False", False),
        (ConfigType.INT, "+5", 5),
        (ConfigType.INT, "-2147483648", -(2**31)),
        (ConfigType.INT, "2147483647", 2**31 - 1),
        (ConfigType.SHORT, "-32768", -32768),
        (ConfigType.SHORT, "32767", 32767),
        (ConfigType.LONG, "-9223372036854775808", -(2**63)),
        (ConfigType.LONG, " 9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "1e-2", 0.01),
        (ConfigType.DOUBLE, ".5f", 0.5),
        (ConfigType.LIST, " compact , delete ", ("compact", "delete")),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "a,", ("a", "")),
        (ConfigType.STRING, " gzip ", "gzip"),
    ],
)
def test_text_is_parsed_to_its_value(config_type: ConfigType, text: str, value: Value) -> None:
    assert parse("name", config_type, text) == value


@pytest.mark.parametrize(
    ("config_type", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.BOOLEAN, ""),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "-2147483649"),
        (ConfigType.SHORT, "-32769"),
        (ConfigType.LONG, "-9223372036854775809"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, "1e3"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, ""),
        (ConfigType.SHORT, "32768"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, "9" * 8000),
        (ConfigType.LONG, "x" * 100_000),
        (ConfigType.DOUBLE, "half"),
        (ConfigType.DOUBLE, "NaN"),
        (ConfigType.DOUBLE, "1.5.2"),
    ],
)
def test_invalid_text_is_rejected(config_type: ConfigType, text: str) -> None:
    with pytest.raises(InvalidConfig):
        parse("name", config_type, text)


def test_the_length_of_a_value_is_limited() -> None:
    longest = "x" * VALUE_LENGTH_MAX
    assert parse("name", ConfigType.STRING, longest) == longest
    with pytest.raises(InvalidConfig, match="longer than"):
        parse("name", ConfigType.STRING, longest + "x")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.0, "0.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (1e-5, "1.0E-5"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.5e7, "1.5E7"),
        (-1.25e7, "-1.25E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (("a", "b"), "a,b"),
        ((), ""),
        (None, None),
        (-1, "-1"),
    ],
)
def test_values_are_written_as_java_writes_them(value: Value, text: str | None) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-5", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        ("segment.bytes", "10", "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"),
        (
            "cleanup.policy",
            "compact,foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "1.5",
            "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "leader.replication.throttled.replicas",
            "0:1,x",
            "Invalid value [0:1, x] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
    ],
)
def test_a_value_that_will_not_do_is_named_in_kafkas_words(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        TOPIC_CONFIGS[name].parse(text)
    assert str(caught.value) == message
