"""Segment manifest of a partition: offsets, size, largest timestamp and index checksums of each segment.

The file has a checksum. Retention trusts the timestamps in this file, but not an index alone. It reads a segment
without confirmed timestamps before it removes the segment. Recovery uses the manifest to detect missing segments.

The broker writes the manifest:

- with the first batch of a segment
- when it seals a segment
- at checkpoints
- at a clean stop
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked
from headgate.broker.log.segment import IndexChecksums, Segment

_NAME = "segments"


class Row(NamedTuple):
    base_offset: int
    end_offset: int
    size_bytes: int
    largest_timestamp: int
    largest_timestamp_offset: int
    is_damaged: bool
    index_checksums: IndexChecksums


_decode = msgspec.json.Decoder(list[Row]).decode


def write_manifest(directory: Path, segments: Sequence[Segment], log_end_offset: int) -> None:
    """Write the manifest without an fsync. After a power cut, segments may be read again. Raises StorageError."""
    ends = [segment.base_offset for segment in segments[1:]] + [log_end_offset]
    rows = [_row(segment, end) for segment, end in zip(segments, ends, strict=True) if segment.size_bytes]
    write_checked(directory / _NAME, msgspec.json.encode(rows), durable=False)


def _row(segment: Segment, end_offset: int) -> Row:
    base_offset = segment.base_offset
    if segment.index_checksums is None or not segment.has_confirmed_times:
        # Record only that the segment exists. Size 0 matches no segment, so `describe` confirms no timestamps.
        return Row(base_offset, end_offset, 0, -1, base_offset, segment.is_damaged, None)
    return Row(
        base_offset,
        end_offset,
        segment.size_bytes,
        segment.largest_timestamp,
        segment.largest_timestamp_offset,
        segment.is_damaged,
        segment.index_checksums,
    )


def read_manifest(directory: Path) -> list[Row]:
    """Return the rows, or an empty list without a file. Raises DamagedFile."""
    path = directory / _NAME
    stored = read_checked(path)
    if stored is None:
        return []
    try:
        if not stored.is_checked:
            raise DamagedFile(path)
        return _decode(stored.content)
    except msgspec.MsgspecError as error:
        raise DamagedFile(path, str(error)) from error


def describe(segments: Sequence[Segment], rows: Sequence[Row]) -> list[Row]:
    """Set the index checksums of all segments, and the timestamps of sealed segments.

    Returns the rows of missing segments.
    """
    by_offset = {segment.base_offset: segment for segment in segments}
    missing = []
    for row in rows:
        segment = by_offset.get(row.base_offset)
        if segment is None:
            missing.append(row)
            continue
        segment.index_checksums, segment.is_damaged = row.index_checksums, row.is_damaged
        if segment.size_bytes == row.size_bytes and segment is not segments[-1]:
            segment.largest_timestamp = row.largest_timestamp
            segment.largest_timestamp_offset = row.largest_timestamp_offset
            segment.has_confirmed_times = True
    return missing
