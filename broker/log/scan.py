"""Scans the batches of a segment file, for recovery, index rebuilds, lookups and the first read.

A scan reports each damaged range up to the next valid batch. A flipped bit therefore costs one batch, not the rest of
the log.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from headgate.broker.log.files import LogFile
from headgate.wire.record_batch import ATTRIBUTES_AT, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, BatchHeader, read_header

# Read-ahead size: large enough to save system calls, small enough for the CPU cache.
chunk_bytes_max = 1024 * 1024


class Scanned(NamedTuple):
    """A batch, or a damaged byte range."""

    position: int
    end: int
    header: BatchHeader | None
    """None if the bytes are damaged."""


def plausible(header: BatchHeader, position: int, limit: int) -> bool:
    """Whether the fields that the checksum does not cover have valid values."""
    return (
        header.magic == MAGIC
        and header.batch_length >= HEADER_BYTES - LOG_OVERHEAD_BYTES
        and position + header.size_bytes <= limit
        and header.base_offset >= 0
        and header.last_offset_delta >= 0
    )


def scan(
    file: LogFile, start: int, limit: int, next_offset: int, *, check: bool, wait: bool = True
) -> Iterator[Scanned]:
    """Scan from `start`, the position of the batch with `next_offset`, to `limit`. `check` verifies checksums.

    Without `wait`, raises ColdRead if a read would wait for the disk. The search after damage always waits.

    The checksum does not cover the base offset. The scan checks it against the end of the previous batch, because
    offsets have no gaps. If no valid batch follows, the last item is a damaged range that ends at `limit`.
    """
    chunk, chunk_start = b"", start
    after_damage = False
    position = start
    while position < limit:
        inside = position - chunk_start
        if len(chunk) - inside < HEADER_BYTES:
            if not wait:
                file.require_cached(position, min(chunk_bytes_max, limit - position))
            chunk, chunk_start, inside = file.read(position, chunk_bytes_max), position, 0
        sound = len(chunk) - inside >= HEADER_BYTES
        if sound:
            header = read_header(chunk, inside)
            sound = plausible(header, position, limit) and (
                header.base_offset >= next_offset if after_damage else header.base_offset == next_offset
            )
        if sound and check:
            size = header.size_bytes
            if len(chunk) - inside < size:
                if not wait:
                    file.require_cached(position, min(max(size, chunk_bytes_max), limit - position))
                chunk, chunk_start, inside = file.read(position, max(size, chunk_bytes_max)), position, 0
            sound = (
                len(chunk) - inside >= size
                and crc32c(memoryview(chunk)[inside + ATTRIBUTES_AT : inside + size]) == header.crc
            )
        if sound:
            end = position + header.size_bytes
            next_offset = header.last_offset + 1
            yield Scanned(position, end, header)
            after_damage = False
        else:
            after_damage = True
            end = find_sound(file, position + 1, limit, next_offset)
            yield Scanned(position, end, None)
        position = end


def find_sound(file: LogFile, start: int, limit: int, offset_min: int) -> int:
    """Return the position of the first valid batch at or after `start` with a base offset of at least `offset_min`.

    Returns `limit` if there is none. Searches for the upper 32 bits of a base offset, followed by the magic byte.
    """
    # A segment spans at most 2**31 offsets, so the upper 32 bits increase at most once.
    upper = offset_min >> 32
    starts = b"|".join(re.escape(each.to_bytes(4)) for each in (upper, upper + 1))
    pattern = re.compile(b"(?=(?:" + starts + b").{12}\x02)", re.DOTALL)
    position = start
    while True:
        chunk = file.read(position, chunk_bytes_max)
        if len(chunk) < HEADER_BYTES:
            return limit
        for match in pattern.finditer(chunk):
            candidate = position + match.start()
            if _is_sound(file, candidate, limit, offset_min):
                return candidate
        position += len(chunk) - HEADER_BYTES + 1


def _is_sound(file: LogFile, position: int, limit: int, offset_min: int) -> bool:
    head = file.read(position, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        return False
    header = read_header(head)
    if not plausible(header, position, limit) or header.base_offset < offset_min:
        return False
    body = file.read(position + ATTRIBUTES_AT, header.size_bytes - ATTRIBUTES_AT)
    return crc32c(body) == header.crc
