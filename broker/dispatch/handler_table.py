"""The handlers by API key: one per module in `broker.handlers`. ApiVersions advertises exactly these APIs."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple

from headgate.broker import handlers
from headgate.broker.protocol.entities import ApiVersionRange


class Handler(NamedTuple):
    versions: range
    handle: Callable[..., Any]
    """Returns the response, a Deferred of it, or work that runs in time slices and returns the response."""
    is_exclusive: bool
    """Whether the work changes topics. Such work runs one request at a time."""


MODULES: tuple[ModuleType, ...] = tuple(
    import_module(f"{handlers.__name__}.{found.name}") for found in iter_modules(handlers.__path__)
)

HANDLERS: Mapping[int, Handler] = {
    module.API_KEY: Handler(module.VERSIONS, module.handle, getattr(module, "IS_EXCLUSIVE", False))
    for module in MODULES
}

API_VERSIONS: tuple[ApiVersionRange, ...] = tuple(
    ApiVersionRange(api_key, handler.versions.start, handler.versions.stop - 1)
    for api_key, handler in sorted(HANDLERS.items())
)
