"""Addresses of the proxy: the hosts that it serves, and the base URL of links in responses.

The base URL is `advertised.url`, else the forwarding headers of trusted proxies, else the Host header. The access
check removes the forwarding headers of untrusted peers.
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

# Links contain nothing else, so that headers of clients cannot inject text into responses.
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
    """The base URL without a trailing slash. The first element of Forwarded (RFC 7239) is the outermost proxy."""
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
