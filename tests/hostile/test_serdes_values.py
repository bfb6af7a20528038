"""Any Python value, JSON document or schema text is accepted, or rejected with a reason. No other error occurs."""

import contextlib
import json
from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.registry.errors import InvalidSchema
from headgate.serdes.avro import Decoder, Encoder, JsonEncoding, parse
from headgate.serdes.errors import EncodeError
from headgate.serdes.outcome import Poison
from tests.unit.serdes.avro_strategies import schemas

PROPERTY = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=6),
        st.binary(max_size=6),
        st.decimals(),
        st.datetimes(),
        st.dates(),
        st.times(),
        st.uuids(),
        st.just(datetime(2020, 1, 1, tzinfo=UTC)),
        st.just(Decimal("1e-999999")),
        st.just(object()),
        st.tuples(st.text(max_size=4), st.integers()),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from("abcdefgh"), st.integers()), inner, max_size=3),
        st.tuples(st.sampled_from(["int", "string", "N1", "null"]), inner),
    ),
    max_leaves=6,
)

DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "int", "string", "N1", "array", "map"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@PROPERTY
@given(schemas(logical=True), ANYTHING)
def test_any_value_is_written_or_refused(schema: object, value: object) -> None:
    parsed = parse(json.dumps(schema))
    with contextlib.suppress(EncodeError):
        body = Encoder(parsed).encode(value)
        assert not isinstance(Decoder(parsed).decode(body), Poison)
    with contextlib.suppress(EncodeError):
        JsonEncoding(parsed).to_text(value)


@PROPERTY
@given(schemas(logical=True), DOCUMENTS)
def test_any_document_is_read_or_refused(schema: object, document: object) -> None:
    parsed = parse(json.dumps(schema))
    with contextlib.suppress(EncodeError):
        value = JsonEncoding(parsed, tag_unions=True).from_json(document)
        assert not isinstance(Decoder(parsed).decode(Encoder(parsed).encode(value)), Poison)


@PROPERTY
@given(st.one_of(st.text(), DOCUMENTS.map(json.dumps), schemas(logical=True).map(lambda s: json.dumps(s)[:-1])))
def test_any_text_is_a_schema_or_is_not(text: str) -> None:
    with contextlib.suppress(InvalidSchema):
        parse(text)
