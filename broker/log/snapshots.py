"""Producer state on disk: one checked file per moment, named by the offset up to which it holds.

Taken when a segment is sealed, at checkpoints and at a clean stop. Any of them may be missing or damaged: the state is
then rebuilt from an older one, or from the batches themselves.
"""

from pathlib import Path

import msgspec
from crc32c import crc32c

from broker.log.files import remove_file, replace_file
from broker.state.producers import ProducerStates

_Rows = list[tuple[int, int, int, list[tuple[int, int, int, int]]]]
_decode = msgspec.msgpack.Decoder(_Rows).decode

# An older one is a second chance when the newest is damaged.
snapshots_kept = 2


def write_snapshot(directory: Path, next_offset: int, producers: ProducerStates) -> None:
    body = msgspec.msgpack.encode(producers.snapshot())
    replace_file(_path(directory, next_offset), crc32c(body).to_bytes(4) + body, durable=False)
    for stale in _offsets(directory)[:-snapshots_kept]:
        remove_file(_path(directory, stale))


def load_newest(directory: Path, offset_max: int, producers: ProducerStates) -> int:
    """Restore the newest sound snapshot at or before `offset_max`; the offset it holds up to, or -1."""
    for offset in reversed(_offsets(directory)):
        if offset > offset_max:
            continue
        content = _path(directory, offset).read_bytes()
        if len(content) >= 4 and crc32c(content[4:]) == int.from_bytes(content[:4]):
            try:
                producers.restore(_decode(content[4:]))
            except msgspec.MsgspecError:
                continue
            return offset
    return -1


def drop_after(directory: Path, offset: int) -> None:
    """After a truncation: snapshots of offsets that are gone."""
    for taken in _offsets(directory):
        if taken > offset:
            remove_file(_path(directory, taken))


def _path(directory: Path, offset: int) -> Path:
    return directory / f"{offset:020d}.snapshot"


def _offsets(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.snapshot") if path.stem.isdigit())
