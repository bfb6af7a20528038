"""A registry in its own process: the SQLite store and the HTTP server."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headgate.registry.api.app import create_app
from headgate.registry.service.registry import Registry, wall_clock_ms
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.sqlite import SqliteStore
from headgate.web import server
from headgate.web.access import Access
from headgate.web.settings import AccessSettings

_GRACE_SECONDS: Final = 5
"""How long requests in flight may take after a stop signal."""


def open_registry(data_dir: Path, settings: RegistrySettings | None = None) -> Registry:
    """Opens the registry's file in `data_dir`, or creates it."""
    return Registry(SqliteStore(data_dir / "registry.db", wall_clock_ms), settings)


def access_settings(listen_host: str, given: Mapping[str, str]) -> AccessSettings:
    """From texts under dotted names, such as `allowed.hosts`. Raises InvalidSetting."""
    settings = AccessSettings.of(listen_host, given)
    Access(settings, "")  # Rejects invalid values before the store is opened.
    return settings


async def serve(registry: Registry, port: int, access: AccessSettings, *, stop_at_eof: bool = False) -> None:
    """Serves until SIGTERM or SIGINT, or until cancelled, then closes the store."""
    options = server.ServerOptions(access.listen_host, port, _GRACE_SECONDS, date_header=False, stop_at_eof=stop_at_eof)
    try:
        await server.serve(create_app(registry, access), options)
    finally:
        registry.store.close()
