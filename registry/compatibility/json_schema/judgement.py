"""How one pair of schemas is judged: by shape first, then keyword by keyword."""

from headgate.registry.compatibility.json_schema.arrays import judge_arrays
from headgate.registry.compatibility.json_schema.combinations import judge_combinations, plain_reads, reads_plain
from headgate.registry.compatibility.json_schema.comparison import Asking, Judge
from headgate.registry.compatibility.json_schema.kinds import Difference
from headgate.registry.compatibility.json_schema.objects import judge_objects
from headgate.registry.compatibility.json_schema.scalars import (
    judge_constants,
    judge_enums,
    judge_numbers,
    judge_strings,
)
from headgate.registry.compatibility.json_schema.shapes import Kind, Shape


def judge(asking: Asking, original: Shape, update: Shape) -> None:
    if original.kind is Kind.FALSE or update.kind is Kind.EMPTY:
        return
    if original.kind is not update.kind:
        if update.kind is Kind.COMBINED and reads_plain(asking, original, update):
            return
        if original.kind is Kind.COMBINED and plain_reads(asking, original, update):
            return
        if not _both_are_bytes(original, update):
            asking.difference(Difference.TYPE_CHANGED)
        return
    by_keywords = _BY_KIND.get(original.kind)
    if by_keywords is not None:
        by_keywords(asking, original, update)


def _judge_negations(asking: Asking, original: Shape, update: Shape) -> None:
    """What `not` forbids is compared the other way round: forbidding less is fine."""
    forbidden, now_forbidden = original.source.one("not"), update.source.one("not")
    assert forbidden is not None
    assert now_forbidden is not None
    if not asking.readable(now_forbidden, forbidden):
        asking.difference(Difference.NOT_TYPE_EXTENDED, "/not", forbidden.value, now_forbidden.value)


def _both_are_bytes(original: Shape, update: Shape) -> bool:
    """Kafka Connect writes bytes and decimals as strings or numbers as it is set; it reads both."""
    return all(
        isinstance(shape.source.value, dict) and shape.get("connect.type") == "bytes" for shape in (original, update)
    )


# Conditionals are not compared, as in Confluent's registry; true, null and the booleans have nothing to compare.
_BY_KIND: dict[Kind, Judge] = {
    Kind.STRING: judge_strings,
    Kind.NUMBER: judge_numbers,
    Kind.ENUM: judge_enums,
    Kind.CONST: judge_constants,
    Kind.COMBINED: judge_combinations,
    Kind.NOT: _judge_negations,
    Kind.OBJECT: judge_objects,
    Kind.ARRAY: judge_arrays,
}
