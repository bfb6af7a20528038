"""The limits of numeric configs. Those of Kafka's configs are the "valid values" of Kafka's documentation."""

import pytest

from headgate.broker.state.configs.broker_definitions import BROKER_CONFIGS
from headgate.broker.state.configs.definition import Definition, index
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import ConfigType, InvalidConfig

DEFINITIONS = {**BROKER_CONFIGS, **TOPIC_CONFIGS}
NUMBERS = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE)

MINIMA = {
    -131_072: "compression.zstd.level",
    -2: "local.retention.bytes local.retention.ms",
    -1: "compression.gzip.level log.retention.hours log.retention.minutes log.retention.ms retention.ms",
    0: """broker.id delete.retention.ms file.delete.delay.ms flush.ms index.interval.bytes log.flush.interval.ms
        log.roll.jitter.hours log.roll.jitter.ms max.connection.creation.rate max.connections max.connections.per.ip
        max.incremental.fetch.session.cache.slots max.message.bytes message.timestamp.after.max.ms
        message.timestamp.before.max.ms min.cleanable.dirty.ratio min.compaction.lag.ms node.id segment.jitter.ms""",
    1: """background.threads compression.lz4.level default.replication.factor flush.messages group.max.size
        headgate.partitions.max headgate.topic.partitions.max internal.segment.bytes log.retention.check.interval.ms
        log.roll.hours log.roll.ms max.compaction.lag.ms max.request.partition.size.limit min.insync.replicas
        num.io.threads num.network.threads num.partitions offsets.retention.check.interval.ms offsets.retention.minutes
        offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
        producer.id.expiration.ms queued.max.requests segment.ms socket.listen.backlog.size socket.request.max.bytes
        transaction.max.timeout.ms transactional.id.expiration.ms""",
    4: "segment.index.bytes",
    1024: "fetch.max.bytes",
    1_048_576: "segment.bytes",
}
MINIMUM_OF = {name: minimum for minimum, names in MINIMA.items() for name in names.split()}
MAXIMUM_OF = {
    "compression.gzip.level": 9,
    "compression.lz4.level": 17,
    "compression.zstd.level": 22,
    "headgate.partitions.max": 10_000_000,
    "headgate.topic.partitions.max": 1_000_000,
    "min.cleanable.dirty.ratio": 1,
}
HOLES = {
    "compression.gzip.level": 0,
    "log.retention.hours": 0,
    "log.retention.minutes": 0,
    "log.retention.ms": 0,
}
"""Rejected values above the minimum."""


def accepts(definition: Definition, number: int) -> bool:
    try:
        definition.parse(str(number))
    except InvalidConfig:
        return False
    return True


@pytest.mark.parametrize(
    "definition", [each for each in DEFINITIONS.values() if each.type in NUMBERS], ids=lambda each: each.name
)
def test_a_number_is_accepted_from_its_minimum_to_its_maximum(definition: Definition) -> None:
    # A default of a topic config has the limits of this topic config.
    name = definition.topic_config or definition.name
    minimum, maximum, hole = MINIMUM_OF.get(name), MAXIMUM_OF.get(name), HOLES.get(name)
    if minimum is None:
        assert accepts(definition, -100)
    else:
        assert accepts(definition, minimum)
        assert not accepts(definition, minimum - 1)
        assert hole is None or (not accepts(definition, hole) and accepts(definition, hole + 1))
    if maximum is None:
        assert accepts(definition, 32_767 if definition.type is ConfigType.SHORT else 2**31 - 1)
    else:
        assert accepts(definition, maximum)
        assert not accepts(definition, maximum + 1)


def test_limits_exist_only_for_known_configs() -> None:
    assert MINIMUM_OF.keys() | MAXIMUM_OF.keys() | HOLES.keys() <= DEFINITIONS.keys()


def test_two_configs_cannot_have_one_name() -> None:
    definition = Definition("a", ConfigType.INT, 1)
    assert index(definition) == {"a": definition}
    with pytest.raises(ValueError, match="same name"):
        index(definition, definition)
