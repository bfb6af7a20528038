"""Compares one pair of subschemas: first the shape, then the keywords."""

from headgate.registry.compatibility.json_schema.arrays import compare_arrays
from headgate.registry.compatibility.json_schema.combinations import compare_combinations, plain_reads, reads_plain
from headgate.registry.compatibility.json_schema.comparison import ComparePair, PairComparison
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.objects import compare_objects
from headgate.registry.compatibility.json_schema.scalars import (
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_strings,
)
from headgate.registry.compatibility.json_schema.shapes import Kind, Shape


def compare_pair(pair: PairComparison, original: Shape, update: Shape) -> None:
    if original.kind is Kind.FALSE or update.kind is Kind.EMPTY:
        return
    if original.kind is not update.kind:
        if update.kind is Kind.COMBINED and reads_plain(pair, original, update):
            return
        if original.kind is Kind.COMBINED and plain_reads(pair, original, update):
            return
        if not _both_are_bytes(original, update):
            pair.difference(Difference.TYPE_CHANGED)
        return
    by_keywords = _BY_KIND.get(original.kind)
    if by_keywords is not None:
        by_keywords(pair, original, update)


def _compare_negations(pair: PairComparison, original: Shape, update: Shape) -> None:
    """`not` is compared in the opposite direction: forbidding less is compatible."""
    forbidden, now_forbidden = original.source.one("not"), update.source.one("not")
    assert forbidden is not None
    assert now_forbidden is not None
    if not pair.readable(now_forbidden, forbidden):
        pair.difference(Difference.NOT_TYPE_EXTENDED, "/not", forbidden.value, now_forbidden.value)


def _both_are_bytes(original: Shape, update: Shape) -> bool:
    """Kafka Connect writes bytes and decimals as strings or numbers, depending on its configuration. It reads both."""
    return all(
        isinstance(shape.source.value, dict) and shape.get("connect.type") == "bytes" for shape in (original, update)
    )


# Conditionals are not compared, as in Confluent's registry. true, null and booleans have no keywords.
_BY_KIND: dict[Kind, ComparePair] = {
    Kind.STRING: compare_strings,
    Kind.NUMBER: compare_numbers,
    Kind.ENUM: compare_enums,
    Kind.CONST: compare_constants,
    Kind.COMBINED: compare_combinations,
    Kind.NOT: _compare_negations,
    Kind.OBJECT: compare_objects,
    Kind.ARRAY: compare_arrays,
}
