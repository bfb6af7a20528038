"""The definition of a config: name, type, default, allowed values, documentation and update mode."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.broker.state.configs.documentation import DOCUMENTATION, WITHOUT_EFFECT
from headgate.broker.state.configs.values import Check, ConfigType, InvalidConfig, Value, parse


class Update(enum.Enum):
    """When the value of a broker config can change."""

    READ_ONLY = "read-only"
    DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    type: ConfigType
    default: Value
    check: Check | None = None
    update: Update = Update.READ_ONLY
    topic_config: str = ""
    """For broker configs: the topic config whose default this is."""
    broker_names: tuple[str, ...] = ()
    """For topic configs: the broker configs that supply the default. The first one that is set applies."""
    hidden: bool = False
    """An internal config of Kafka. It can be set, but DescribeConfigs does not return it."""

    @property
    def attribute(self) -> str:
        """The attribute name in typed settings: dots are replaced by underscores."""
        return self.name.replace(".", "_")

    @property
    def documentation(self) -> str:
        return (
            f"The default of the topic config {self.topic_config}." if self.topic_config else DOCUMENTATION[self.name]
        )

    @property
    def without_effect(self) -> str:
        """The reason why the broker ignores the config. Empty if the broker uses it."""
        return WITHOUT_EFFECT.get(self.topic_config or self.name, "")

    def parse(self, text: str) -> Value:
        value = parse(self.name, self.type, text)
        if self.check is not None:
            self.check(self.name, value)
        return value


def index(*definitions: Definition) -> Mapping[str, Definition]:
    by_name = {definition.name: definition for definition in definitions}
    if len(by_name) != len(definitions):
        raise ValueError("two configs have the same name")
    return by_name


def parse_all(definitions: Mapping[str, Definition], overrides: Mapping[str, str], kind: str) -> dict[str, Value]:
    """The parsed values of `overrides`. Raises InvalidConfig for unknown names and invalid values."""
    for name in overrides:
        if name not in definitions:
            raise InvalidConfig(f"Unknown {kind} config name: {name}")
    return {name: definitions[name].parse(text) for name, text in overrides.items()}
