"""The effective configs of a topic: its override, else the broker's value, else the default.

`TopicSettings` is computed once per change, so that Produce and Fetch read plain attributes.
"""

from collections.abc import Mapping

from headgate.broker.log.topic_settings import TopicSettings
from headgate.broker.state.configs.definition import Definition, parse_all
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import InvalidConfig, Value

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    definition.broker_names[0]: definition.broker_names
    for definition in TOPIC_CONFIGS.values()
    if definition.broker_names
}
"""Broker configs that supply a default, by the first one. The first one that is set applies: ms, minutes, hours."""

_UNIT_MS: Mapping[str, int] = {
    "log.retention.minutes": MINUTE_MS,
    "log.retention.hours": HOUR_MS,
    "log.roll.hours": HOUR_MS,
    "log.roll.jitter.hours": HOUR_MS,
}


def effective_topic_settings(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> TopicSettings:
    """The settings of a topic with these overrides. Raises InvalidConfig."""
    values = effective_topic_values(broker_values, overrides)
    internal_segment_bytes = values["internal.segment.bytes"]
    if internal_segment_bytes is not None:
        values["segment.bytes"] = internal_segment_bytes
    cleanup_policy = values["cleanup.policy"]
    assert isinstance(cleanup_policy, tuple)
    fields = {
        TOPIC_CONFIGS[name].attribute: value
        for name, value in values.items()
        if TOPIC_CONFIGS[name].attribute in TopicSettings.__dataclass_fields__
    }
    return TopicSettings(
        **fields,  # type: ignore[arg-type]  # a test compares the annotations with the definitions
        is_compacted="compact" in cleanup_policy,
        deletes_old_segments="delete" in cleanup_policy,
        uses_log_append_time=values["message.timestamp.type"] == "LogAppendTime",
    )


def effective_topic_values(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> dict[str, Value]:
    values = {name: topic_default(definition, broker_values) for name, definition in TOPIC_CONFIGS.items()}
    values.update(parse_all(TOPIC_CONFIGS, overrides, "topic"))
    return values


def check_topic_overrides(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> None:
    """Check the overrides that a client sets. Raises InvalidConfig.

    This check is stricter than `effective_topic_settings`. A later change of broker configs can make two configs
    contradict each other, and the topic must stay available.
    """
    values = effective_topic_values(broker_values, overrides)
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        )


def topic_default(definition: Definition, broker_values: Mapping[str, Value]) -> Value:
    """The value if the topic does not set the config: the first broker config that has a value."""
    for name in definition.broker_names:
        value = broker_values.get(name)
        if value is None:
            continue
        unit_ms = _UNIT_MS.get(name)
        if unit_ms is None:
            return value
        assert isinstance(value, int)
        # As in Kafka, any negative retention means no limit.
        return -1 if value < 0 else value * unit_ms
    return definition.default
