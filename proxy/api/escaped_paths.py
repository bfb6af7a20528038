"""Percent-encoded slashes in paths: names of consumer groups and consumers may contain a slash (`%2F`).

ASGI servers decode a path before routing, and a decoded slash would split the name. The routes therefore see a
placeholder instead of the slash, and their path parameters get the slash back.
"""

from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import HTTPConnection

from headgate.kafka_client.errors import ResourceNotFound
from headgate.web.asgi import Scope

# A lone surrogate: no valid UTF-8 decodes to it, so it cannot occur in a name.
_SLASH_IN_NAME: Final = "\udc2f"


def unescape_path(scope: Scope) -> Scope:
    """The scope for the routes, with a decoded path. Raises ResourceNotFound."""
    try:
        segments = [unquote_to_bytes(segment).decode() for segment in scope["raw_path"].split(b"/")]
    except UnicodeDecodeError as error:
        raise ResourceNotFound("The percent-encoded path is not valid UTF-8.") from error
    path = "/".join(segment.replace("/", _SLASH_IN_NAME) for segment in segments)
    return {**scope, "path": path}


async def restore_slashes(connection: HTTPConnection) -> None:
    """FastAPI dependency of all routes. It must run before all other dependencies."""
    if _SLASH_IN_NAME in connection.scope["path"]:
        names = {name: text.replace(_SLASH_IN_NAME, "/") for name, text in connection.path_params.items()}
        connection.scope["path_params"] = names
