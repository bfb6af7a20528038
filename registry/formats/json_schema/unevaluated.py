"""Finds the properties and items that `unevaluatedProperties` and `unevaluatedItems` ignore.

`jsonschema` uses lists instead of sets, and patterns without a time limit. Follows section 11 of the 2020-12 core
specification and section 9.3 of 2019-09, where `contains` does not evaluate items.
"""

from collections.abc import Iterator
from typing import Any

from jsonschema import ValidationError
from referencing.jsonschema import lookup_recursive_ref

from headgate.registry.formats.json_schema.patterns import found


def unevaluated_properties(validator: Any, rest: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    evaluated = _names(validator, instance, schema, nested=False)
    for name, value in instance.items():
        if name not in evaluated:
            if rest is False:
                yield ValidationError(f"unevaluated properties are not allowed: {name!r}", path=(name,))
            else:
                yield from validator.descend(value, rest, path=name)


def unevaluated_items(validator: Any, rest: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "array"):
        return
    evaluated = _indexes(validator, instance, schema, nested=False)
    for index, value in enumerate(instance):
        if index not in evaluated:
            if rest is False:
                yield ValidationError(f"unevaluated items are not allowed: {value!r}", path=(index,))
            else:
                yield from validator.descend(value, rest, path=index)


def _names(validator: Any, instance: Any, schema: Any, *, nested: bool = True) -> set[str]:
    if isinstance(schema, bool):
        return set()
    if "additionalProperties" in schema or (nested and "unevaluatedProperties" in schema):
        return set(instance)
    names = set(schema.get("properties", ())) & set(instance)
    for pattern in schema.get("patternProperties", ()):
        names.update(name for name in instance if name not in names and found(pattern, name))
    for other, applied in _applied(validator, instance, schema):
        names |= _names(other, instance, applied)
    for name, dependent in schema.get("dependentSchemas", {}).items():
        if name in instance:
            names |= _names(validator, instance, dependent)
    return names


def _indexes(validator: Any, instance: Any, schema: Any, *, nested: bool = True) -> set[int]:
    if isinstance(schema, bool):
        return set()
    items = schema.get("items")
    is_tuple = isinstance(items, list)  # in 2019-09 only
    if nested and "unevaluatedItems" in schema:
        return set(range(len(instance)))
    if (items is not None and not is_tuple) or (is_tuple and "additionalItems" in schema):
        return set(range(len(instance)))
    indexes = set(range(min(len(items if is_tuple else schema.get("prefixItems", ())), len(instance))))
    if "contains" in schema and not _is_2019(validator):
        contains = validator.evolve(schema=schema["contains"])
        indexes.update(index for index, value in enumerate(instance) if contains.is_valid(value))
    for other, applied in _applied(validator, instance, schema):
        indexes |= _indexes(other, instance, applied)
    return indexes


def _applied(validator: Any, instance: Any, schema: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The schemas that also apply to the same value and accept it, each with its validator."""
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            resolved = validator._resolver.lookup(schema[keyword])
            yield validator.evolve(schema=resolved.contents, _resolver=resolved.resolver), resolved.contents
    if "$recursiveRef" in schema and _is_2019(validator):
        resolved = lookup_recursive_ref(validator._resolver)
        yield validator.evolve(schema=resolved.contents, _resolver=resolved.resolver), resolved.contents
    for keyword in ("allOf", "anyOf", "oneOf"):
        for member in schema.get(keyword, ()):
            if validator.evolve(schema=member).is_valid(instance):
                yield validator, member
    if "if" in schema:
        if validator.evolve(schema=schema["if"]).is_valid(instance):
            yield validator, schema["if"]
            branch = "then"
        else:
            branch = "else"
        if branch in schema:
            yield validator, schema[branch]


def _is_2019(validator: Any) -> bool:
    return "$recursiveRef" in validator.VALIDATORS
