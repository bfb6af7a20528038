"""Strings, numbers, enumerations and constants, keyword by keyword."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from headgate.registry.compatibility.json_schema.comparison import Asking
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.shapes import Shape, limits


def upper_limit(
    asking: Asking, keyword: str, original: Any, update: Any, added: Difference, decreased: Difference
) -> None:
    if update is None:
        return
    if original is None:
        asking.difference(added, f"/{keyword}", None, update)
    elif update < original:
        asking.difference(decreased, f"/{keyword}", original, update)


def lower_limit(
    asking: Asking, keyword: str, original: Any, update: Any, added: Difference, increased: Difference
) -> None:
    if update is None:
        return
    if original is None:
        asking.difference(added, f"/{keyword}", None, update)
    elif update > original:
        asking.difference(increased, f"/{keyword}", original, update)


def judge_strings(asking: Asking, original: Shape, update: Shape) -> None:
    upper_limit(
        asking,
        "maxLength",
        original.get("maxLength"),
        update.get("maxLength"),
        Difference.MAX_LENGTH_ADDED,
        Difference.MAX_LENGTH_DECREASED,
    )
    lower_limit(
        asking,
        "minLength",
        original.get("minLength"),
        update.get("minLength"),
        Difference.MIN_LENGTH_ADDED,
        Difference.MIN_LENGTH_INCREASED,
    )
    before, after = original.get("pattern"), update.get("pattern")
    if after is not None and before != after:
        kind = Difference.PATTERN_ADDED if before is None else Difference.PATTERN_CHANGED
        asking.difference(kind, "/pattern", before, after)


def judge_numbers(asking: Asking, original: Shape, update: Shape) -> None:
    maximum, exclusive_maximum = zip(limits(original, "maximum"), limits(update, "maximum"), strict=True)
    minimum, exclusive_minimum = zip(limits(original, "minimum"), limits(update, "minimum"), strict=True)
    upper_limit(asking, "maximum", *maximum, Difference.MAXIMUM_ADDED, Difference.MAXIMUM_DECREASED)
    lower_limit(asking, "minimum", *minimum, Difference.MINIMUM_ADDED, Difference.MINIMUM_INCREASED)
    upper_limit(
        asking,
        "exclusiveMaximum",
        *exclusive_maximum,
        Difference.EXCLUSIVE_MAXIMUM_ADDED,
        Difference.EXCLUSIVE_MAXIMUM_DECREASED,
    )
    lower_limit(
        asking,
        "exclusiveMinimum",
        *exclusive_minimum,
        Difference.EXCLUSIVE_MINIMUM_ADDED,
        Difference.EXCLUSIVE_MINIMUM_INCREASED,
    )
    _judge_multiples(asking, original.get("multipleOf"), update.get("multipleOf"))
    if update.integer and not original.integer:
        asking.difference(Difference.TYPE_NARROWED)


def _judge_multiples(asking: Asking, original: int | Decimal | None, update: int | Decimal | None) -> None:
    if update is None or original == update:
        return
    if original is None:
        asking.difference(Difference.MULTIPLE_OF_ADDED, "/multipleOf", None, update)
        return
    # Fractions: 0.3 is a multiple of 0.1 here, as it is on paper.
    before, after = Fraction(original), Fraction(update)
    if after % before == 0:
        asking.difference(Difference.MULTIPLE_OF_EXPANDED, "/multipleOf", original, update)
    elif before % after != 0:
        asking.difference(Difference.MULTIPLE_OF_CHANGED, "/multipleOf", original, update)


def judge_enums(asking: Asking, original: Shape, update: Shape) -> None:
    before, after = asking.shapes.choices(original), asking.shapes.choices(update)
    asking.effort += (len(before) + len(after)) // 10
    if not before <= after:
        kind = Difference.ENUM_ARRAY_NARROWED if after <= before else Difference.ENUM_ARRAY_CHANGED
        asking.difference(kind, "/enum", original.get("enum"), update.get("enum"))


def judge_constants(asking: Asking, original: Shape, update: Shape) -> None:
    if asking.shapes.choices(original) != asking.shapes.choices(update):
        asking.difference(Difference.ENUM_ARRAY_CHANGED, "/const", original.get("const"), update.get("const"))
