"""Names with a slash in paths: Kafka's groups and consumers may have one, escaped in an address as `%2F`.

A server unescapes a path before it is routed, and the slash would divide it. So where a path has one, the routes are
shown a stand-in for it, and their parameters get the slash back. `%25` and all other escapes are undone by then: what a
route sees is the name itself.
"""

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import HTTPConnection

from headgate.proxy.errors import ResourceNotFound
from headgate.web.asgi import Scope

# Half of a surrogate pair: no UTF-8 decodes to it, so it stands for nothing else.
_SLASH_IN_NAME: Final = "\udc2f"


def unescape_path(scope: Scope) -> Scope:
    """The scope for the routes, of a request whose path has escapes. Raises ResourceNotFound."""
    try:
        segments = [unquote_to_bytes(segment).decode() for segment in scope["raw_path"].split(b"/")]
    except UnicodeDecodeError as error:
        raise ResourceNotFound("The escapes in the path are not UTF-8: nothing has such a name.") from error
    path = "/".join(segment.replace("/", _SLASH_IN_NAME) for segment in segments)
    return {**scope, "path": path}


async def restore_slashes(connection: HTTPConnection) -> None:
    """For all routes, before any other dependency: `FastAPI(dependencies=[Depends(restore_slashes)])`."""
    if _SLASH_IN_NAME in connection.scope["path"]:
        names = {name: text.replace(_SLASH_IN_NAME, "/") for name, text in connection.path_params.items()}
        connection.scope["path_params"] = names
