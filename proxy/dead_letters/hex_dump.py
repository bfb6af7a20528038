"""A hex dump of a payload, with a caret below the byte where decoding failed."""

import re
from typing import Final

from headgate.serdes import DeadLetter
from headgate.serdes.framing import FRAME_BYTES

LINE_BYTES: Final = 16
DUMP_BYTES_MAX: Final = 512
"""Bytes of a dump. A fault outside of them moves the dump."""
_POSITION: Final = re.compile(r" at (?:byte )?(\d{1,9})\b")


def fault_position(letter: DeadLetter, payload: bytes) -> int | None:
    """The position of the fault in the payload. The detail contains its position in the body, after the schema id."""
    found = _POSITION.findall(letter.detail)
    if not found:
        return None
    start = FRAME_BYTES if letter.schema_id is not None and payload[:1] == b"\0" else 0
    return min(start + int(found[-1]), len(payload))


def hex_dump(payload: bytes, fault: int | None = None) -> str:
    start = 0 if fault is None else max(fault // LINE_BYTES * LINE_BYTES - DUMP_BYTES_MAX // 2, 0)
    end = min(start + DUMP_BYTES_MAX, len(payload))
    lines = [f"... {start} bytes before"] if start else []
    # One more line than needed: the fault of a truncated payload is after its last byte.
    for at in range(start, end + 1, LINE_BYTES):
        part = payload[at : min(at + LINE_BYTES, end)]
        if part:
            text = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
            lines.append(f"{at:08x}  {part.hex(' '):<{LINE_BYTES * 3 - 1}}  {text}")
        if fault is not None and at <= fault < at + LINE_BYTES:
            lines.append(" " * (10 + (fault - at) * 3) + "^^")
    if end < len(payload):
        lines.append(f"... {len(payload) - end} bytes after")
    return "\n".join(lines)
