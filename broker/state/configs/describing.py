"""Configs as DescribeConfigs and CreateTopics return them: value, source and synonyms."""

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.broker.state.configs.broker_definitions import BROKER_CONFIGS
from headgate.broker.state.configs.definition import Definition, Update
from headgate.broker.state.configs.effective import SYNONYMS, topic_default
from headgate.broker.state.configs.topic_definitions import TOPIC_CONFIGS
from headgate.broker.state.configs.values import Value, text_of
from headgate.broker.state.settings import BrokerSettings, Scope


class Source(enum.IntEnum):
    """Config sources, with the numbers of the DescribeConfigs response."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


@dataclass(frozen=True, slots=True)
class Synonym:
    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    definition: Definition
    value: str | None
    source: Source
    read_only: bool
    synonyms: tuple[Synonym, ...]
    """All values of the config by source. The first one is in effect."""


def topic_entries(settings: BrokerSettings, overrides: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """All configs of a topic, sorted by name."""
    for name, definition in TOPIC_CONFIGS.items():
        if definition.hidden and name not in overrides:
            continue
        synonyms = _broker_synonyms(settings, definition.broker_names[0]) if definition.broker_names else []
        if name in overrides:
            value = definition.parse(overrides[name])
            synonyms.insert(0, Synonym(name, text_of(value), Source.DYNAMIC_TOPIC_CONFIG))
        else:
            value = topic_default(definition, settings.values)
        yield _entry(definition, value, synonyms, read_only=False)


def broker_entries(settings: BrokerSettings) -> Iterator[ConfigEntry]:
    """All configs of this broker."""
    for name, definition in BROKER_CONFIGS.items():
        synonyms = _broker_synonyms(settings, name)
        yield _entry(definition, settings.values[name], synonyms, definition.update is Update.READ_ONLY)


def cluster_entries(settings: BrokerSettings) -> Iterator[ConfigEntry]:
    """The dynamic configs that were set for all brokers."""
    for name, text in settings.dynamic(Scope.ALL_BROKERS).items():
        definition = BROKER_CONFIGS[name]
        value = definition.parse(text)
        synonym = Synonym(name, text_of(value), Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
        yield _entry(definition, value, [synonym], definition.update is Update.READ_ONLY)


def _entry(definition: Definition, value: Value, synonyms: list[Synonym], read_only: bool) -> ConfigEntry:
    source = synonyms[0].source if synonyms else Source.DEFAULT_CONFIG
    return ConfigEntry(definition, text_of(value), source, read_only, tuple(synonyms))


def _broker_synonyms(settings: BrokerSettings, name: str) -> list[Synonym]:
    """The values of a broker config and of its synonyms, for example log.retention.hours for log.retention.ms.

    As in Kafka, entries before the first one with the name itself are omitted. If only log.retention.hours is set,
    log.retention.ms has no synonyms.
    """
    names = SYNONYMS.get(name, (name,))
    layers: list[tuple[Mapping[str, str], Source]] = [
        (settings.dynamic(Scope.THIS_BROKER), Source.DYNAMIC_BROKER_CONFIG),
        (settings.dynamic(Scope.ALL_BROKERS), Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (settings.static, Source.STATIC_BROKER_CONFIG),
    ]
    found: list[Synonym] = []
    for layer, source in layers:
        for synonym in names:
            if synonym in layer:
                value = text_of(BROKER_CONFIGS[synonym].parse(layer[synonym]))
                found.append(Synonym(synonym, value, source))
    found.extend(
        Synonym(synonym, text_of(BROKER_CONFIGS[synonym].default), Source.DEFAULT_CONFIG)
        for synonym in names
        if BROKER_CONFIGS[synonym].default is not None
    )
    first = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[first:]
