"""The check in front of every HTTP server: is the request meant for this server, and may its sender write?

Browsers send requests of any page to any address, also to servers on loopback. This check refuses, before any route
and any cache:

| request | status |
|---|---|
| HTTP/1.1 without Host, several Host headers, a malformed one (RFC 9112, section 3.2) | 400 |
| a Host, or a forwarded host, that this server does not serve: DNS rebinding (`web.hosts`) | 421 |
| an Origin that is neither this server's own nor allowed by CORS (`web.cors`), WebSockets included | 403 |
| no Origin, but `Sec-Fetch-Site` names another site, and the request is no navigation | 403 |
| a body without Content-Type, or with one that a page may send without a preflight | 415 |

Forwarding headers of peers that are not in `trusted.proxies` are removed, so that nothing behind the check uses them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from headgate.web.asgi import Scope, Send
from headgate.web.cors import Cors
from headgate.web.errors import error_body
from headgate.web.forwarded import FORWARDING_HEADERS, TrustedProxies, forwarded_hosts
from headgate.web.hosts import ServedHosts, split_authority
from headgate.web.settings import AccessSettings

_CHECKED: Final = frozenset(
    {
        b"content-length",
        b"content-type",
        b"host",
        b"origin",
        b"sec-fetch-dest",
        b"sec-fetch-site",
        b"transfer-encoding",
        *FORWARDING_HEADERS,
    }
)
# The media types of HTML forms ("CORS-safelisted"): browsers send them to any origin without a preflight.
_SAFELISTED: Final = frozenset({b"text/plain", b"multipart/form-data", b"application/x-www-form-urlencoded"})
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_HOSTS_KEPT_MAX: Final = 100
"""Host headers that are accepted without another check. Servers have a handful of names."""
_QUOTED_CHARS_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    message: str

    async def send(self, scope: Scope, send: Send, media_type: str) -> None:
        """As a response, also to the handshake of a WebSocket."""
        kind = "http.response"
        if scope["type"] == "websocket":
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send(
                    {"type": "websocket.close"}
                )  # Before the handshake is complete: the server answers with 403.
                return
            kind = "websocket.http.response"
        body = error_body(self.status, self.message)
        headers = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": f"{kind}.start", "status": self.status, "headers": headers})
        await send({"type": f"{kind}.body", "body": body})


class Access:
    def __init__(
        self, settings: AccessSettings, media_types: str, hosts: Iterable[str] = (), proxies: Iterable[str] = ()
    ) -> None:
        """`media_types` tells clients which Content-Type to send.

        `hosts` and `proxies` are further hosts that are served, and addresses of further trusted proxies. Raises
        InvalidSetting.
        """
        self.cors = Cors(settings)
        self._hosts = ServedHosts(settings, hosts)
        self._proxies = TrustedProxies(settings.trusted_proxies, proxies)
        self._media_types = media_types
        self._known: set[bytes] = set()

    def refusal(self, scope: Scope) -> Refusal | None:
        """None for a request that is let in; its scope then has no untrusted forwarding headers."""
        host: bytes | None = None
        origin = media = site = destination = b""
        has_body = is_forwarded = False
        for name, value in scope["headers"]:
            if name not in _CHECKED:
                continue
            if name == b"host":
                if host is not None:
                    return Refusal(400, "The request has several Host headers.")
                host = value
            elif name == b"content-length":
                has_body = has_body or value != b"0"
            elif name == b"transfer-encoding":
                has_body = True
            elif name == b"content-type":
                media = value if not media else media + b"," + value
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"sec-fetch-dest":
                destination = value
            else:
                is_forwarded = True
        hosts: list[str] = []
        if is_forwarded:
            if self._proxies.trusts(scope.get("client")):
                hosts = forwarded_hosts(scope["headers"])
            else:
                scope["headers"] = [field for field in scope["headers"] if field[0] not in FORWARDING_HEADERS]
        refused = self._wrong_host(scope, host, hosts)
        if refused is None and (origin or site):
            refused = self._foreign(origin, site, destination, [(host or b"").decode("latin-1"), *hosts])
        if refused is None and has_body:
            refused = self._unsafe_body(media)
        return refused

    def _wrong_host(self, scope: Scope, host: bytes | None, forwarded: list[str]) -> Refusal | None:
        if host not in self._known:
            if host is None:
                if scope.get("http_version", "1.1") == "1.0":
                    return None  # It needs none, and no browser sends HTTP/1.0.
                return Refusal(400, "The request has no Host header.")
            text = host.decode("latin-1")
            if split_authority(text) is None:
                return Refusal(400, "The Host header is not a host name or an address with an optional port.")
            if not self._hosts.serves(text):
                return _not_served(text)
            if len(self._known) < _HOSTS_KEPT_MAX:
                self._known.add(host)
        for named in forwarded:
            if not self._hosts.serves(named):
                return _not_served(named)
        return None

    def _foreign(self, origin: bytes, site: bytes, destination: bytes, hosts: list[str]) -> Refusal | None:
        if self.cors.is_on and self.cors.allows(origin):
            return None
        if origin:
            text = origin.decode("latin-1")
            if self._is_own(text, hosts):
                return None
            return Refusal(
                403,
                f"The origin {text[:_QUOTED_CHARS_MAX]} may not use this server. If its pages shall, add it to the "
                "setting access.control.allow.origin. If it is this server's own, add its host to allowed.hosts.",
            )
        # Images, scripts and links without CORS: no Origin, and reading records moves a consumer.
        if site in (b"cross-site", b"same-site") and destination != b"document" and not self.cors.allows_all:
            return Refusal(403, "A page of another site sent this request. Pages use this server with CORS only.")
        return None

    def _is_own(self, origin: str, hosts: list[str]) -> bool:
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in _DEFAULT_PORTS or parts.path or parts.query:
            return False
        default = _DEFAULT_PORTS[parts.scheme]
        wanted = split_authority(parts.netloc)
        if wanted is None:
            return False
        for host in hosts:
            found = split_authority(host)
            if found is not None and (found[0], found[1] or default) == (wanted[0], wanted[1] or default):
                return True
        return self._hosts.lists(parts.netloc)

    def _unsafe_body(self, media: bytes) -> Refusal | None:
        if not media.strip():
            return Refusal(415, f"The request has a body but no Content-Type. Send {self._media_types}.")
        if any(part.partition(b";")[0].strip().lower() in _SAFELISTED for part in media.split(b",")):
            given = media.partition(b";")[0].strip().decode("latin-1")[:_QUOTED_CHARS_MAX]
            return Refusal(415, f"The Content-Type {given} is not accepted. Send {self._media_types}.")
        return None


def _not_served(host: str) -> Refusal:
    return Refusal(
        421,
        f"This server does not serve the host {host[:_QUOTED_CHARS_MAX]}. If clients use this name for it, add the "
        "name to the setting allowed.hosts.",
    )
