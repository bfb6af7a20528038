"""Applies SET, DELETE, APPEND and SUBTRACT to the configs of a resource (KIP-339).

The functions are pure. The caller checks whether the new configs are valid.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headgate.broker.state.configs.definition import Definition
from headgate.broker.state.configs.values import ConfigType, InvalidConfig


class Operation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Alteration:
    name: str
    operation: Operation
    value: str | None


def altered(
    definitions: Mapping[str, Definition],
    overrides: Mapping[str, str],
    alterations: Iterable[Alteration],
    default_text: Callable[[str], str | None],
) -> dict[str, str]:
    """The overrides after the alterations. `default_text` returns the current value of a list that is not set."""
    after = dict(overrides)
    for alteration in alterations:
        name, operation = alteration.name, alteration.operation
        if operation is Operation.DELETE:
            after.pop(name, None)
            continue
        if alteration.value is None:
            raise ValueError("SET, APPEND and SUBTRACT need a value")
        if operation is Operation.SET:
            after[name] = alteration.value
            continue
        definition = definitions.get(name)
        if definition is None or definition.type is not ConfigType.LIST:
            raise InvalidConfig(f"Can't {operation.name} to key {name} because its type is not LIST.")
        current = after[name] if name in after else default_text(name) or ""
        after[name] = _changed_list(current, operation, alteration.value)
    return after


def _changed_list(current: str, operation: Operation, value: str) -> str:
    items = [item for item in map(str.strip, current.split(",")) if item]
    given = _split(value)
    if operation is Operation.APPEND:
        items.extend(item for item in dict.fromkeys(given) if item not in items)
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def _split(value: str) -> list[str]:
    """Split at commas like Java: trailing empty items are removed, and an empty text is one empty item."""
    items = [item.strip() for item in value.split(",")]
    while len(items) > 1 and not items[-1]:
        items.pop()
    return items
