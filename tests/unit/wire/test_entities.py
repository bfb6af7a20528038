"""kio entities from mappings, for every API and version."""

import dataclasses
import datetime
import uuid
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader
from kio.static.protocol import Entity

from headgate.wire.entities import entity_builder, entity_encoder, shape_of

METADATA, CREATE_TOPICS, CREATE_PARTITIONS = 3, 19, 37


def schemas() -> list[type[Entity]]:
    return [
        load(key, version)
        for key, name in api_key_map.items()
        for version in schema_name_map[name]
        for load in (load_request_schema, load_response_schema)
    ]


@pytest.mark.parametrize("schema", schemas(), ids=lambda schema: f"{schema.__name__}-{schema.__version__}")
def test_an_empty_mapping_becomes_a_message_that_kio_reads(schema: type[Entity]) -> None:
    encoded = entity_encoder(schema)({})
    entity, size = entity_reader(schema)(encoded, 0)
    assert size == len(encoded)
    assert entity_encoder(schema)(dataclasses.asdict(entity)) == encoded


def read(schema: Any, values: dict[str, object]) -> Any:
    encoded = entity_encoder(schema)(values)
    entity, size = entity_reader(schema)(encoded, 0)
    assert size == len(encoded)
    return entity


@pytest.mark.parametrize("version", schema_name_map[api_key_map[CREATE_TOPICS]])
def test_nested_structures_are_mappings(version: int) -> None:
    topic = {"name": "a", "num_partitions": 2, "replication_factor": 1, "configs": [{"name": "c", "value": None}]}
    entity = read(load_request_schema(CREATE_TOPICS, version), {"topics": [topic], "timeout": 1_500, "unknown": 1})
    assert (entity.topics[0].name, entity.topics[0].num_partitions, entity.topics[0].assignments) == ("a", 2, ())
    assert entity.topics[0].configs[0].value is None
    assert entity.timeout == datetime.timedelta(milliseconds=1_500)


@pytest.mark.parametrize("version", schema_name_map[api_key_map[METADATA]])
def test_fields_that_a_version_lacks_are_ignored(version: int) -> None:
    entity = read(
        load_response_schema(METADATA, version),
        {"topics": ({"name": "t", "topic_id": uuid.UUID(int=7), "error_code": ErrorCode.none},), "cluster_id": "c"},
    )
    assert entity.topics[0].name == "t"
    assert getattr(entity, "cluster_id", "c") == "c"
    assert getattr(entity.topics[0], "topic_id", uuid.UUID(int=7)) == uuid.UUID(int=7)


def test_null_and_empty_arrays_differ() -> None:
    schema = load_request_schema(CREATE_PARTITIONS, 3)
    given = {"name": "t", "count": 3}
    assert read(schema, {"topics": [given]}).topics[0].assignments == ()
    assert read(schema, {"topics": [{**given, "assignments": None}]}).topics[0].assignments is None


def test_the_builder_is_made_once_per_schema() -> None:
    schema = load_request_schema(METADATA, 12)
    assert entity_builder(schema) is entity_builder(schema)


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, (None, False, False)),
        (str | None, (None, False, True)),
        (tuple[int, ...], (None, True, False)),
        (tuple[int, ...] | None, (None, True, True)),
    ],
)
def test_the_shape_of_a_field_comes_from_its_annotation(hint: object, expected: tuple[object, bool, bool]) -> None:
    assert shape_of(hint) == expected
