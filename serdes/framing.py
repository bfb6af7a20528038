"""The frame of a payload: magic byte and schema id before the body, or the schema guid in a record header.

This is Confluent's wire format (see `docs/wire-format.md`). Pure functions on bytes; `serdes.client` looks up schemas.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import UUID

from headgate.serdes.avro.binary import Fault, corrupt, read_long, write_long
from headgate.serdes.outcome import Poison, Reason

MAGIC_ID: Final = 0
MAGIC_GUID: Final = 1

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"

FRAME_BYTES: Final = 5
"""The magic byte and the schema id."""

MESSAGE_PATH_MAX: Final = 100
"""Indexes in the path of a Protobuf message. The protobuf library has the same limit for nested messages."""

_FRAME: Final = struct.Struct(">BI")

Headers: TypeAlias = Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None] | None
"""Headers in the forms of Kafka clients: ordered pairs, a dictionary, or None."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A parsed frame. For Protobuf, the message path is still at the start of the body, or in `header_path`."""

    schema_id: int | None
    schema_guid: UUID | None
    body: bytes
    header_path: bytes | None = None
    """The bytes after the guid in a header. None if the frame is in the payload."""


def frame(schema_id: int, body: bytes) -> bytes:
    return _FRAME.pack(MAGIC_ID, schema_id) + body


def unframe(payload: bytes | None) -> Frame | Poison:
    if payload is None:
        return Poison(Reason.NULL, "no payload", None)
    if len(payload) < FRAME_BYTES:
        return Poison(Reason.TOO_SHORT, f"{len(payload)} bytes; the frame alone takes {FRAME_BYTES}", payload)
    magic, schema_id = _FRAME.unpack_from(payload)
    if magic != MAGIC_ID:
        return Poison(Reason.BAD_MAGIC, f"the first byte is {magic}, not 0", payload)
    return Frame(schema_id, None, payload[FRAME_BYTES:])


def header_name(is_key: bool) -> str:
    return KEY_HEADER if is_key else VALUE_HEADER


def is_framed(payload: bytes, headers: Sequence[tuple[str, bytes | None]], is_key: bool) -> bool:
    """Whether the payload starts like a frame, or a header contains its schema id."""
    if len(payload) >= FRAME_BYTES and payload[0] == 0:
        return True
    return bool(headers) and any(name == header_name(is_key) for name, _ in headers)


def guid_header(guid: UUID, path: bytes = b"") -> bytes:
    """The value of the schema id header. `path` is the path of a Protobuf message."""
    return bytes([MAGIC_GUID]) + guid.bytes + path


def unframe_record(payload: bytes | None, headers: Headers, is_key: bool) -> Frame | Poison:
    """Parse the schema id header if there is one (the first wins), otherwise the payload."""
    name = header_name(is_key)
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    header = next((value for key, value in pairs if key == name), None)
    if header is None:
        return unframe(payload)
    if payload is None:
        return Poison(Reason.NULL, "no payload", None)
    magic = header[0] if header else None
    if magic == MAGIC_GUID and len(header) > 16:
        return Frame(None, UUID(bytes=bytes(header[1:17])), payload, bytes(header[17:]))
    if magic == MAGIC_ID and len(header) >= FRAME_BYTES:
        return Frame(_FRAME.unpack_from(header)[1], None, payload, bytes(header[FRAME_BYTES:]))
    if magic in (MAGIC_ID, MAGIC_GUID, None):
        return Poison(Reason.TOO_SHORT, f"the header {name} has {len(header)} bytes", payload)
    return Poison(Reason.BAD_MAGIC, f"the header {name} begins with {magic}, not 0 or 1", payload)


def message_path(indexes: Sequence[int]) -> bytes:
    """The path of a Protobuf message: the count and the indexes, or a single 0 for the first message of the file."""
    if list(indexes) == [0]:
        return b"\x00"
    out = bytearray()
    for number in (len(indexes), *indexes):
        write_long(out, number)
    return bytes(out)


def read_message_path(data: bytes) -> tuple[tuple[int, ...], int]:
    """The path, and the position of the message. Raises `Fault`."""
    count, pos = read_long(data, 0)
    if count == 0:
        return (0,), pos
    if not 0 < count <= MESSAGE_PATH_MAX:
        raise corrupt(f"a message path of {count} indexes", 0)
    indexes: list[int] = []
    for _ in range(count):
        index, pos = read_long(data, pos)
        if index < 0:
            raise Fault(Reason.CORRUPT, f"a message index of {index}")
        indexes.append(index)
    return tuple(indexes), pos
