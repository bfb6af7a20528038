"""The requirements of each draft for each keyword (the meta-schemas), as a table.

With this table, a schema is checked level by level, without recursion, and errors name the keyword. A test compares the
table with the published meta-schemas. The table also describes which keywords contain subschemas.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, Final

import regex

from headgate.registry.formats.json_schema.document import same_key
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.patterns import translate

Check = Callable[[Any], str | None]
"""An error message, or None."""

SIMPLE_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


class Holds(Enum):
    """Where the value of a keyword contains subschemas."""

    NOTHING = "nothing"
    SCHEMA = "a schema"
    SCHEMAS = "a list of schemas"
    SCHEMA_OR_SCHEMAS = "a schema or a list of them"
    SCHEMA_MAP = "schemas by name"
    DEPENDENCIES = "schemas or lists of names, by name"


@dataclass(frozen=True, slots=True)
class Keyword:
    check: Check
    holds: Holds = Holds.NOTHING


def is_number(value: Any) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _anything(_: Any) -> str | None:
    return None


def _string(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _boolean(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _number(value: Any) -> str | None:
    return None if is_number(value) else "must be a number"


def _positive(value: Any) -> str | None:
    return None if is_number(value) and value > 0 else "must be a number greater than 0"


def _count(value: Any) -> str | None:
    if is_number(value) and value >= 0 and value == int(value):
        return None
    return "must be a whole number, 0 or more"


def _array(value: Any) -> str | None:
    return None if isinstance(value, list) else "must be an array"


def _distinct(values: Iterable[Any]) -> bool:
    keys = [same_key(value) for value in values]
    return len(set(keys)) == len(keys)


def _enum_nonempty_distinct(value: Any) -> str | None:
    if isinstance(value, list) and value and _distinct(value):
        return None
    return "must be an array of one or more different values"


def _names(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value):
        return None
    return "must be an array of different strings"


def _names_nonempty(value: Any) -> str | None:
    return _names(value) if value else "must be an array of one or more different strings"


def _type(value: Any) -> str | None:
    if isinstance(value, str) and value in SIMPLE_TYPES:
        return None
    if isinstance(value, list) and value and all(isinstance(name, str) and name in SIMPLE_TYPES for name in value):
        return None if len(set(value)) == len(value) else "names a type twice"
    return f"must be one of {', '.join(SIMPLE_TYPES)}, or a list of them"


def _pattern(value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    try:
        translate(value)
    except regex.error as error:
        return f"is not a regular expression: {error}"
    return None


def _matching(expression: str, words: str) -> Check:
    compiled = regex.compile(expression)

    def check(value: Any) -> str | None:
        return None if isinstance(value, str) and compiled.search(value) else words

    return check


def _schema(draft: Draft) -> Check:
    if draft is Draft.DRAFT_4:
        return lambda value: None if isinstance(value, dict) else "must be a schema: an object"
    return lambda value: None if isinstance(value, (dict, bool)) else "must be a schema: an object, true or false"


def _list_of(item: Check) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, list) or not value:
            return "must be an array of one or more schemas"
        return next((f"has at {index} what {words}" for index, each in enumerate(value) if (words := item(each))), None)

    return check


def _map_of(item: Check, *, patterns: bool = False) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return "must be an object"
        for name, each in value.items():
            if words := item(each):
                return f"has under {name!r} what {words}"
            if patterns and (words := _pattern(name)):
                return f"has the name {name!r}, which {words}"
        return None

    return check


def _either(first: Check, second: Check, words: str) -> Check:
    return lambda value: None if first(value) is None or second(value) is None else words


def _table(draft: Draft) -> dict[str, Keyword]:
    schema = _schema(draft)
    names = _names_nonempty if draft is Draft.DRAFT_4 else _names
    one = Keyword(schema, Holds.SCHEMA)
    many = Keyword(_list_of(schema), Holds.SCHEMAS)
    by_name = Keyword(_map_of(schema), Holds.SCHEMA_MAP)
    schema_or_boolean = Keyword(_either(schema, _boolean, "must be a schema, true or false"), Holds.SCHEMA)
    table = {
        "$schema": Keyword(_string),
        "title": Keyword(_string),
        "description": Keyword(_string),
        "multipleOf": Keyword(_positive),
        "maximum": Keyword(_number),
        "minimum": Keyword(_number),
        "pattern": Keyword(_pattern),
        "uniqueItems": Keyword(_boolean),
        "required": Keyword(names),
        "type": Keyword(_type),
        "additionalProperties": schema_or_boolean,
        "properties": by_name,
        "patternProperties": Keyword(_map_of(schema, patterns=draft is not Draft.DRAFT_4), Holds.SCHEMA_MAP),
        "definitions": by_name,
        "dependencies": Keyword(
            _map_of(_either(schema, names, "must be a schema or an array of names")), Holds.DEPENDENCIES
        ),
        "allOf": many,
        "anyOf": many,
        "oneOf": many,
        "not": one,
        "format": Keyword(_string),
        "enum": Keyword(_enum_nonempty_distinct if draft is Draft.DRAFT_4 else _array),
    }
    for name in ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"):
        table[name] = Keyword(_count)
    if draft is Draft.DRAFT_2020:
        table["items"] = one
        table["prefixItems"] = many
    else:
        either = _either(schema, _list_of(schema), "must be a schema or an array of one or more schemas")
        table["items"] = Keyword(either, Holds.SCHEMA_OR_SCHEMAS)
        table["additionalItems"] = schema_or_boolean
    if draft is Draft.DRAFT_4:
        table |= {"id": Keyword(_string), "$ref": Keyword(_string)}
        table |= {"exclusiveMaximum": Keyword(_boolean), "exclusiveMinimum": Keyword(_boolean)}
        return table
    table |= {
        "$id": Keyword(_string),
        "$ref": Keyword(_string),
        "exclusiveMaximum": Keyword(_number),
        "exclusiveMinimum": Keyword(_number),
        "const": Keyword(_anything),
        "contains": one,
        "propertyNames": one,
        "examples": Keyword(_array),
    }
    if draft >= Draft.DRAFT_7:
        table |= {"if": one, "then": one, "else": one}
        table |= {"$comment": Keyword(_string), "readOnly": Keyword(_boolean)}
        table |= {"contentMediaType": Keyword(_string), "contentEncoding": Keyword(_string)}
    if draft >= Draft.DRAFT_2019:
        table |= {
            "$id": Keyword(_matching(r"^([^#]*#?|#[^#]+)$", "must be an address without a fragment")),
            "$defs": by_name,
            "$vocabulary": Keyword(_map_of(_boolean)),
            "maxContains": Keyword(_count),
            "minContains": Keyword(_count),
            "dependentSchemas": by_name,
            "dependentRequired": Keyword(_map_of(_names)),
            "unevaluatedItems": one,
            "unevaluatedProperties": one,
            "contentSchema": one,
            "deprecated": Keyword(_boolean),
            "writeOnly": Keyword(_boolean),
        }
    anchor = _matching(r"^[A-Za-z_][-A-Za-z0-9._]*$", "must be a name: a letter, then letters, digits, - . _")
    if draft is Draft.DRAFT_2019:
        table |= {
            "$anchor": Keyword(_matching(r"^[A-Za-z][-A-Za-z0-9.:_]*$", "must be a name that starts with a letter")),
            "$recursiveRef": Keyword(_string),
            "$recursiveAnchor": Keyword(_boolean),
        }
    if draft is Draft.DRAFT_2020:
        table |= {"$anchor": Keyword(anchor), "$dynamicRef": Keyword(_string), "$dynamicAnchor": Keyword(anchor)}
        table |= {"$recursiveRef": Keyword(_string), "$recursiveAnchor": Keyword(anchor)}  # without meaning there
    return table


KEYWORDS: Mapping[Draft, Mapping[str, Keyword]] = {draft: _table(draft) for draft in Draft}


def complaint(value: dict[str, Any], draft: Draft, *, strict: bool = True) -> tuple[str, str] | None:
    """The first keyword of this level that violates its requirement, with the error. Nested levels are not checked.

    Without `strict`, arrays may be empty where the draft requires at least one entry.
    """
    table = KEYWORDS[draft]
    for name, content in value.items():
        keyword = table.get(name)
        if keyword is not None and (strict or content != []) and (words := keyword.check(content)):
            return name, words
    if draft is Draft.DRAFT_4:
        for name, needed in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
            if name in value and needed not in value:
                return name, f"needs {needed} next to it"
    return None
