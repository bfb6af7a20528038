"""Producer state snapshots on disk: files with a checksum, named after the offset that they cover up to.

The broker writes a snapshot when it seals a segment, at checkpoints and at a clean stop. If a snapshot is missing or
damaged, recovery rebuilds the state from an older one or from the batches.
"""

import logging
from pathlib import Path

import msgspec
from crc32c import crc32c

from headgate.broker.log.files import list_directory, read_file, remove_file, replace_file
from headgate.broker.log.producer_state import ProducerStates

logger = logging.getLogger("headgate.broker.log")

_Rows = list[tuple[int, int, int, list[tuple[int, int, int, int]]]]
_decode = msgspec.msgpack.Decoder(_Rows).decode

# The older snapshot is the fallback if the newest is damaged.
snapshots_kept = 2


def write_snapshot(directory: Path, next_offset: int, producers: ProducerStates) -> None:
    body = msgspec.msgpack.encode(producers.snapshot())
    replace_file(_path(directory, next_offset), crc32c(body).to_bytes(4) + body, durable=False)
    for stale in _offsets(directory)[:-snapshots_kept]:
        remove_file(_path(directory, stale))


def load_newest(directory: Path, offset_max: int, producers: ProducerStates) -> int:
    """Restore the newest valid snapshot at or before `offset_max`. Returns its offset, or -1 if there is none."""
    for offset in reversed(_offsets(directory)):
        if offset > offset_max:
            continue
        content = read_file(_path(directory, offset)) or b""
        if len(content) >= 4 and crc32c(content[4:]) == int.from_bytes(content[:4]):
            try:
                producers.restore(_decode(content[4:]))
            except msgspec.MsgspecError as error:
                logger.error("%s: the snapshot at offset %d cannot be read: %s", directory.name, offset, error)
                continue
            return offset
        logger.warning("%s: the snapshot at offset %d is damaged; using an older one", directory.name, offset)
    return -1


def newest_offset(directory: Path) -> int:
    """Return the offset of the newest snapshot, or 0 if there is none."""
    return max(_offsets(directory), default=0)


def drop_after(directory: Path, offset: int) -> None:
    """Remove the snapshots after `offset`. Call this after a truncation."""
    for taken in _offsets(directory):
        if taken > offset:
            remove_file(_path(directory, taken))


def _path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}.snapshot"


def _offsets(directory: Path) -> list[int]:
    names = [name.removesuffix(".snapshot") for name in list_directory(directory) if name.endswith(".snapshot")]
    return sorted(int(name) for name in names if name.isdigit())
