"""Hypothesis strategies for JSON Schemas."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from headgate.registry.formats.json_schema.drafts import Draft
from tests.rounds import rounds


def examples(count: int) -> settings:
    """The same examples in each run. `make test` uses a third of them."""
    return settings(
        max_examples=rounds(count // 3, count),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    )


URLS = {
    Draft.DRAFT_4: "http://json-schema.org/draft-04/schema#",
    Draft.DRAFT_6: "http://json-schema.org/draft-06/schema#",
    Draft.DRAFT_7: "http://json-schema.org/draft-07/schema#",
    Draft.DRAFT_2019: "https://json-schema.org/draft/2019-09/schema",
    Draft.DRAFT_2020: "https://json-schema.org/draft/2020-12/schema",
}

NAMES = st.sampled_from(["a", "b", "c"])
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 1.5, "", "a", "b", "(", "#/definitions/a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def _of_keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Valid keywords of draft-06 and later in any combination. References point to one of three definitions."""
    count = st.integers(0, 4)
    number = st.integers(-4, 4)
    schemas = st.lists(inner, min_size=1, max_size=3)
    by_name = st.dictionaries(NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
            "const": VALUES,
            "minLength": count,
            "maxLength": count,
            "pattern": st.sampled_from(["a", "^a", "b$"]),
            "minimum": number,
            "maximum": number,
            "multipleOf": st.integers(1, 4),
            "properties": by_name,
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^b"]), inner, max_size=2),
            "additionalProperties": inner,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "minProperties": count,
            "uniqueItems": st.booleans(),
            "items": inner,
            "maxItems": count,
            "contains": inner,
            "allOf": schemas,
            "anyOf": schemas,
            "oneOf": schemas,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "prefixItems": schemas,
            "unevaluatedItems": inner,
            "unevaluatedProperties": inner,
            "dependentSchemas": by_name,
            "default": VALUES,
            "title": st.sampled_from(["x", "y"]),
        },
    )


_REFERENCE = st.builds(lambda name: {"$ref": f"#/definitions/{name}"}, NAMES)

SUBSCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.just({}) | st.builds(lambda name: {"type": name}, st.sampled_from(TYPES)) | _REFERENCE,
    _of_keywords,
    max_leaves=8,
)

# Definitions contain references only below a property, so that no reference points directly to itself.
SCHEMAS: st.SearchStrategy[Any] = st.builds(
    lambda root, definitions, draft: {
        **(root if isinstance(root, dict) else {"allOf": [root]}),
        "$schema": URLS[draft],
        "definitions": {name: {"properties": {"deeper": definitions[name]}} for name in ("a", "b", "c")},
    },
    SUBSCHEMAS,
    st.fixed_dictionaries(dict.fromkeys(("a", "b", "c"), SUBSCHEMAS)),
    st.sampled_from([Draft.DRAFT_6, Draft.DRAFT_7, Draft.DRAFT_2019, Draft.DRAFT_2020]),
)
