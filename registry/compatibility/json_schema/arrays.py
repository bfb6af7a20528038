"""Arrays: one schema for all items, or a tuple of them with a content model for the rest.

Until 2019-09 `items` is either and `additionalItems` is the rest; from 2020-12 the tuple is `prefixItems` and the rest
is `items`. Paths are written the old way, as Confluent's registry does: `items/0`, `additionalItems`.
"""

from dataclasses import dataclass

from headgate.registry.compatibility.json_schema.comparison import Asking
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.objects import covering, is_open, judge_rest
from headgate.registry.compatibility.json_schema.scalars import lower_limit, upper_limit
from headgate.registry.compatibility.json_schema.shapes import Kind, Shape
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.subschema import Subschema


@dataclass(frozen=True, slots=True)
class _Items:
    every: Subschema | None
    tuple: list[Subschema]
    rest: Subschema | None
    unevaluated: Subschema | None


def judge_arrays(asking: Asking, original: Shape, update: Shape) -> None:
    before, after = _items(asking, original), _items(asking, update)
    if after.every is not None:
        if before.every is None:
            asking.difference(Difference.SCHEMA_ADDED, "/items", None, after.every.value)
        else:
            asking.compare("/items", before.every, after.every)
    _judge_tuples(asking, before, after)
    judge_rest(
        asking,
        "additionalItems",
        before.rest,
        after.rest,
        Difference.ADDITIONAL_ITEMS_REMOVED,
        Difference.ADDITIONAL_ITEMS_NARROWED,
    )
    judge_rest(
        asking,
        "unevaluatedItems",
        before.unevaluated,
        after.unevaluated,
        Difference.UNEVALUATED_ITEMS_REMOVED,
        Difference.UNEVALUATED_ITEMS_NARROWED,
    )
    _judge_counts(asking, original, update)


def _items(asking: Asking, shape: Shape) -> _Items:
    source = shape.source
    single, many = source.one("items"), source.many("items")
    if source.draft is Draft.DRAFT_2020:
        many = source.many("prefixItems")
        rest = single
    else:
        rest = source.one("additionalItems")
    every = single
    if source.draft >= Draft.DRAFT_2019 and single is not None:
        closes = asking.shapes.of(single).kind is Kind.FALSE
        if many or closes:
            every = None
            rest = single
        elif source.draft is Draft.DRAFT_2020:
            rest = None
    if every is not None and asking.shapes.of(every).kind is Kind.EMPTY:
        every = None
    return _Items(every, many, rest, source.one("unevaluatedItems"))


def _judge_tuples(asking: Asking, before: _Items, after: _Items) -> None:
    for index, (old, new) in enumerate(zip(before.tuple, after.tuple, strict=False)):
        asking.compare(f"/items/{index}", old, new)
    asking.effort += len(before.tuple) + len(after.tuple)
    common = min(len(before.tuple), len(after.tuple))
    for index, schema in enumerate(before.tuple[common:], common):
        _judge_removed(asking, after, index, schema)
    for index, schema in enumerate(after.tuple[common:], common):
        _judge_added(asking, before, index, schema)


def _judge_removed(asking: Asking, update: _Items, index: int, schema: Subschema) -> None:
    if is_open(asking, update.rest, update.unevaluated):
        return
    path = f"/items/{index}"
    cover = covering(asking, update.rest, update.unevaluated)
    if cover is not None:
        if not asking.compare(path, schema, cover):
            kind = Difference.ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            asking.difference(kind, path, schema.value, cover.value)
    elif asking.shapes.of(schema).kind is not Kind.FALSE:
        asking.difference(Difference.ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL, path, schema.value, None)


def _judge_added(asking: Asking, original: _Items, index: int, schema: Subschema) -> None:
    path = f"/items/{index}"
    if is_open(asking, original.rest, original.unevaluated):
        if asking.shapes.of(schema).kind is not Kind.EMPTY:
            asking.difference(Difference.ITEM_ADDED_TO_OPEN_CONTENT_MODEL, path, None, schema.value)
        return
    cover = covering(asking, original.rest, original.unevaluated)
    if cover is not None and not asking.compare(path, cover, schema):
        kind = Difference.ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
        asking.difference(kind, path, cover.value, schema.value)


def _judge_counts(asking: Asking, original: Shape, update: Shape) -> None:
    upper_limit(
        asking,
        "maxItems",
        original.get("maxItems"),
        update.get("maxItems"),
        Difference.MAX_ITEMS_ADDED,
        Difference.MAX_ITEMS_DECREASED,
    )
    lower_limit(
        asking,
        "minItems",
        original.get("minItems"),
        update.get("minItems"),
        Difference.MIN_ITEMS_ADDED,
        Difference.MIN_ITEMS_INCREASED,
    )
    if update.get("uniqueItems") and not original.get("uniqueItems"):
        asking.difference(Difference.UNIQUE_ITEMS_ADDED, "/uniqueItems", None, True)
    least, most = _contained(original)
    new_least, new_most = _contained(update)
    upper_limit(asking, "maxContains", most, new_most, Difference.MAX_CONTAINS_ADDED, Difference.MAX_CONTAINS_DECREASED)
    lower_limit(
        asking, "minContains", least, new_least, Difference.MIN_CONTAINS_ADDED, Difference.MIN_CONTAINS_INCREASED
    )


def _contained(shape: Shape) -> tuple[int | None, int | None]:
    """How many items have to match `contains`, and how many may. The drafts without a number are not compared."""
    if shape.source.draft < Draft.DRAFT_2019 or shape.source.one("contains") is None:
        return None, None
    least = shape.get("minContains")
    return 1 if least is None else least, shape.get("maxContains")
