"""What a config is: its name, type, default, bounds, documentation, and who may change it when."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.broker.state.configs.values import Check, ConfigType, InvalidConfig, Value, parse


class Update(enum.Enum):
    """When a broker's config may change."""

    READ_ONLY = "at start"
    DYNAMIC = "while running"


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
    """For a topic's config: the broker's configs that give its default, the first one that is set wins."""
    hidden: bool = False
    """Kafka's internal configs can be set but are not described."""
    without_effect: str = ""
    """Why setting it changes nothing here; empty when it does what it says."""

    @property
    def attribute(self) -> str:
        """The name under which typed settings hold it: dots become underscores."""
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
    """A config that is a number without a fraction: an INT unless told."""
    return Definition(name, type, default, documentation, check, importance, update, without_effect=without_effect)


def index(*definitions: Definition) -> Mapping[str, Definition]:
    by_name = {definition.name: definition for definition in definitions}
    if len(by_name) != len(definitions):
        raise ValueError("a config is defined twice")
    return by_name


def parse_all(definitions: Mapping[str, Definition], overrides: Mapping[str, str], kind: str) -> dict[str, Value]:
    """The values of `overrides`; raises InvalidConfig on a name that is not defined and on a value that will not do."""
    for name in overrides:
        if name not in definitions:
            raise InvalidConfig(f"Unknown {kind} config name: {name}")
    return {name: definitions[name].parse(text) for name, text in overrides.items()}
