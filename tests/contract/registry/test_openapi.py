"""The OpenAPI document and the routes agree."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from starlette.routing import Route

from headgate.openapi.documents import document
from headgate.registry.api import create_app
from headgate.registry.api.server import open_registry
from tests.live.registry import RegistryApi

DOCUMENT: dict[str, Any] = yaml.safe_load(document("registry"))
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}


def documented() -> set[tuple[str, str]]:
    return {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
        if method in METHODS
    }


def routed(routes: Sequence[Route]) -> set[tuple[str, str]]:
    return {(method, route.path) for route in routes for method in route.methods or () if method != "HEAD"}


def test_every_route_is_documented_and_every_documented_route_exists(tmp_path: Path) -> None:
    registry = open_registry(tmp_path)
    try:
        front = create_app(registry)
        assert routed(front.routes) == documented()
    finally:
        registry.store.close()


def test_every_operation_has_a_name_and_a_summary() -> None:
    operations = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] and operation["tags"] for operation in operations)


def test_every_path_parameter_is_declared() -> None:
    for path, operations in DOCUMENT["paths"].items():
        wanted = set(re.findall(r"{(\w+)}", path))
        for operation in operations.values():
            declared = {
                parameter["$ref"].rpartition("/")[2]
                for parameter in operation.get("parameters", ())
                if "$ref" in parameter
            }
            assert wanted <= declared, path


def test_the_response_to_a_wrong_method_lists_the_allowed_ones(api: RegistryApi) -> None:
    assert api.send("GET", "/subjects/s").headers["allow"] == "DELETE, POST"
    assert api.send("PATCH", "/config").headers["allow"] == "DELETE, GET, PUT"
