"""Forwarding headers: which proxies may set them, and the host that they name (RFC 7239, X-Forwarded-*)."""

from collections.abc import Iterable
from ipaddress import ip_network
from typing import Final

from headgate.web.hosts import address_of
from headgate.web.settings import InvalidSetting, listed

FORWARDING_HEADERS: Final = frozenset(
    {
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-prefix",
        b"x-forwarded-proto",
    }
)


class TrustedProxies:
    def __init__(self, configured: str, more: Iterable[str] = ()) -> None:
        """`more` are addresses that are trusted without being listed. Raises InvalidSetting."""
        self._networks = []
        for entry in (*listed(configured), *more):
            try:
                self._networks.append(ip_network(entry.strip("[]"), strict=False))
            except ValueError:
                raise InvalidSetting(
                    f"trusted.proxies: {entry!r} is not valid. Give IP addresses or networks, such as 10.0.0.0/8."
                ) from None

    def trusts(self, client: object) -> bool:
        """`client` is ASGI's: host and port, or None on a Unix socket."""
        if not self._networks or not isinstance(client, (tuple, list)) or not client:
            return False
        address = address_of(str(client[0]).partition("%")[0])
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


def forwarded_hosts(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Every host that the headers name. Proxies that append to a list keep the client's own entries in it."""
    found: list[str] = []
    port = ""
    for name, value in headers:
        text = value.decode("latin-1")
        if name == b"x-forwarded-host":
            found += listed(text)
        elif name == b"x-forwarded-port":
            port = text.partition(",")[0].strip()
        elif name == b"forwarded":
            pairs = (pair.partition("=") for element in text.split(",") for pair in element.split(";"))
            found += [given.strip().strip('"') for key, _, given in pairs if key.strip().lower() == "host"]
    if port.isdigit():
        found += [f"{host}:{port}" for host in found if ":" not in host]
    return found
