"""The table of keywords agrees with the published meta-schemas in `jsonschema`."""

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.json_schema import parse
from headgate.registry.formats.json_schema.drafts import Draft
from headgate.registry.formats.json_schema.keywords import KEYWORDS
from tests.unit.registry.json_schema.schemas import SCHEMAS, URLS, VALUES, examples

PEERS: dict[Draft, Any] = {
    Draft.DRAFT_4: jsonschema.Draft4Validator,
    Draft.DRAFT_6: jsonschema.Draft6Validator,
    Draft.DRAFT_7: jsonschema.Draft7Validator,
    Draft.DRAFT_2019: jsonschema.Draft201909Validator,
    Draft.DRAFT_2020: jsonschema.Draft202012Validator,
}

# Not covered by the meta-schemas: targets of references, `$ref` in draft-04, and formats such as URIs and patterns.
NOT_COMPARED = {"$schema", "$ref", "$dynamicRef", "$recursiveRef", "$id", "id", "pattern", "patternProperties"}


def is_valid_here(schema: Any, draft: Draft) -> bool:
    try:
        parse(json.dumps({"$schema": URLS[draft], **schema}), {})
    except InvalidSchema:
        return False
    return True


@pytest.mark.parametrize("draft", list(Draft))
@examples(250)
@given(data=st.data())
def test_a_keyword_with_any_value_is_valid_when_the_meta_schema_says_so(draft: Draft, data: st.DataObject) -> None:
    names = sorted({name for table in KEYWORDS.values() for name in table} - NOT_COMPARED)
    # With `maximum`, because draft-04 requires it.
    schema = {data.draw(st.sampled_from(names)): data.draw(VALUES), "maximum": 1, "minimum": 1}
    expected = PEERS[draft](PEERS[draft].META_SCHEMA).is_valid(schema)
    assert is_valid_here(schema, draft) is expected


@examples(60)
@given(SCHEMAS)
def test_whole_schemas_are_valid_when_the_meta_schema_says_so(schema: dict[str, Any]) -> None:
    draft = next(draft for draft, url in URLS.items() if url == schema["$schema"])
    expected = PEERS[draft](PEERS[draft].META_SCHEMA).is_valid(schema)
    assert is_valid_here(schema, draft) is expected


def test_every_keyword_of_the_meta_schemas_is_in_the_table() -> None:
    for draft, peer in PEERS.items():
        published = set(peer.META_SCHEMA.get("properties", {}))
        assert published - set(KEYWORDS[draft]) <= {"default"}, draft
