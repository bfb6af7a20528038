"""The proxy's own addresses: those that it serves, and the one that a client used, for links in responses.

Links begin with `advertised.url`. Without this setting they follow the forwarding headers of trusted proxies, else
the Host header. The access check has removed the forwarding headers of all other peers.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from headgate.openapi.media_types import JSON
from headgate.proxy.settings import ProxySettings
from headgate.web.access import Access
from headgate.web.hosts import address_of
from headgate.web.settings import AccessSettings, listed

# What may stand in a link: no header of a client shall write anything else into an answer.
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_PREFIX: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")


def access_of(settings: ProxySettings, listen_host: str) -> Access:
    """The access check. Workers address each other by `worker.urls` and forward the client's Host.

    Raises InvalidSetting.
    """
    workers = [host for url in listed(settings.worker_urls) if (host := urlsplit(url).hostname)]
    advertised = urlsplit(settings.advertised_url or "").hostname
    return Access(
        AccessSettings(
            listen_host,
            settings.allowed_hosts,
            settings.trusted_proxies,
            settings.access_control_allow_origin,
            settings.access_control_allow_methods,
            settings.access_control_allow_headers,
        ),
        f"{JSON}, or a type such as application/vnd.kafka.json.v2+json with records for /topics",
        [*workers, *([advertised] if advertised else [])],
        [host for host in workers if address_of(host) is not None],
    )


def base_url(request: HTTPConnection, advertised: str | None) -> str:
    """Without a slash at the end. Forwarded is RFC 7239; the first element is the outermost proxy's."""
    if advertised:
        return advertised.rstrip("/")
    headers = request.headers
    forwarded = _forwarded(headers.get("forwarded", ""))
    own = {"ws": "http", "wss": "https"}.get(request.url.scheme, request.url.scheme)
    scheme = forwarded.get("proto") or _first(headers.get("x-forwarded-proto", "")) or own
    host = forwarded.get("host") or _with_port(headers) or headers.get("host", "")
    prefix = _first(headers.get("x-forwarded-prefix", ""))
    if scheme.lower() not in ("http", "https"):
        scheme = own
    if not _HOST.fullmatch(host):
        host = request.url.netloc
    return f"{scheme.lower()}://{host}{prefix.rstrip('/') if _PREFIX.fullmatch(prefix) else ''}"


def _with_port(headers: Mapping[str, str]) -> str:
    host = _first(headers.get("x-forwarded-host", ""))
    port = _first(headers.get("x-forwarded-port", ""))
    if host and port.isdigit() and ":" not in host and port not in ("80", "443"):
        return f"{host}:{port}"
    return host


def _first(header: str) -> str:
    return header.partition(",")[0].strip()


def _forwarded(header: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in _first(header).split(";"):
        name, _, value = pair.partition("=")
        found[name.strip().lower()] = value.strip().strip('"')
    return found
