"""Random schemas and values: encoded values are decoded again, and fastavro agrees in both directions."""

import io
import json
from typing import Any

import fastavro
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.serdes.avro import Decoder, Encoder, parse
from headgate.serdes.outcome import Poison
from tests.unit.serdes.avro_strategies import evolved, schemas, values

PROPERTY = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def fastavro_write(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def fastavro_read(body: bytes, writer: Any, reader: Any = None) -> Any:
    copies = [json.loads(json.dumps(schema)) for schema in (writer, reader)]
    return fastavro.schemaless_reader(
        io.BytesIO(body),
        fastavro.parse_schema(copies[0]),
        None if reader is None else fastavro.parse_schema(copies[1]),
    )


@PROPERTY
@given(st.data())
def test_encoded_values_are_decoded_by_both_libraries(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    value = data.draw(values(schema))
    parsed = parse(json.dumps(schema))
    body = Encoder(parsed).encode(value)
    assert Decoder(parsed).decode(body) == value
    assert fastavro_read(body, schema) == value


@PROPERTY
@given(st.data())
def test_bodies_of_fastavro_are_decoded(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    value = data.draw(values(schema))
    body = fastavro_write(schema, value)
    assert Decoder(parse(json.dumps(schema))).decode(body) == fastavro_read(body, schema)


@PROPERTY
@given(st.data())
def test_logical_values_survive_exactly(data: st.DataObject) -> None:
    schema = data.draw(schemas(logical=True))
    value = data.draw(values(schema))
    parsed = parse(json.dumps(schema))
    assert Decoder(parsed).decode(Encoder(parsed).encode(value)) == value


@PROPERTY
@given(st.data())
def test_an_evolved_reader_agrees_with_fastavro(data: st.DataObject) -> None:
    writer = data.draw(schemas(root="record", kin_in_unions=False))
    reader = data.draw(evolved(writer))
    body = Encoder(parse(json.dumps(writer))).encode(data.draw(values(writer)))
    ours = Decoder(parse(json.dumps(writer)), parse(json.dumps(reader))).decode(body)
    assert not isinstance(ours, Poison), ours
    assert ours == fastavro_read(body, writer, reader)


@PROPERTY
@given(st.data())
def test_truncated_bodies_and_trailing_bytes_are_poison(data: st.DataObject) -> None:
    schema = data.draw(schemas(root="record"))
    parsed = parse(json.dumps(schema))
    decoder = Decoder(parsed)
    body = Encoder(parsed).encode(data.draw(values(schema)))
    assert isinstance(decoder.decode(body + b"\x00"), Poison)
    if body:
        assert isinstance(decoder.decode(body[:-1]), Poison)


@PROPERTY
@given(st.data())
def test_any_bytes_are_decoded_or_poison(data: st.DataObject) -> None:
    schema = data.draw(schemas(logical=True))
    parsed = parse(json.dumps(schema))
    decoder = Decoder(parsed)
    body = data.draw(st.binary(max_size=60))
    outcome = decoder.decode(body)
    if not isinstance(outcome, Poison):
        # An accepted body is a value of the schema: it can be encoded and decoded again.
        again = decoder.decode(Encoder(parsed).encode(outcome))
        assert repr(again) == repr(outcome)
