"""The schema source of the columnar decoder."""

from headgate.serdes import Reason, RegistryClient, RegistrySettings
from headgate.serdes.avro import Decoder
from headgate.serdes.avro.schema import Record
from headgate.serdes.columnar.decode.schema_source import SchemaSource
from headgate.serdes.registry_source import RegistrySource
from tests.unit.serdes.stub_registry import ADDRESS, StubRegistry, error

INNER = '{"type": "record", "name": "Inner", "fields": [{"name": "a", "type": "int"}]}'
OUTER = '{"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "Inner"}]}'


def source(stub: StubRegistry) -> RegistrySource:
    settings = RegistrySettings((ADDRESS,), attempts_max=1)
    return RegistrySource(RegistryClient(settings, transport=stub.transport))


def test_a_schema_is_fetched_once_with_its_references() -> None:
    stub = StubRegistry()
    stub.add("inner", {"schema": INNER})
    stub.add("outer", {"schema": OUTER, "references": [{"name": "Inner", "subject": "inner", "version": 1}]})
    schemas: SchemaSource = source(stub)
    found = schemas.writer_schema(2)
    assert isinstance(found, Record)
    assert Decoder(found).decode(b"\x0e") == {"i": {"a": 7}}
    assert schemas.writer_schema(2) is found
    assert len(stub.requests) == 2


def test_an_unavailable_schema_has_a_reason() -> None:
    stub = StubRegistry()
    stub.add("json", {"schema": "{}", "schemaType": "JSON"})
    stub.add("broken", {"schema": '{"type": "record"}'})
    schemas = source(stub)
    assert schemas.writer_schema(1) == Reason.UNRESOLVABLE
    assert schemas.writer_schema(2) == Reason.UNRESOLVABLE
    assert schemas.writer_schema(9) == Reason.UNKNOWN_SCHEMA
    stub.intercept = lambda request: error(503, 50301, "down")
    assert schemas.writer_schema(10) == Reason.REGISTRY_UNAVAILABLE
    asked = len(stub.requests)
    assert [schemas.writer_schema(n) for n in (1, 9, 10)] == [
        Reason.UNRESOLVABLE,
        Reason.UNKNOWN_SCHEMA,
        Reason.REGISTRY_UNAVAILABLE,
    ]
    assert len(stub.requests) == asked
