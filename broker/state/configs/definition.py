"""The definition of a config: name, type, default, allowed values, documentation and update mode."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.broker.state.configs.values import Check, ConfigType, InvalidConfig, Value, parse


class Update(enum.Enum):
    """When the value of a broker config can change."""

    READ_ONLY = "read-only"
    DYNAMIC = "dynamic"


class Importance(enum.Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    type: ConfigType
    default: Value
    documentation: str
    check: Check | None = None
    importance: Importance = Importance.MEDIUM
    update: Update = Update.READ_ONLY
    sensitive: bool = False
    broker_names: tuple[str, ...] = ()
    """For topic configs: the broker configs that supply the default. The first one that is set applies."""
    hidden: bool = False
    """An internal config of Kafka. It can be set, but DescribeConfigs does not return it."""
    without_effect: str = ""
    """The reason why the broker ignores the config. Empty if the broker uses it."""

    @property
    def attribute(self) -> str:
        """The attribute name in typed settings: dots are replaced by underscores."""
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        value = parse(self.name, self.type, text)
        if self.check is not None:
            self.check(self.name, value)
        return value


def whole(
    name: str,
    default: int | None,
    documentation: str,
    check: Check | None = None,
    *,
    type: ConfigType = ConfigType.INT,
    importance: Importance = Importance.MEDIUM,
    update: Update = Update.READ_ONLY,
    without_effect: str = "",
) -> Definition:
    """An integer config, of type INT by default."""
    return Definition(name, type, default, documentation, check, importance, update, without_effect=without_effect)


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
