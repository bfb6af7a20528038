"""ASGI extension that closes the connection of a request at once.

If an application returns before the end of its response, uvicorn first waits until the client has read all buffered
bytes. A client that reads nothing would keep the connection open forever.
"""

from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from headgate.web.asgi import Scope
from headgate.web.http_protocol import BoundedHttpProtocol

_EXTENSION: Final = "headgate.connection.abort"


class AbortableHttpProtocol(BoundedHttpProtocol):
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        extensions: dict[str, Any] = cycle.scope.setdefault("extensions", {})
        extensions[_EXTENSION] = self.transport.abort
        super()._start_asgi_task(cycle, app)


def abort_of(scope: Scope) -> Callable[[], None]:
    """A function that closes the connection without sending buffered bytes. No-op if the server lacks the extension."""
    found: Callable[[], None] = scope.get("extensions", {}).get(_EXTENSION, _nothing)
    return found


def _nothing() -> None:
    """The server closes the connection when the application returns."""
