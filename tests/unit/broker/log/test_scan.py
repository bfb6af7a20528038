"""Scans of segment files with damaged ranges."""

from pathlib import Path

import pytest

from headgate.broker.log.files import LogFile
from headgate.broker.log.scan import find_sound
from tests.wire.record_batches import Batch


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
