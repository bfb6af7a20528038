"""Compares the declared types of handler requests with kio's entities for every supported version."""

import ast
import dataclasses
import inspect
import typing
from datetime import timedelta
from importlib import import_module
from types import ModuleType, NoneType
from typing import Any
from uuid import UUID

import pytest

from headgate.broker.dispatch.handler_table import MODULES
from headgate.broker.handlers import fetch, leave_group, metadata, offset_commit, produce
from headgate.broker.protocol import request_shapes
from headgate.broker.protocol.entities import read_request, request_type
from headgate.wire.entities import entity_encoder, shape_of

PYTHON_TYPES = {
    "bool": bool,
    "int8": int,
    "int16": int,
    "int32": int,
    "int64": int,
    "string": str,
    "bytes": bytes,
    "records": bytes,
    "timedelta_i32": timedelta,
    "timedelta_i64": timedelta,
    "uuid": UUID,
}

# Up to version 7, the request itself is the group. The handler reads topic ids only from version 10 on.
NOT_READ = {f"OffsetFetchRequest v{version}.topics.topic_id does not exist" for version in range(1, 8)}


# The kio classes that `request_shapes` imports only for the type checker, by name.
KIO_TYPES: dict[str, Any] = {
    name.name: getattr(import_module(node.module), name.name)
    for node in ast.walk(ast.parse(inspect.getsource(request_shapes)))
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kio.schema") and node.module
    for name in node.names
}


def requested_shape(module: ModuleType) -> Any:
    (function,) = ast.parse(inspect.getsource(module.handle)).body
    assert isinstance(function, ast.FunctionDef)
    annotation = function.args.args[2].annotation
    assert isinstance(annotation, ast.Name)
    return KIO_TYPES.get(annotation.id) or getattr(request_shapes, annotation.id)


def members_of(hint: object) -> set[object]:
    """Return the types of a union, without None."""
    args = typing.get_args(hint)
    return {member for member in args if member is not NoneType} if NoneType in args or len(args) > 1 else {hint}


def mismatches(shape: Any, entity: Any, path: str) -> list[str]:
    found = []
    hints = typing.get_type_hints(entity)
    fields = {field.name: field for field in dataclasses.fields(entity)}
    for name, hint in typing.get_type_hints(shape, localns=KIO_TYPES).items():
        where = f"{path}.{name}"
        if name.startswith("__"):
            continue
        if name not in fields:
            if not hasattr(entity, name):
                found.append(f"{where} does not exist")
            elif getattr(entity, name) is None and NoneType not in typing.get_args(hint):
                found.append(f"{where} can be None")
            continue
        nested, is_array, is_optional = shape_of(hints[name])
        if is_optional and NoneType not in typing.get_args(hint):
            found.append(f"{where} can be None")
        expected = hint if typing.get_origin(hint) is tuple else next(iter(members_of(hint)))
        if is_array != (typing.get_origin(expected) is tuple):
            found.append(f"{where} is an array in only one of the two")
            continue
        item = typing.get_args(expected)[0] if is_array else expected
        if item is object:
            continue
        if nested is not None:
            found += mismatches(item, nested, where)
        elif not any(
            issubclass(each, PYTHON_TYPES[str(fields[name].metadata["kafka_type"])])
            for each in {item, *members_of(hint)}
            if isinstance(each, type)
        ):
            found.append(f"{where} has another type")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_version_has_the_fields_that_the_handler_reads(module: ModuleType) -> None:
    shape = requested_shape(module)
    for version in module.VERSIONS:
        entity = request_type(module.API_KEY, version)
        found = mismatches(shape, entity, f"{entity.__name__} v{version}") if shape is not object else ()
        assert set(found) <= NOT_READ


def test_a_field_that_exists_in_no_version_is_a_mismatch() -> None:
    class Misspelled(typing.Protocol):
        group: str

    assert mismatches(Misspelled, request_type(leave_group.API_KEY, 5), "v5") == ["v5.group does not exist"]


def read(module: ModuleType, version: int, fields: dict[str, object]) -> Any:
    entity = request_type(module.API_KEY, version)
    return read_request(module.API_KEY, version, entity_encoder(entity)(fields), 0)


def test_fields_of_newer_versions_have_their_default_in_an_old_request() -> None:
    request = read(fetch, 4, {"topics": [{"topic": "a", "partitions": [{"partition": 3, "fetch_offset": 7}]}]})
    asked = request.topics[0].partitions[0]
    assert (request.session_epoch, request.rack_id, request.forgotten_topics_data) == (-1, "", ())
    assert (asked.partition, asked.fetch_offset) == (3, 7)
    assert (asked.current_leader_epoch, asked.last_fetched_epoch) == (-1, -1)
    assert request.topics[0].topic_id is None
    assert read(metadata, 0, {"topics": []}).allow_auto_topic_creation is True


def test_fields_of_older_versions_have_their_default_in_a_new_request() -> None:
    topic_id = UUID(int=7)
    request = read(produce, 13, {"topic_data": [{"topic_id": topic_id, "partition_data": [{"index": 1}]}]})
    assert (request.topic_data[0].topic_id, request.topic_data[0].name) == (topic_id, "")
    assert read(leave_group, 5, {"group_id": "g"}).member_id == ""
    assert read(offset_commit, 10, {"group_id": "g"}).retention_time == timedelta(milliseconds=-1)


def test_requests_have_no_instance_dictionary() -> None:
    request = read(fetch, 4, {"topics": [{"topic": "a", "partitions": []}]})
    assert not hasattr(request, "__dict__")
    assert not hasattr(request.topics[0], "__dict__")
