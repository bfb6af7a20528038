"""Differences between two JSON Schemas, keyword by keyword.

References are followed, and paths have the form of the checker: the keywords from the root to the difference. A path
ends at a pair of schemas that contains itself.
"""

from collections.abc import Iterator
from typing import Any, Final

from headgate.registry.evolution.difference import Difference, shortened
from headgate.registry.formats.json_schema.document import same_key
from headgate.registry.formats.json_schema.document import shortened as value_text
from headgate.registry.formats.json_schema.subschema import Subschema

# References multiply paths. The checker has the same limit for its report.
STEPS_MAX: Final = 20_000
_LEVELS_MAX: Final = 100

_ANNOTATIONS: Final = frozenset(
    {
        *("$id", "id", "$schema", "$comment", "title", "description", "default", "examples"),
        *("deprecated", "readOnly", "writeOnly"),
    }
)
_DEFINITIONS: Final = frozenset({"definitions", "$defs", "$ref", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
_DEPENDENCIES: Final = frozenset({"dependencies", "dependentRequired", "dependentSchemas"})
_ENTRY_NAMES: Final = {"properties": "property", "patternProperties": "pattern property"}
_Steps = Iterator["Difference | tuple[str, Subschema, Subschema]"]


def differences(old: Subschema, new: Subschema) -> Iterator[Difference]:
    """All differences. Iterative, because chains of references can be long."""
    above: list[tuple[int, int]] = []
    stack: list[_Steps] = [iter([("#", old, new)])]
    steps, path = 0, "#"
    while stack and steps < STEPS_MAX:
        steps += 1
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
            if above:
                above.pop()
        elif isinstance(item, Difference):
            yield item
        else:
            path, was, now = item[0], _target(item[1]), _target(item[2])
            key = (id(was), id(now))
            if key not in above and len(stack) < _LEVELS_MAX:
                above.append(key)
                stack.append(_compare(path, was, now))
    if stack:
        yield Difference("not compared further", path, "", "the references have too many paths")


def _target(schema: Subschema) -> Subschema:
    """The schema that a plain reference leads to."""
    seen: set[int] = set()
    while schema.is_reference and id(schema) not in seen:
        seen.add(id(schema))
        schema = schema.targets[0]
    return schema


def _compare(path: str, old: Subschema, new: Subschema) -> _Steps:
    if not isinstance(old.value, dict) or not isinstance(new.value, dict):
        if old.value is not new.value:
            yield Difference("schema changed", path, *_texts(old.value, new.value), path, path)
        return
    for keyword in dict.fromkeys((*old.value, *new.value)):
        place = f"{path}/{keyword}"
        was, now = old.children.get(keyword), new.children.get(keyword)
        if keyword in _DEFINITIONS:
            continue
        if keyword not in _DEPENDENCIES and (isinstance(was, dict) or isinstance(now, dict)):
            yield from _entries(path, keyword, old, new)
        elif isinstance(was, list) and isinstance(now, list):
            yield from _members(place, keyword, was, now)
        elif isinstance(was, Subschema) and isinstance(now, Subschema):
            yield place, was, now
        elif keyword == "required":
            yield from _required(path, old, new)
        elif keyword not in old.value or keyword not in new.value or _differ(old.value[keyword], new.value[keyword]):
            yield _keyword(path, keyword, old.value, new.value)


def _entries(path: str, keyword: str, old: Subschema, new: Subschema) -> _Steps:
    """Schemas by name: properties and patterns."""
    before, after = old.named(keyword), new.named(keyword)
    noun = _ENTRY_NAMES.get(keyword, keyword)
    required = set(_names(new, "required"))
    for name in dict.fromkeys((*before, *after)):
        place = f"{path}/{keyword}/{name}"
        if name in before and name in after:
            yield place, before[name], after[name]
        elif name in before:
            yield Difference(f"{noun} removed", place, value_text(before[name].value), "", place, place)
        else:
            demanded = keyword == "properties" and name in required
            text = value_text(after[name].value)
            yield Difference(f"{'required ' if demanded else ''}{noun} added", place, "", text, place, place)


def _members(place: str, keyword: str, old: list[Subschema], new: list[Subschema]) -> _Steps:
    """Members of anyOf, oneOf and allOf in any order, and items of a tuple by position."""
    if keyword in ("items", "prefixItems"):
        pairs = min(len(old), len(new))
        yield from ((f"{place}/{at}", old[at], new[at]) for at in range(pairs))
        removed, added = [*enumerate(old)][pairs:], [*enumerate(new)][pairs:]
    else:
        before, after = ({same_key(one.value) for one in side} for side in (old, new))
        removed = [(at, one) for at, one in enumerate(old) if same_key(one.value) not in after]
        added = [(at, one) for at, one in enumerate(new) if same_key(one.value) not in before]
        # A reference can have the same text and another target.
        kept = {same_key(one.value): one for one in old}
        yield from (
            (f"{place}/{at}", kept[key], one) for at, one in enumerate(new) if (key := same_key(one.value)) in kept
        )
        if len(removed) == len(added) == 1:
            yield f"{place}/{added[0][0]}", removed[0][1], added[0][1]
            return
    for at, one in removed:
        where = f"{place}/{at}"
        yield Difference(f"{keyword} member removed", where, value_text(one.value), "", where, where)
    for at, one in added:
        where = f"{place}/{at}"
        yield Difference(f"{keyword} member added", where, "", value_text(one.value), where, where)


def _required(path: str, old: Subschema, new: Subschema) -> Iterator[Difference]:
    """Names of added and removed properties are part of these differences."""
    before, after = _names(old, "required"), _names(new, "required")
    for name in after:
        if name not in before and (name in old.named("properties") or name not in new.named("properties")):
            place = f"{path}/required/{name}"
            yield Difference("property made required", place, "", "", place, place)
    for name in before:
        if name not in after and (name in new.named("properties") or name not in old.named("properties")):
            place = f"{path}/required/{name}"
            yield Difference("property made optional", place, "", "", place, place)


def _names(schema: Subschema, keyword: str) -> list[str]:
    held = schema.value.get(keyword)
    return [name for name in held if isinstance(name, str)] if isinstance(held, list) else []


def _keyword(path: str, keyword: str, old: dict[str, Any], new: dict[str, Any]) -> Difference:
    verb = "added" if keyword not in old else "changed" if keyword in new else "removed"
    texts = _texts(*(side.get(keyword) for side in (old, new)))
    place = f"{path}/{keyword}"
    if keyword in _ANNOTATIONS:
        return Difference(f"{keyword} {verb}", place, *texts)
    # The checker reports a different type at the position of the schema, and has one name for dependencies.
    found_at = path if keyword == "type" else f"{path}/dependencies" if keyword in _DEPENDENCIES else place
    if keyword == "type":
        verb = _type_verb(old.get("type"), new.get("type"))
    return Difference(f"{shortened(keyword)} {verb}", place, *texts, found_at, found_at)


def _type_verb(old: Any, new: Any) -> str:
    before, after = _types(old), _types(new)
    if before == after:
        return "reordered"
    return "widened" if before < after else "narrowed" if before > after else "changed"


def _types(value: Any) -> set[str]:
    """The types, where number includes integer. No type means every type."""
    if value is None:
        return {"null", "boolean", "object", "array", "number", "integer", "string"}
    names = set(value) if isinstance(value, list) else {str(value)}
    return names | {"integer"} if "number" in names else names


def _differ(old: Any, new: Any) -> bool:
    return same_key(old) != same_key(new)


def _texts(old: Any, new: Any) -> tuple[str, str]:
    return ("" if old is None else value_text(old), "" if new is None else value_text(new))
