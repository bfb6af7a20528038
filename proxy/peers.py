"""HTTP client for requests to other workers of the proxy."""

from typing import Final

import httpx

CONNECT_SECONDS_MAX: Final = 2.0


def open_peers() -> httpx.AsyncClient:
    # No read timeout, because the owner ends long polls and streams. No HTTP proxy from the environment.
    peers = httpx.AsyncClient(
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS_MAX),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        follow_redirects=False,
        trust_env=False,
    )
    # Remove httpx's Accept-Encoding. Otherwise the client could get a compressed response that it does not accept.
    peers.headers.clear()
    return peers
