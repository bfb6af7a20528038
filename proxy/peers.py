"""HTTP to the other workers of one proxy. To whom: `proxy.consumers.ownership`; what: `proxy.api.forwarding`."""

from typing import Final

import httpx

CONNECT_SECONDS_MAX: Final = 2.0


def open_peers() -> httpx.AsyncClient:
    # No limit on reading: long polls and streams are the owner's to end. Environment proxies are not for workers.
    peers = httpx.AsyncClient(
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS_MAX),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        follow_redirects=False,
        trust_env=False,
    )
    # httpx would add Accept-Encoding, and the client would get a compressed response that it did not ask for.
    peers.headers.clear()
    return peers
