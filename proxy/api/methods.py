"""Which methods a path has, for the Allow header of a 405: several modules, and the front, may serve the same path."""

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from headgate.proxy.api.front import PRODUCE_PATHS


def allowed(request: Request) -> str:
    path: str = request.scope["path"]
    methods = {
        method for route in _routes(request.app) if route.path_regex.match(path) for method in route.methods or ()
    }
    if any(pattern.match(request.scope["raw_path"]) for pattern in PRODUCE_PATHS):
        methods.add("POST")
    return ", ".join(sorted(methods))


def _routes(of: Any) -> Iterator[Route]:
    """Those of included routers too, which FastAPI keeps apart."""
    for route in of.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _routes(inner)
        elif isinstance(route, Route):
            yield route
