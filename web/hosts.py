"""Which host names and addresses a server answers to.

The check of the Host header prevents DNS rebinding: an attacker's page resolves its own name to the address of this
server, so the browser treats the server as same-origin. The Host header then contains the attacker's name.

| listening on | served without configuration |
|---|---|
| a loopback address, `localhost` | `localhost` and every loopback address |
| all interfaces (`0.0.0.0`, `::`) | `localhost` and every IP address: an address cannot be rebound |
| another address | this address |
| another name | this name, `localhost` and every IP address |

`allowed.hosts` adds names: `gateway.example`, `gateway.example:8443`, `*.intern.example`, `*` for all.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from headgate.web.settings import AccessSettings, InvalidSetting, listed

_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::([0-9]{1,5}))?")
_ALLOWED: Final = re.compile(r"\*|(?:\*\.)?[A-Za-z0-9._-]+(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?")


def split_authority(authority: str) -> tuple[str, str] | None:
    """Host in lower case and port ("" if there is none). None if `authority` is malformed (RFC 3986, section 3.2)."""
    match = _AUTHORITY.fullmatch(authority)
    return None if match is None else ((match[1] or match[2]).lower(), match[3] or "")


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """The IP address that `host` is a literal of, else None. IPv4-mapped addresses become IPv4 addresses."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


class ServedHosts:
    def __init__(self, settings: AccessSettings, more: Iterable[str] = ()) -> None:
        """`more` are hosts that the server is configured with elsewhere. Raises InvalidSetting."""
        bound = settings.listen_host.strip("[]").lower()
        self._bound_address = address_of(bound) if bound else ip_address("0.0.0.0")
        self._names = {host.strip("[]").lower() for host in more}
        if self._bound_address is None:
            self._names.add(bound)
        self._is_loopback = bound == "localhost" or (
            self._bound_address is not None and self._bound_address.is_loopback
        )
        self._takes_every_address = not self._is_loopback and (
            self._bound_address is None or self._bound_address.is_unspecified
        )
        if self._is_loopback or self._takes_every_address:
            self._names.add("localhost")
        self._suffixes: list[str] = []
        self._listed: set[tuple[str, str]] = set()
        self._takes_all = False
        for entry in listed(settings.allowed_hosts):
            self._allow(entry)

    def _allow(self, entry: str) -> None:
        if address_of(entry) is not None:
            self._listed.add((entry.lower(), ""))
            return
        if not _ALLOWED.fullmatch(entry):
            raise InvalidSetting(
                f"allowed.hosts: {entry!r} is not valid. Give host names without scheme and path, "
                "such as gateway.example, gateway.example:8443 or *.intern.example."
            )
        if entry == "*":
            self._takes_all = True
        elif entry.startswith("*."):
            self._suffixes.append(entry[1:].lower())
        else:
            self._listed.add(split_authority(entry) or ("", ""))

    def serves(self, authority: str) -> bool:
        """Whether requests for `authority`, a Host header, are meant for this server."""
        parts = split_authority(authority)
        if parts is None:
            return False
        host, _ = parts
        if self._takes_all or host in self._names or parts in self._listed or (host, "") in self._listed:
            return True
        address = address_of(host)
        if address is None:
            return any(host.endswith(suffix) for suffix in self._suffixes)
        if self._is_loopback:
            return address.is_loopback
        return self._takes_every_address or address == self._bound_address

    def lists(self, authority: str) -> bool:
        """Whether `allowed.hosts` contains exactly this host and port."""
        return split_authority(authority) in self._listed
