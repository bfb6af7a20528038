"""Settings of the access check. They have the same names and meanings in every HTTP server."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self


class InvalidSetting(ValueError):
    """The value of a setting is not valid. The message names the setting and the value."""


@dataclass(frozen=True, slots=True)
class AccessSettings:
    listen_host: str = "127.0.0.1"
    """The host name or address of the listening socket."""
    allowed_hosts: str = ""
    """Further host names, see `web.hosts`. Separated by commas."""
    trusted_proxies: str = ""
    """Addresses and networks whose Forwarded and X-Forwarded-* headers are used. Separated by commas."""
    access_control_allow_origin: str = ""
    access_control_allow_methods: str = ""
    access_control_allow_headers: str = ""

    @classmethod
    def of(cls, listen_host: str, given: Mapping[str, str]) -> Self:
        """From texts under dotted names, such as `allowed.hosts`. Raises InvalidSetting."""
        names = {field.name.replace("_", "."): field.name for field in fields(cls) if field.name != "listen_host"}
        for name in given:
            if name not in names:
                raise InvalidSetting(f"there is no setting {name}; the settings are {', '.join(names)}")
        return cls(listen_host, **{names[name]: text for name, text in given.items()})


def listed(text: str) -> list[str]:
    """The entries of a setting that is a list."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]
