"""Formats of keys and values on the command line: `-s value=avro`, `-s key=string`, `-s hex`.

| format | output |
|---|---|
| `auto` | payloads with a registered schema as JSON, all others unchanged |
| `avro`, `protobuf` | JSON; a payload without a registered schema of this language is poison |
| `json` | JSON, with or without a registered JSON Schema |
| `string` | the payload, which must be UTF-8 |
| `hex`, `base64` | the bytes |
| `raw` | the payload unchanged |
| `i`, `>q`, `<h$`, … | numbers, as in kcat: `b B h H i I q Q c s` after `<` or `>`; `$` is the end of the payload |
"""

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from headgate.gateway.records.record import Text
from headgate.serdes.outcome import Poison, Reason

AUTO: Final = "auto"
RAW: Final = "raw"
JSON: Final = "json"
REGISTERED: Final = ("avro", "protobuf")

Decode: TypeAlias = Callable[[bytes], Text | Poison]

_PACKED: Final = re.compile(r"[<>bBhHiIqQcs$ ]+")
_NUMBERS: Final = frozenset("bBhHiIqQ")


class BadPayloadFormat(ValueError):
    """The text after `-s` is not a format."""


@dataclass(frozen=True, slots=True)
class PayloadFormats:
    key: str = AUTO
    value: str = AUTO


def parse_formats(options: Iterable[str], *, raw: bool = False) -> PayloadFormats:
    """`key=FORMAT`, `value=FORMAT`, or `FORMAT` for both. Raises BadPayloadFormat."""
    default = RAW if raw else AUTO
    found = {"key": default, "value": default}
    for option in options:
        part, equals, name = option.partition("=")
        if equals and part not in found:
            raise BadPayloadFormat(f"{option!r} does not start with key= or value=")
        name = name if equals else option
        if name not in _NAMES and not _is_packed(name):
            raise BadPayloadFormat(f"{name!r} is not a format; use {', '.join(_NAMES)} or a pack string such as >q")
        for each in (part,) if equals else tuple(found):
            found[each] = name
    return PayloadFormats(found["key"], found["value"])


def decoder_of(name: str) -> Decode | None:
    """The decoder of a format without a schema. None for formats that need the registry, and for `raw`."""
    return _DECODERS.get(name) or (_packed(name) if name not in _NAMES else None)


def _is_packed(name: str) -> bool:
    return bool(_PACKED.fullmatch(name)) and any(character in _NUMBERS or character in "cs" for character in name)


def _string(payload: bytes) -> Text | Poison:
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        return Poison(Reason.CORRUPT, f"not UTF-8: {error.reason} at byte {error.start}", payload)
    return Text(payload)


def _hex(payload: bytes) -> Text:
    return Text(payload.hex().encode())


def _base64(payload: bytes) -> Text:
    return Text(b64encode(payload))


def _packed(name: str) -> Decode:
    """Reads fixed-size fields. `s` takes the rest of the payload."""

    def decode(payload: bytes) -> Text | Poison:
        order, at, parts = ">", 0, list[bytes]()
        for character in name:
            if character in "<>":
                order = character
            elif character == "$":
                if at != len(payload):
                    return Poison(Reason.TRAILING_BYTES, f"{len(payload) - at} bytes are left over", payload)
            elif character == "s":
                parts.append(payload[at:])
                at = len(payload)
            elif character != " ":
                layout = struct.Struct(order + character)
                if len(payload) - at < layout.size:
                    detail = f"{character} needs {layout.size} bytes at byte {at} of {len(payload)}"
                    return Poison(Reason.TRUNCATED, detail, payload)
                (value,) = layout.unpack_from(payload, at)
                parts.append(value if isinstance(value, bytes) else b"%d" % value)
                at += layout.size
        return Text(b" ".join(parts))

    return decode


_DECODERS: Final[Mapping[str, Decode]] = {"string": _string, "hex": _hex, "base64": _base64}
_NAMES: Final = (AUTO, *REGISTERED, JSON, *_DECODERS, RAW)
