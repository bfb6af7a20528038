"""allOf, anyOf and oneOf: members that find each other, whatever their order.

Every member of the smaller side needs a partner of its own. Likely partners are compared first. Other pairs are
compared only for members that are left over, and for those that could give up their partner to one of them.
"""

from collections.abc import Sequence

from headgate.registry.compatibility.json_schema.comparison import Asking
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.matching import matched, may_be_matched
from headgate.registry.compatibility.json_schema.partners import FREE, likely_partners
from headgate.registry.compatibility.json_schema.shapes import Criterion, Shape
from headgate.registry.formats.json_schema.subschema import Subschema


def judge_combinations(asking: Asking, original: Shape, update: Shape) -> None:
    if not _criterion_may_change(original, update):
        asking.difference(Difference.COMBINED_TYPE_CHANGED)
        return
    before, after = _distinct(asking, original), _distinct(asking, update)
    if len(before) < len(after) and update.criterion is Criterion.ALL:
        asking.difference(Difference.PRODUCT_TYPE_EXTENDED)
    elif len(before) > len(after) and original.criterion is not Criterion.ALL:
        asking.difference(Difference.SUM_TYPE_NARROWED)
    if not _assignable(asking, _Readable(asking, before, after)):
        asking.difference(Difference.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


class _Readable:
    """Which member of the larger side fits which member of the smaller side, asked for row by row."""

    def __init__(self, asking: Asking, before: Sequence[Subschema | Shape], after: Sequence[Subschema | Shape]) -> None:
        self._asking = asking
        self._swapped = len(before) > len(after)
        lefts, rights = (after, before) if self._swapped else (before, after)
        self._pairs = [asking.shapes.of(left) for left in lefts], [asking.shapes.of(right) for right in rights]
        self._rows: dict[int, list[int]] = {}
        self.start = likely_partners(asking.hints, lefts, rights, self.fits)
        self.right_count = len(rights)
        self.settled = True
        """False once a row was asked for whose answers are not known yet: they count as readable so far."""

    def __len__(self) -> int:
        return len(self._pairs[0])

    def _pair(self, left: int, right: int) -> tuple[Shape, Shape]:
        lefts, rights = self._pairs
        return (rights[right], lefts[left]) if self._swapped else (lefts[left], rights[right])

    def fits(self, left: int, right: int) -> bool:
        return self._asking.readable(*self._pair(left, right))

    def __getitem__(self, left: int) -> list[int]:
        row = self._rows.get(left)
        if row is None:
            row, known = self._asking.readable_of(self._pair(left, right) for right in range(self.right_count))
            self._rows[left] = row
            self.settled = self.settled and known
        return row


def _assignable(asking: Asking, readable: _Readable) -> bool:
    """Whether every member of the smaller side has a partner, as far as is known now."""
    first = next((left for left, right in enumerate(readable.start) if right == FREE), None)
    if first is None:
        return True
    # One member without a partner decides. Most changes that break readers are found here, in linear work.
    if not may_be_matched(first, readable, readable.right_count, readable.start):
        return False
    if not readable.settled:
        asking.judge_again()
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


def _distinct(asking: Asking, shape: Shape) -> Sequence[Subschema | Shape]:
    return list({asking.shapes.key(member): member for member in reversed(shape.members)}.values())[::-1]


def reads_plain(asking: Asking, original: Shape, update: Shape) -> bool:
    """A combination that reads what was plain: its only member does, or one alternative does."""
    if len(update.members) == 1 or update.criterion is not Criterion.ALL:
        return any(asking.readable(original, member) for member in update.members)
    return False


def plain_reads(asking: Asking, original: Shape, update: Shape) -> bool:
    """A plain schema that reads what was combined: it reads the only member, or one of those that all had to hold."""
    if len(original.members) == 1 or original.criterion is Criterion.ALL:
        return any(asking.readable(member, update) for member in original.members)
    return False
