"""Rejects union candidates early, without a pair for each of them.

Two unions of a thousand records that share one unqualified name have a million candidates. Most fail for the same few
reasons, so each candidate is tested against the failures that are known already. A type is identified by its *shape*:
types of equal shape give the same result in every comparison.
"""

from typing import Final

from headgate.registry.formats.avro_types import Array, AvroType, Enum, Fixed, Map, Record, Union

depth_max: Final = 4
"""Types inside types that one test looks through. Deeper differences need a full comparison."""
union_branches_max: Final = 4
"""Branches of each nested union that one test looks through. Two larger unions would multiply inside the test."""

_IN_PROGRESS: Final = -1


class Shapes:
    """Numbers types so that equal numbers mean equal structure. Types that contain themselves have unique numbers."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._by_type: dict[int, int] = {}

    def of(self, root: AvroType) -> int:
        """A work list instead of recursion, because chains of named types can be deeper than the stack."""
        known = self._by_type.get(id(root))
        if known is not None and known != _IN_PROGRESS:
            return known
        stack: list[tuple[AvroType, bool]] = [(root, False)]
        while stack:
            current, is_expanded = stack.pop()
            if is_expanded:
                self._by_type[id(current)] = self._number(self._key(current))
            elif id(current) not in self._by_type:
                self._by_type[id(current)] = _IN_PROGRESS
                stack.append((current, True))
                stack.extend((part, False) for part in _parts(current) if id(part) not in self._by_type)
        return self._by_type[id(root)]

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _key(self, current: AvroType) -> object:
        parts = tuple(self._by_type[id(part)] for part in _parts(current))
        if _IN_PROGRESS in parts:
            return id(current)
        match current:
            case Record():
                fields = tuple((field.name, field.aliases, field.has_default) for field in current.fields)
                return (*_names(current), fields, parts)
            case Enum():
                return (*_names(current), current.symbols, current.default is not None)
            case Fixed():
                return (*_names(current), current.size)
            case _:
                return current.kind, parts


def _names(named: Record | Enum | Fixed) -> tuple[object, ...]:
    """The full name is part of it: an alias of a reader may refer to it."""
    return named.kind, named.name.full, tuple(alias.full for alias in named.aliases)


def _parts(current: AvroType) -> list[AvroType]:
    match current:
        case Record():
            return [field.type for field in current.fields]
        case Union():
            return current.branches
        case Array():
            return [current.items]
        case Map():
            return [current.values]
        case _:
            return []
