"""Properties of all Protobuf schemas, tested with random files."""

import contextlib
import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.registry.compatibility.protobuf import check, differences
from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.protobuf import parse
from tests.rounds import rounds
from tests.unit.registry.protobuf.protoc import comparable, compiled
from tests.unit.registry.protobuf.strategies import files

ordinary = settings(
    deadline=None, derandomize=True, max_examples=rounds(25, 500), suppress_health_check=[HealthCheck.too_slow]
)


@ordinary
@given(files())
def test_the_descriptor_is_that_of_protoc(text: str) -> None:
    expected = compiled("made.proto", {"made.proto": text})
    assert expected is not None
    assert comparable(parse(text, {}).main.proto) == comparable(expected)


@ordinary
@given(files())
def test_a_round_trip_through_the_descriptor_keeps_the_text(text: str) -> None:
    schema = parse(text, {})
    for form in (schema.canonical, schema.serialized(), schema.normalized()):
        again = parse(form, {})
        if form != schema.normalized():
            assert comparable(again.main.proto, sort_fields=True) == comparable(schema.main.proto, sort_fields=True)
        assert parse(again.canonical, {}).canonical == again.canonical
        assert again.normalized() == schema.normalized()
        assert parse(again.serialized(), {}).serialized() == again.serialized()


@ordinary
@given(files())
def test_a_schema_reads_its_own_data(text: str) -> None:
    schema = parse(text, {})
    assert list(differences(schema, schema)) == []
    for form in (schema.canonical, schema.serialized(), schema.normalized()):
        again = parse(form, {})
        assert check(again, schema) == check(schema, again) == []


@ordinary
@given(files(), files())
def test_any_two_schemas_can_be_compared(one: str, other: str) -> None:
    found = check(parse(one, {}), parse(other, {}))
    assert all(item.path.startswith("#/") and item.message and item.advice for item in found)
    assert len({(item.kind, item.path) for item in found}) == len(found)


@ordinary
@given(files(), st.data())
def test_a_truncated_file_is_rejected_or_read_but_never_breaks_the_parser(text: str, data: st.DataObject) -> None:
    cut = text[: data.draw(st.integers(0, len(text)))]
    with contextlib.suppress(InvalidSchema):
        parse(cut, {})


@settings(deadline=None, derandomize=True, max_examples=rounds(100, 1000))
@given(st.text() | st.text(alphabet=string.printable) | st.text(alphabet="{}[]()<>=;,.\"'/*message optional int32 1 a"))
def test_any_text_is_a_schema_or_rejected(text: str) -> None:
    with contextlib.suppress(InvalidSchema):
        parse(text, {})
