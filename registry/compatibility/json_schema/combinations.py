"""allOf, anyOf and oneOf: members that find each other, whatever their order."""

from collections.abc import Sequence

from registry.compatibility.json_schema.comparison import Asking
from registry.compatibility.json_schema.kinds import Difference
from registry.compatibility.json_schema.matching import matched
from registry.compatibility.json_schema.shapes import Criterion, Shape
from registry.formats.json_schema.subschema import Subschema


def judge_combinations(asking: Asking, original: Shape, update: Shape) -> None:
    if not _criterion_may_change(original, update):
        asking.difference(Difference.COMBINED_TYPE_CHANGED)
        return
    before, after = _distinct(asking, original), _distinct(asking, update)
    if len(before) < len(after) and update.criterion is Criterion.ALL:
        asking.difference(Difference.PRODUCT_TYPE_EXTENDED)
    elif len(before) > len(after) and original.criterion is not Criterion.ALL:
        asking.difference(Difference.SUM_TYPE_NARROWED)
    edges = [[index for index, new in enumerate(after) if asking.readable(old, new)] for old in before]
    if matched(edges, len(after)) < min(len(before), len(after)):
        asking.difference(Difference.COMBINED_TYPE_SUBSCHEMAS_CHANGED)


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
