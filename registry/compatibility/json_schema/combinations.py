"""Compares allOf, anyOf and oneOf, whose members match in any order.

Each member of the smaller side needs its own match. Likely matches are compared first. Other pairs are compared only
for members without a match, and for members that could give up their match.
"""

from collections.abc import Sequence

from headgate.registry.compatibility.json_schema.comparison import PairComparison
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.likely_matches import FREE, likely_matches_of
from headgate.registry.compatibility.json_schema.matching import matched, may_be_matched
from headgate.registry.compatibility.json_schema.shapes import Criterion, Shape
from headgate.registry.formats.json_schema.subschema import Subschema


def compare_combinations(pair: PairComparison, original: Shape, update: Shape) -> None:
    if not _criterion_may_change(original, update):
        pair.difference(Difference.COMBINED_TYPE_CHANGED)
        return
    before, after = _distinct(pair, original), _distinct(pair, update)
    if len(before) < len(after) and update.criterion is Criterion.ALL:
        pair.difference(Difference.PRODUCT_TYPE_EXTENDED)
    elif len(before) > len(after) and original.criterion is not Criterion.ALL:
        pair.difference(Difference.SUM_TYPE_NARROWED)
    if not _assignable(pair, _Readable(pair, before, after)):
        pair.difference(Difference.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


class _Readable:
    """The compatible pairs of members, computed row by row."""

    def __init__(
        self, pair: PairComparison, before: Sequence[Subschema | Shape], after: Sequence[Subschema | Shape]
    ) -> None:
        self._comparison = pair
        self._swapped = len(before) > len(after)
        lefts, rights = (after, before) if self._swapped else (before, after)
        self._pairs = [pair.shapes.of(left) for left in lefts], [pair.shapes.of(right) for right in rights]
        self._rows: dict[int, list[int]] = {}
        self.start = likely_matches_of(pair.hints, lefts, rights, self.fits)
        self.right_count = len(rights)
        self.settled = True
        """False if a requested row has unknown results. Unknown pairs count as compatible so far."""

    def __len__(self) -> int:
        return len(self._pairs[0])

    def _pair(self, left: int, right: int) -> tuple[Shape, Shape]:
        lefts, rights = self._pairs
        return (rights[right], lefts[left]) if self._swapped else (lefts[left], rights[right])

    def fits(self, left: int, right: int) -> bool:
        return self._comparison.readable(*self._pair(left, right))

    def __getitem__(self, left: int) -> list[int]:
        row = self._rows.get(left)
        if row is None:
            row, known = self._comparison.readable_of(self._pair(left, right) for right in range(self.right_count))
            self._rows[left] = row
            self.settled = self.settled and known
        return row


def _assignable(pair: PairComparison, readable: _Readable) -> bool:
    """Whether each member of the smaller side has a match, as far as known."""
    first = next((left for left, right in enumerate(readable.start) if right == FREE), None)
    if first is None:
        return True
    # One member without a match decides. This finds most incompatible changes in linear time.
    if not may_be_matched(first, readable, readable.right_count, readable.start):
        return False
    if not readable.settled:
        pair.compare_again()
        return True
    return matched(readable, readable.right_count, readable.start) == len(readable)


def _criterion_may_change(original: Shape, update: Shape) -> bool:
    before, after = original.criterion, update.criterion
    single_before, single_after = len(original.members) == 1, len(update.members) == 1
    return (
        before is after
        or after is Criterion.ANY
        or (single_before and (single_after or after is Criterion.ONE))
        or (single_after and before is Criterion.ALL)
    )


def _distinct(pair: PairComparison, shape: Shape) -> Sequence[Subschema | Shape]:
    return list({pair.shapes.key(member): member for member in reversed(shape.members)}.values())[::-1]


def reads_plain(pair: PairComparison, original: Shape, update: Shape) -> bool:
    """Whether a combination reads a plain schema: its only member does, or one alternative does."""
    if len(update.members) == 1 or update.criterion is not Criterion.ALL:
        return any(pair.readable(original, member) for member in update.members)
    return False


def plain_reads(pair: PairComparison, original: Shape, update: Shape) -> bool:
    """Whether a plain schema reads a combination: it reads the only member, or one member of allOf."""
    if len(original.members) == 1 or original.criterion is Criterion.ALL:
        return any(pair.readable(member, update) for member in original.members)
    return False
