"""Scans of segment files with damaged ranges."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.log import scan as scan_module
from headgate.broker.log.files import LogFile
from headgate.broker.log.scan import find_sound, plausible, scan
from headgate.wire.record_batch import read_header
from tests.wire.record_batches import Batch, NewRecord


@pytest.mark.parametrize("boundary", [2**32, 2**33])
def test_a_valid_batch_is_found_when_the_upper_half_of_its_offset_has_changed(tmp_path: Path, boundary: int) -> None:
    damaged = bytes(100)
    batches = [Batch(base_offset=boundary + offset).encode() for offset in (0, 5)]
    file = LogFile(tmp_path / "a.log", is_new=True)
    content = damaged + b"".join(batches)
    file.write(0, content, memoryview(b""))
    assert find_sound(file, 0, len(content), boundary - 3) == len(damaged)
    assert find_sound(file, len(damaged) + 1, len(content), boundary - 3) == len(damaged) + len(batches[0])


def test_batches_with_a_lower_offset_and_damaged_batches_are_skipped(tmp_path: Path) -> None:
    older, newer = Batch(base_offset=7).encode(), Batch(base_offset=12).encode()
    broken = newer[:-1] + bytes([newer[-1] ^ 1])
    file = LogFile(tmp_path / "a.log", is_new=True)
    content = older + broken + newer
    file.write(0, content, memoryview(b""))
    assert find_sound(file, 0, len(content), 10) == len(older) + len(broken)


@dataclass
class MemoryFile:
    """A file that notes the ranges which must be cached."""

    content: bytes
    required: list[tuple[int, int]] = field(default_factory=list)

    def read(self, position: int, length: int) -> bytes:
        return self.content[position : position + length]

    def require_cached(self, position: int, length: int) -> None:
        self.required.append((position, length))


def scanned(
    content: bytes, *, next_offset: int = 0, start: int = 0, limit: int | None = None, check: bool = True
) -> list[tuple[int, int, int | None]]:
    """Return (position, end, base offset) of each found item."""
    file: Any = MemoryFile(content)
    items = scan(file, start, len(content) if limit is None else limit, next_offset, check=check)
    return [(item.position, item.end, item.header and item.header.base_offset) for item in items]


def test_fields_outside_the_checksum_are_checked() -> None:
    header = read_header(Batch().encode())
    smallest = header._replace(batch_length=49)
    assert plausible(smallest, 100, 161)
    assert not plausible(smallest, 100, 160)
    assert not plausible(header._replace(batch_length=48), 100, 1000)
    for changed, is_plausible in [
        ({"magic": 1}, False),
        ({"magic": 3}, False),
        ({"base_offset": 0}, True),
        ({"base_offset": -1}, False),
        ({"last_offset_delta": 0}, True),
        ({"last_offset_delta": -1}, False),
    ]:
        assert plausible(header._replace(**changed), 0, 1000) is is_plausible, changed


BATCHES = [
    Batch([NewRecord(bytes(size))] * 2, base_offset=2 * number).encode() for number, size in enumerate((9, 0, 50))
]
POSITIONS = [0, len(BATCHES[0]), len(BATCHES[0] + BATCHES[1])]
CONTENT = b"".join(BATCHES)
FOUND = [(POSITIONS[0], POSITIONS[1], 0), (POSITIONS[1], POSITIONS[2], 2), (POSITIONS[2], len(CONTENT), 4)]


@pytest.mark.parametrize("size", [*range(61, 70), len(BATCHES[0]) - 1, len(BATCHES[0]), len(BATCHES[0]) + 61, 1000])
def test_the_size_of_reads_does_not_matter(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(scan_module, "chunk_bytes_max", size)
    assert scanned(CONTENT) == FOUND
    assert scanned(CONTENT, check=False) == FOUND
    assert scanned(CONTENT, start=POSITIONS[1], next_offset=2) == FOUND[1:]
    assert scanned(CONTENT, limit=POSITIONS[2]) == FOUND[:2]
    broken = bytearray(CONTENT)
    broken[POSITIONS[1] + 30] ^= 1
    assert scanned(bytes(broken)) == [FOUND[0], (POSITIONS[1], POSITIONS[2], None), FOUND[2]]
    assert scanned(bytes(broken), check=False) == FOUND


def test_offsets_have_no_gaps_except_after_damage() -> None:
    first, later = Batch(base_offset=0).encode(), Batch(base_offset=7).encode()
    whole = len(first) + len(later)
    assert scanned(first + later) == [(0, len(first), 0), (len(first), whole, None)]
    garbage = b"\xff" * 10
    content = first + garbage + later
    assert scanned(content) == [
        (0, len(first), 0),
        (len(first), len(first) + 10, None),
        (len(first) + 10, whole + 10, 7),
    ]
    # The gap counts from the last batch before the damage.
    assert scanned(garbage + later, next_offset=8) == [(0, len(garbage + later), None)]
    assert scanned(garbage + later, next_offset=7)[1:] == [(10, 10 + len(later), 7)]
    # A second gap is damage again.
    last = Batch(base_offset=9).encode()
    assert scanned(garbage + later + last)[2:] == [(10 + len(later), 10 + len(later + last), None)]


@pytest.mark.parametrize("cut", [1, 30, len(BATCHES[2]) - 61, len(BATCHES[2]) - 60])
def test_an_incomplete_batch_at_the_end_is_damaged(cut: int) -> None:
    content = CONTENT[:-cut]
    assert scanned(content) == [*FOUND[:2], (POSITIONS[2], len(content), None)]


def test_every_range_must_be_cached_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_module, "chunk_bytes_max", 80)
    file: Any = MemoryFile(CONTENT)
    assert len(list(scan(file, 0, len(CONTENT), 0, check=True, wait=False))) == 3
    assert file.required == [
        (0, 80),
        (0, max(len(BATCHES[0]), 80)),
        (POSITIONS[1], min(80, len(CONTENT) - POSITIONS[1])),
        (POSITIONS[2], 80),
        (POSITIONS[2], len(BATCHES[2])),
    ]
