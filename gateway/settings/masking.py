"""Masks secrets in output: passwords of addresses, and configs whose names say that they are secret."""

import re
from typing import Final

# Parts of the names of secret configs, such as ssl.key.password, sasl.jaas.config and basic.auth.user.info.
_SECRET_NAME_PARTS: Final = ("password", "secret", "token", "user.info", "jaas")
# A scheme counts only at the start or after a delimiter. In `user:a://b@host`, `a://` belongs to the password.
_SCHEME: Final = re.compile(r"(?:^|(?<=[=,;'\"(\[{<]))[A-Za-z][A-Za-z0-9+.-]{0,30}://")
_NAME: Final = re.compile(r"[\w.-]+")
_WORD: Final = re.compile(r"\S+")
_MASK: Final = "***"


def masked_value(value: str) -> str:
    """A single value: an address, or NAME=VALUE. Unlike `masked`, it expects blanks in passwords."""
    name, equals, _ = value.partition("=")
    # Only a config's name: the part before `=` of an address can be the password itself.
    if equals and _NAME.fullmatch(name) and _is_secret(name):
        return f"{name}={_MASK}"
    credentials, at, host = value.rpartition("@")
    scheme = _SCHEME.search(credentials)
    colon = credentials.find(":", scheme.end() if scheme else 0)
    return value if not at or colon < 0 else f"{credentials[:colon]}:{_MASK}@{host}"


def masked_values(value: object) -> object:
    """`masked_value` for all strings in a document of lists and dicts."""
    if isinstance(value, str):
        return masked_value(value)
    if isinstance(value, dict):
        return {name: _MASK if _is_secret(str(name)) else masked_values(each) for name, each in value.items()}
    return [masked_values(each) for each in value] if isinstance(value, (list, tuple)) else value


def _is_secret(name: str) -> bool:
    return any(part in name.lower() for part in _SECRET_NAME_PARTS)


def masked(text: str) -> str:
    """`text` with `***` in place of the passwords of addresses: `http://user:***@host`.

    Everything up to the last @ of a word is masked, because a password may contain / and @. Linear in the length of
    `text`, which may be a log line of a service.
    """
    return _WORD.sub(_masked_word, text) if "@" in text else text


def _masked_word(found: re.Match[str]) -> str:
    word = found[0]
    credentials, at, host = word.rpartition("@")
    scheme = _SCHEME.search(credentials)
    colon = credentials.find(":", scheme.end() if scheme else 0)
    # `"email":"a@b"` is not an address: without a scheme, a user name is required, and it does not end with a quote.
    if not at or colon < 0 or (scheme is None and (colon == 0 or credentials[colon - 1] in "'\")]}>")):
        return word
    return f"{credentials[:colon]}:{_MASK}@{host}"
