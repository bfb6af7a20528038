"""kcat format strings: placeholders such as `%k`, and backslash escapes.

| | |
|---|---|
| `%t` `%p` `%o` | topic, partition, offset |
| `%k` `%s` | key, value; decoded if they have a schema |
| `%K` `%S` | lengths of the payloads; -1 for null |
| `%R` | the value's length as four bytes, big endian |
| `%T` | timestamp in milliseconds |
| `%h` | headers: `name=value`, separated by commas |
| `%%` | a percent sign |
| `\\n` `\\r` `\\t` `\\0` `\\\\` `\\xNN` | bytes |
"""

import os
import re
import struct
from collections.abc import Callable, Sequence

from headgate.gateway.records.record import Record, Text

Piece = Callable[[Record], bytes]

_TOKEN = re.compile(r"%(.?)|\\x([0-9a-fA-F]{2})|\\(.?)", re.DOTALL)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


class BadFormat(ValueError):
    """The format string contains an unknown placeholder or escape."""


def compile_format(text: str, null: bytes = b"NULL") -> Callable[[Record], bytes]:
    """Compile a function that renders a record. `null` replaces null keys and values. Raises BadFormat."""
    pieces = _pieces(text, null)

    def render(record: Record) -> bytes:
        return b"".join(piece if isinstance(piece, bytes) else piece(record) for piece in pieces)

    return render


def unescape(text: str) -> bytes:
    """Replace the escapes of a separator. Raises BadFormat."""
    parts = _pieces(text.replace("%", "%%"), b"")
    return b"".join(part for part in parts if isinstance(part, bytes))


def _pieces(text: str, null: bytes) -> Sequence[bytes | Piece]:
    pieces: list[bytes | Piece] = []
    last = 0
    fields = _fields(null)
    for token in _TOKEN.finditer(text):
        pieces.append(os.fsencode(text[last : token.start()]))
        last = token.end()
        field, hexadecimal, escape = token.groups()
        if field is not None:
            if field not in fields:
                raise BadFormat(f"%{field} is not a placeholder; use one of %{' %'.join(sorted(fields))}")
            pieces.append(fields[field])
        elif hexadecimal is not None:
            pieces.append(bytes.fromhex(hexadecimal))
        else:
            if escape not in _ESCAPES:
                raise BadFormat(rf"\{escape} is not an escape; use one of \n \r \t \0 \\ \xNN")
            pieces.append(_ESCAPES[escape])
    pieces.append(os.fsencode(text[last:]))
    return pieces


def _fields(null: bytes) -> dict[str, bytes | Piece]:
    return {
        "%": b"%",
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "k": lambda record: _output(record.key, record.key_text, null),
        "s": lambda record: _output(record.value, record.value_text, null),
        "K": lambda record: b"%d" % _length(record.key),
        "S": lambda record: b"%d" % _length(record.value),
        "R": lambda record: struct.pack(">i", _length(record.value)),
        "T": lambda record: b"%d" % record.timestamp_ms,
        "h": lambda record: b",".join(
            name.encode() + b"=" + (null if value is None else value) for name, value in record.headers
        ),
    }


def _output(payload: bytes | None, text: Text | None, null: bytes) -> bytes:
    if text is not None:
        return text.content
    return null if payload is None else payload


def _length(content: bytes | None) -> int:
    return -1 if content is None else len(content)
