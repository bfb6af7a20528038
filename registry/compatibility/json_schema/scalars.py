"""Compares strings, numbers, enums and constants, keyword by keyword."""

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from headgate.registry.compatibility.json_schema.comparison import PairComparison
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.shapes import Shape, limits

_CAPITAL: Final = re.compile(r"(?=[A-Z])")


def difference_of(keyword: str, change: str) -> Difference:
    """The name of a changed keyword: `maxLength` and `ADDED` become MAX_LENGTH_ADDED."""
    return Difference[f"{_CAPITAL.sub('_', keyword).upper()}_{change}"]


def compare_limit(pair: PairComparison, keyword: str, original: Any, update: Any) -> None:
    """Compare an upper limit (`max` in its name) or a lower limit."""
    if update is None:
        return
    is_upper = "max" in keyword.lower()
    if original is None:
        pair.difference(difference_of(keyword, "ADDED"), f"/{keyword}", None, update)
    elif update < original if is_upper else update > original:
        change = "DECREASED" if is_upper else "INCREASED"
        pair.difference(difference_of(keyword, change), f"/{keyword}", original, update)


def compare_limits(pair: PairComparison, original: Shape, update: Shape, *keywords: str) -> None:
    for keyword in keywords:
        compare_limit(pair, keyword, original.get(keyword), update.get(keyword))


def compare_strings(pair: PairComparison, original: Shape, update: Shape) -> None:
    compare_limits(pair, original, update, "maxLength", "minLength")
    before, after = original.get("pattern"), update.get("pattern")
    if after is not None and before != after:
        kind = Difference.PATTERN_ADDED if before is None else Difference.PATTERN_CHANGED
        pair.difference(kind, "/pattern", before, after)


def compare_numbers(pair: PairComparison, original: Shape, update: Shape) -> None:
    maximum, exclusive_maximum = zip(limits(original, "maximum"), limits(update, "maximum"), strict=True)
    minimum, exclusive_minimum = zip(limits(original, "minimum"), limits(update, "minimum"), strict=True)
    compare_limit(pair, "maximum", *maximum)
    compare_limit(pair, "minimum", *minimum)
    compare_limit(pair, "exclusiveMaximum", *exclusive_maximum)
    compare_limit(pair, "exclusiveMinimum", *exclusive_minimum)
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
