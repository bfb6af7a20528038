"""A registry of its own: the application on uvicorn, for tests, benchmarks and small installations.

The gateway composes the same application into its process instead.
"""

import asyncio
import socket
from pathlib import Path

import uvicorn

from registry.api.app import create_app
from registry.service.registry import Registry, wall_clock_ms
from registry.settings import RegistrySettings
from registry.storage.sqlite import SqliteStore


def open_registry(data_dir: Path, settings: RegistrySettings | None = None) -> Registry:
    """The registry whose file lies in `data_dir`; made if it is not there."""
    return Registry(SqliteStore(data_dir / "registry.db", wall_clock_ms), settings)


async def serve(registry: Registry, host: str, port: int, listening: "asyncio.Future[int] | None" = None) -> None:
    """Until cancelled or told to stop by a signal. `listening` gets the port (which 0 leaves to the system)."""
    app = create_app(registry)
    config = uvicorn.Config(
        app,
        http=app.shortcuts.protocol(),
        loop="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        if listening is not None:
            listening.set_result(listener.getsockname()[1])
        try:
            await server.serve(sockets=[listener])
        finally:
            registry.store.close()
