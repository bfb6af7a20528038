"""Compares strings, numbers, enums and constants, keyword by keyword."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

from headgate.registry.compatibility.json_schema.comparison import PairComparison
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.shapes import Shape, limits


def upper_limit(
    pair: PairComparison, keyword: str, original: Any, update: Any, added: Difference, decreased: Difference
) -> None:
    if update is None:
        return
    if original is None:
        pair.difference(added, f"/{keyword}", None, update)
    elif update < original:
        pair.difference(decreased, f"/{keyword}", original, update)


def lower_limit(
    pair: PairComparison, keyword: str, original: Any, update: Any, added: Difference, increased: Difference
) -> None:
    if update is None:
        return
    if original is None:
        pair.difference(added, f"/{keyword}", None, update)
    elif update > original:
        pair.difference(increased, f"/{keyword}", original, update)


def compare_strings(pair: PairComparison, original: Shape, update: Shape) -> None:
    upper_limit(
        pair,
        "maxLength",
        original.get("maxLength"),
        update.get("maxLength"),
        Difference.MAX_LENGTH_ADDED,
        Difference.MAX_LENGTH_DECREASED,
    )
    lower_limit(
        pair,
        "minLength",
        original.get("minLength"),
        update.get("minLength"),
        Difference.MIN_LENGTH_ADDED,
        Difference.MIN_LENGTH_INCREASED,
    )
    before, after = original.get("pattern"), update.get("pattern")
    if after is not None and before != after:
        kind = Difference.PATTERN_ADDED if before is None else Difference.PATTERN_CHANGED
        pair.difference(kind, "/pattern", before, after)


def compare_numbers(pair: PairComparison, original: Shape, update: Shape) -> None:
    maximum, exclusive_maximum = zip(limits(original, "maximum"), limits(update, "maximum"), strict=True)
    minimum, exclusive_minimum = zip(limits(original, "minimum"), limits(update, "minimum"), strict=True)
    upper_limit(pair, "maximum", *maximum, Difference.MAXIMUM_ADDED, Difference.MAXIMUM_DECREASED)
    lower_limit(pair, "minimum", *minimum, Difference.MINIMUM_ADDED, Difference.MINIMUM_INCREASED)
    upper_limit(
        pair,
        "exclusiveMaximum",
        *exclusive_maximum,
        Difference.EXCLUSIVE_MAXIMUM_ADDED,
        Difference.EXCLUSIVE_MAXIMUM_DECREASED,
    )
    lower_limit(
        pair,
        "exclusiveMinimum",
        *exclusive_minimum,
        Difference.EXCLUSIVE_MINIMUM_ADDED,
        Difference.EXCLUSIVE_MINIMUM_INCREASED,
    )
    _compare_multiples(pair, original.get("multipleOf"), update.get("multipleOf"))
    if update.integer and not original.integer:
        pair.difference(Difference.TYPE_NARROWED)


def _compare_multiples(pair: PairComparison, original: int | Decimal | None, update: int | Decimal | None) -> None:
    if update is None or original == update:
        return
    if original is None:
        pair.difference(Difference.MULTIPLE_OF_ADDED, "/multipleOf", None, update)
        return
    # Fractions are exact: 0.3 is a multiple of 0.1.
    before, after = Fraction(original), Fraction(update)
    if after % before == 0:
        pair.difference(Difference.MULTIPLE_OF_EXPANDED, "/multipleOf", original, update)
    elif before % after != 0:
        pair.difference(Difference.MULTIPLE_OF_CHANGED, "/multipleOf", original, update)


def compare_enums(pair: PairComparison, original: Shape, update: Shape) -> None:
    before, after = pair.shapes.choices(original), pair.shapes.choices(update)
    pair.effort += (len(before) + len(after)) // 10
    if not before <= after:
        kind = Difference.ENUM_ARRAY_NARROWED if after <= before else Difference.ENUM_ARRAY_CHANGED
        pair.difference(kind, "/enum", original.get("enum"), update.get("enum"))


def compare_constants(pair: PairComparison, original: Shape, update: Shape) -> None:
    if pair.shapes.choices(original) != pair.shapes.choices(update):
        pair.difference(Difference.ENUM_ARRAY_CHANGED, "/const", original.get("const"), update.get("const"))
