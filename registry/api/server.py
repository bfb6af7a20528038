"""A registry of its own: the application on uvicorn, for tests, benchmarks and small installations.

The gateway composes the same application into its process instead.
"""

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import uvicorn

from headgate.registry.api.app import create_app
from headgate.registry.api.front import Front
from headgate.registry.service.registry import Registry, wall_clock_ms
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.sqlite import SqliteStore
from headgate.web.access import Access
from headgate.web.settings import AccessSettings


def open_registry(data_dir: Path, settings: RegistrySettings | None = None) -> Registry:
    """The registry whose file lies in `data_dir`; made if it is not there."""
    return Registry(SqliteStore(data_dir / "registry.db", wall_clock_ms), settings)


def access_settings(listen_host: str, given: Mapping[str, str]) -> AccessSettings:
    """From texts under dotted names, such as `allowed.hosts`. Raises ValueError."""
    settings = AccessSettings.of(listen_host, given)
    Access(settings, "")  # Reject bad values before the store is opened.
    return settings


_GRACE_SECONDS: Final = 5
"""For requests that are being answered when the registry is told to stop."""


class _Server(uvicorn.Server):
    """Ends the streams of changes before it waits for its connections."""

    def __init__(self, config: uvicorn.Config, front: Front) -> None:
        super().__init__(config)
        self._front = front

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._front.begin_stop()
        await super().shutdown(sockets)


async def serve(
    registry: Registry,
    host: str,
    port: int,
    listening: "asyncio.Future[int] | None" = None,
    access: AccessSettings | None = None,
) -> None:
    """Until cancelled or told to stop by a signal. `listening` gets the port (which 0 leaves to the system)."""
    app = create_app(registry, access or AccessSettings(listen_host=host))
    config = uvicorn.Config(
        app,
        http=app.shortcuts.protocol(),
        loop="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    server = _Server(config, app)
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        if listening is not None:
            listening.set_result(listener.getsockname()[1])
        try:
            await server.serve(sockets=[listener])
        finally:
            registry.store.close()
