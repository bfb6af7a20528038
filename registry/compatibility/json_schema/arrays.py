"""Compares arrays: one schema for all items, or a tuple with a content model for the other items.

Up to 2019-09, `items` is either form, and `additionalItems` describes the other items. From 2020-12, the tuple is
`prefixItems` and the other items are `items`. Paths use the old names, as in Confluent's registry: `items/0`,
`additionalItems`.
"""

from dataclasses import dataclass

from headgate.registry.compatibility.json_schema.comparison import PairComparison
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.objects import (
    compare_added,
    compare_removed,
    compare_rest,
    covering,
    is_open,
)
from headgate.registry.compatibility.json_schema.scalars import compare_limit, compare_limits
from headgate.registry.compatibility.json_schema.shapes import Kind, Shape
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.subschema import Subschema


@dataclass(frozen=True, slots=True)
class _Items:
    every: Subschema | None
    tuple: list[Subschema]
    rest: Subschema | None
    unevaluated: Subschema | None


def compare_arrays(pair: PairComparison, original: Shape, update: Shape) -> None:
    before, after = _items(pair, original), _items(pair, update)
    if after.every is not None:
        if before.every is None:
            pair.difference(Difference.SCHEMA_ADDED, "/items", None, after.every.value)
        else:
            pair.compare("/items", before.every, after.every)
    _compare_tuples(pair, before, after)
    compare_rest(pair, "additionalItems", before.rest, after.rest)
    compare_rest(pair, "unevaluatedItems", before.unevaluated, after.unevaluated)
    _compare_counts(pair, original, update)


def _items(pair: PairComparison, shape: Shape) -> _Items:
    source = shape.source
    single, many = source.one("items"), source.many("items")
    if source.draft is Draft.DRAFT_2020:
        many = source.many("prefixItems")
        rest = single
    else:
        rest = source.one("additionalItems")
    every = single
    if source.draft >= Draft.DRAFT_2019 and single is not None:
        closes = pair.shapes.of(single).kind is Kind.FALSE
        if many or closes:
            every = None
            rest = single
        elif source.draft is Draft.DRAFT_2020:
            rest = None
    if every is not None and pair.shapes.of(every).kind is Kind.EMPTY:
        every = None
    return _Items(every, many, rest, source.one("unevaluatedItems"))


def _compare_tuples(pair: PairComparison, before: _Items, after: _Items) -> None:
    for index, (old, new) in enumerate(zip(before.tuple, after.tuple, strict=False)):
        pair.compare(f"/items/{index}", old, new)
    pair.effort += len(before.tuple) + len(after.tuple)
    common = min(len(before.tuple), len(after.tuple))
    for index, schema in enumerate(before.tuple[common:], common):
        _compare_removed(pair, after, index, schema)
    for index, schema in enumerate(after.tuple[common:], common):
        _compare_added(pair, before, index, schema)


def _compare_removed(pair: PairComparison, update: _Items, index: int, schema: Subschema) -> None:
    if not is_open(pair, update.rest, update.unevaluated):
        compare_removed(pair, "item", f"/items/{index}", schema, covering(pair, update.rest, update.unevaluated))


def _compare_added(pair: PairComparison, original: _Items, index: int, schema: Subschema) -> None:
    path = f"/items/{index}"
    if is_open(pair, original.rest, original.unevaluated):
        if pair.shapes.of(schema).kind is not Kind.EMPTY:
            pair.difference(Difference.ITEM_ADDED_TO_OPEN_CONTENT_MODEL, path, None, schema.value)
        return
    compare_added(pair, "item", path, schema, covering(pair, original.rest, original.unevaluated))


def _compare_counts(pair: PairComparison, original: Shape, update: Shape) -> None:
    compare_limits(pair, original, update, "maxItems", "minItems")
    if update.get("uniqueItems") and not original.get("uniqueItems"):
        pair.difference(Difference.UNIQUE_ITEMS_ADDED, "/uniqueItems", None, True)
    least, most = _contained(original)
    new_least, new_most = _contained(update)
    compare_limit(pair, "maxContains", most, new_most)
    compare_limit(pair, "minContains", least, new_least)


def _contained(shape: Shape) -> tuple[int | None, int | None]:
    """The minimum and maximum number of items that match `contains`. Drafts without these numbers are not compared."""
    if shape.source.draft < Draft.DRAFT_2019 or shape.source.one("contains") is None:
        return None, None
    least = shape.get("minContains")
    return 1 if least is None else least, shape.get("maxContains")
