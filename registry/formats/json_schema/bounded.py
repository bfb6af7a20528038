"""Replacements for keywords of `jsonschema` that take unlimited time.

In `jsonschema`, patterns can backtrack without limit, unique items are compared pairwise, alternatives collect all
errors of all branches, and `multipleOf` uses floats. Each function has the signature of `jsonschema.validators.extend`.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from jsonschema import ValidationError

from headgate.registry.formats.json_schema.document import same_key
from headgate.registry.formats.json_schema.patterns import found
from headgate.registry.formats.json_schema.unevaluated import unevaluated_items, unevaluated_properties


def _multiple_of(validator: Any, factor: float, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Uses decimal digits as written: 0.3 is a multiple of 0.1, and numbers may be arbitrarily large."""
    if validator.is_type(instance, "number") and _fraction(instance) % _fraction(factor):
        yield ValidationError(f"is not a multiple of {factor}")


def _fraction(number: Any) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if found(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, additional: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    extras = [name for name in instance if name not in known and not any(found(each, name) for each in patterns)]
    if additional is False:
        if extras:
            names = ", ".join(repr(name) for name in extras[:10])
            yield ValidationError(f"additional properties are not allowed: {names}")
        return
    for name in extras:
        yield from validator.descend(instance[name], additional, path=name)


def _unique_items(validator: Any, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not wanted or not validator.is_type(instance, "array"):
        return
    seen: dict[str, int] = {}
    for index, value in enumerate(instance):
        earlier = seen.setdefault(same_key(value), index)
        if earlier != index:
            yield ValidationError(f"is the same as item {earlier}", path=(index,))
            return


def _any_of(validator: Any, members: list[Any], instance: Any, schema: Any) -> Iterator[ValidationError]:
    faults = []
    for index, member in enumerate(members):
        fault = next(validator.descend(instance, member, schema_path=index), None)
        if fault is None:
            return
        faults.append(fault)
    yield _none_of(faults)


def _one_of(validator: Any, members: list[Any], instance: Any, schema: Any) -> Iterator[ValidationError]:
    faults, accepting = [], []
    for index, member in enumerate(members):
        fault = next(validator.descend(instance, member, schema_path=index), None)
        if fault is None:
            accepting.append(index)
        else:
            faults.append(fault)
    if not accepting:
        yield _none_of(faults)
    elif len(accepting) > 1:
        yield ValidationError(f"is valid under more than one alternative: {', '.join(map(str, accepting[:10]))}")


def _none_of(faults: list[ValidationError]) -> ValidationError:
    """The message contains the first error of each alternative, up to a limit."""
    reasons = "; ".join(fault.message[:100] for fault in faults[:5])
    return ValidationError(f"is valid under none of the alternatives ({reasons})", context=faults)


KeywordCheck = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]

OWN: dict[str, KeywordCheck] = {
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "multipleOf": _multiple_of,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}

UNEVALUATED: dict[str, KeywordCheck] = {
    "unevaluatedItems": unevaluated_items,
    "unevaluatedProperties": unevaluated_properties,
}
