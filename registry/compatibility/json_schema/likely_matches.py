"""Finds the likely matches between the members of two combinations.

Members of `oneOf` usually differ by reference, title, constant or property names. Comparing likely matches first makes
most comparisons linear. A wrong guess takes time but does not change the result: `combinations` then tries other
matches.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from headgate.registry.compatibility.json_schema.shapes import Shape, Shapes
from headgate.registry.formats.json_schema.document import same_key
from headgate.registry.formats.json_schema.subschema import Subschema

FREE: Final = -1
_NONE: Final[Iterator[int]] = iter(())
_LEVELS: Final = 6
"""Hints of one member, see `Hints.of`."""

# A discriminator is near the top of its member.
_PLACES_MAX: Final = 50


class Hints:
    """The hints of all members in one comparison, computed once per member."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._known: dict[Subschema | Shape, tuple[Hashable, ...]] = {}

    def of(self, member: Subschema | Shape) -> tuple[Hashable, ...]:
        """Ordered from the most to the least specific hint. None if the member has no such hint."""
        known = self._known.get(member)
        if known is None:
            known = self._known[member] = self._computed(member)
        return known

    def _computed(self, member: Subschema | Shape) -> tuple[Hashable, ...]:
        shape = self._shapes.of(member)
        source = member if isinstance(member, Subschema) else member.source
        reference = source.value.get("$ref") if isinstance(source.value, dict) else None
        title = shape.source.value.get("title") if isinstance(shape.source.value, dict) else None
        constants, names = _within(shape.source)
        return (
            self._shapes.key(member),
            reference if isinstance(reference, str) else None,
            title if isinstance(title, str) else None,
            constants or None,
            names or None,
            (shape.kind, shape.integer, shape.criterion),
        )


def _within(source: Subschema) -> tuple[frozenset[tuple[str, str]], frozenset[str]]:
    """The constants and property names near the top of a subschema."""
    constants: set[tuple[str, str]] = set()
    names: set[str] = set()
    waiting = deque([("", source)])
    for _ in range(_PLACES_MAX):
        if not waiting:
            break
        name, place = waiting.popleft()
        if isinstance(place.value, dict):
            constants.update((name, same_key(place.value[key])) for key in ("const", "enum") if key in place.value)
        for keyword, held in place.children.items():
            if isinstance(held, dict):
                names.update(held)
                waiting.extend(held.items())
            elif isinstance(held, list):
                waiting.extend((keyword, child) for child in held)
    return frozenset(constants), frozenset(names)


def likely_matches_of(
    hints: Hints,
    lefts: Sequence[Subschema | Shape],
    rights: Sequence[Subschema | Shape],
    fits: Callable[[int, int], bool],
) -> list[int]:
    """The likely match of each left member, or FREE. No member is used twice.

    Each member is tried with one other member per hint: the one at the same position among members with that hint. Each
    further try would need another round of comparisons.
    """
    partner_of = [FREE] * len(lefts)
    taken = [False] * len(rights)
    left_hints, right_hints = [hints.of(left) for left in lefts], [hints.of(right) for right in rights]

    def pair_up(level: int) -> None:
        candidates: dict[Hashable, Iterator[int]] = {
            hint: iter(places) for hint, places in _places(right_hints, level, rest_of_rights).items()
        }
        for left in rest_of_lefts:
            right = next(candidates.get(left_hints[left][level], _NONE), FREE)
            if right != FREE and partner_of[left] == FREE and not taken[right] and fits(left, right):
                partner_of[left] = right
                taken[right] = True

    rest_of_lefts, rest_of_rights = list(range(len(lefts))), list(range(len(rights)))
    pair_up(0)
    rest_of_lefts = [left for left in rest_of_lefts if partner_of[left] == FREE]
    rest_of_rights = [right for right in rest_of_rights if not taken[right]]
    for level in range(1, _LEVELS):
        pair_up(level)
    return partner_of


def _places(hints: list[tuple[Hashable, ...]], level: int, members: list[int]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for member in members:
        hint = hints[member][level]
        if hint is not None:
            places.setdefault(hint, []).append(member)
    return places
