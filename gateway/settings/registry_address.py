"""Addresses of schema registries: default scheme and credentials. Output of addresses: `gateway.settings.masking`."""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class InvalidRegistryAddress(ValueError):
    """The address is not a URL of a registry. The message quotes no part of it, because any part can be a password."""


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    url: str
    """Without credentials, so that no error or log line of an HTTP library can contain them."""
    credentials: tuple[str, str] | None = field(repr=False)


def with_scheme(address: str) -> str:
    """`localhost:8081` means `http://localhost:8081`."""
    return address if not address or _SCHEME.match(address) else f"http://{address}"


def parse_address(address: str) -> RegistryAddress:
    """Separates credentials from the URL. Raises InvalidRegistryAddress.

    Follows RFC 3986, as the registry client in `serdes` does: the first `/`, `?` or `#` ends the host. An `@` after it
    means that the password contains one of these characters.
    """
    url = with_scheme(address)
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.path + parts.query + parts.fragment:
        raise InvalidRegistryAddress(
            "expected http://host:port, with credentials before the host if needed. "
            "In user names, passwords and paths, write / as %2F, ? as %3F, # as %23 and @ as %40"
        )
    if parts.scheme not in ("http", "https"):
        raise InvalidRegistryAddress("expected http:// or https://")
    user_info, at, host = parts.netloc.rpartition("@")
    user, _, password = user_info.partition(":")
    credentials = (unquote(user), unquote(password)) if at else None
    return RegistryAddress(parts._replace(netloc=host).geturl(), credentials)
