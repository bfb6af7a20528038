"""Probes of the page cache and the threads that fill it, with fake system calls."""

import errno
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.broker.log import page_cache
from headgate.broker.log.page_cache import ColdRead, ColdReads, PendingRead, cached_bytes, read_cached

STEP = page_cache.probe_step_bytes
DESCRIPTOR: Any = SimpleNamespace(number=7)


class FakeFile:
    """The kernel's view of a file: its size, and the positions whose pages are not cached."""

    def __init__(self, size: int, cold: Callable[[int], bool] = lambda at: False, error: OSError | None = None) -> None:
        self.size = size
        self.cold = cold
        self.error = error
        self.probes: list[int] = []
        self.probed_bytes = 0
        self.reads: list[tuple[int, int]] = []

    def preadv(self, number: int, buffers: Any, position: int, flags: int = 0) -> int:
        assert number == 7
        length = sum(len(buffer) for buffer in buffers)
        if flags:
            self.probes.append(position)
            self.probed_bytes = length
        else:
            self.reads.append((position, length))
        if self.error is not None:
            raise self.error
        if flags and self.cold(position):
            raise BlockingIOError
        return max(min(length, self.size - position), 0)

    def pread(self, number: int, length: int, position: int) -> bytes:
        return b"p" * min(length, self.size - position)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeFile], FakeFile]:
    def used(file: FakeFile) -> FakeFile:
        monkeypatch.setattr(page_cache, "os", SimpleNamespace(preadv=file.preadv, pread=file.pread))
        monkeypatch.setattr(page_cache, "RWF_NOWAIT", 8)
        return file

    return used


@pytest.mark.parametrize(
    ("length", "probes"),
    [
        (1, [5, 5]),
        (STEP, [5, STEP + 4]),
        (STEP + 1, [5, STEP + 4, STEP + 5]),
        (2 * STEP + 9, [5, STEP + 4, 2 * STEP + 4, 2 * STEP + 13]),
    ],
)
def test_the_first_byte_and_the_end_of_each_step_are_probed(
    use: Callable[[FakeFile], FakeFile], length: int, probes: list[int]
) -> None:
    file = use(FakeFile(10 * STEP))
    assert cached_bytes(DESCRIPTOR, 5, length) == length
    assert (file.probes, file.probed_bytes) == (probes, 1)


@pytest.mark.parametrize(
    ("cold_from", "cached"),
    [(0, 0), (5, 0), (6, 0), (STEP + 4, 0), (STEP + 5, STEP), (2 * STEP + 5, 2 * STEP), (3 * STEP, 2 * STEP + 9)],
)
def test_only_complete_steps_before_a_cold_page_are_cached(
    use: Callable[[FakeFile], FakeFile], cold_from: int, cached: int
) -> None:
    use(FakeFile(10 * STEP, lambda at: at >= cold_from))
    assert cached_bytes(DESCRIPTOR, 5, 2 * STEP + 9) == cached


def test_a_file_system_without_probes_counts_as_cached(
    use: Callable[[FakeFile], FakeFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(FakeFile(100, error=OSError(errno.EOPNOTSUPP, "no")))
    assert cached_bytes(DESCRIPTOR, 0, 100) == 100
    assert read_cached(DESCRIPTOR, 10, 5) == b"ppppp"
    file = use(FakeFile(100))
    monkeypatch.setattr(page_cache, "RWF_NOWAIT", None)
    assert cached_bytes(DESCRIPTOR, 0, 100) == 100
    assert read_cached(DESCRIPTOR, 10, 5) == b"ppppp"
    assert file.probes == []


@pytest.mark.parametrize(
    ("position", "is_cold", "expected"), [(0, False, bytes(10)), (91, False, None), (0, True, None)]
)
def test_a_range_is_read_only_if_all_of_it_is_cached(
    use: Callable[[FakeFile], FakeFile], position: int, is_cold: bool, expected: bytes | None
) -> None:
    use(FakeFile(100, lambda at: is_cold))
    assert read_cached(DESCRIPTOR, position, 10) == expected


@pytest.mark.parametrize(
    ("size", "error", "reads"),
    [
        (1000, None, [(3, 4), (7, 4), (11, 2)]),
        (9, None, [(3, 4), (7, 4), (9, 4)]),
        (1000, OSError(), [(3, 4)]),
    ],
)
def test_a_thread_reads_a_range_in_pieces(
    use: Callable[[FakeFile], FakeFile], size: int, error: OSError | None, reads: list[tuple[int, int]]
) -> None:
    file = use(FakeFile(size, error=error))
    posted: list[Callable[[], None]] = []
    ColdReads(posted.append).read(DESCRIPTOR, 3, 10, bytearray(4))
    assert file.reads == reads


def pending(done: list[str], ranges: int = 2) -> PendingRead:
    work: list[Callable[[], None]] = [partial(done.append, f"work {number}") for number in range(2)]
    return PendingRead([(DESCRIPTOR, 100 * number, 10) for number in range(ranges)], work, lambda: done.append("done"))


def test_ranges_are_read_before_the_work_and_the_callback(use: Callable[[FakeFile], FakeFile]) -> None:
    file, done = use(FakeFile(1000)), list[str]()
    posted: list[Callable[[], None]] = []
    first, second = pending(done), pending(done)
    ColdReads(posted.append)._work(iter([first, second]))
    assert sorted(file.reads) == [(0, 10), (0, 10), (100, 10), (100, 10)]
    assert (first.ranges, first.work) == ([], [])
    assert "done" not in done
    for callback in posted:
        callback()
    assert done.count("done") == 2


def test_a_cancelled_read_does_nothing_more(use: Callable[[FakeFile], FakeFile]) -> None:
    file, done = use(FakeFile(1000)), list[str]()
    posted: list[Callable[[], None]] = []
    cancelled = pending(done)
    cancelled.cancel()
    ColdReads(posted.append)._work(iter([cancelled]))
    for callback in posted:
        callback()
    assert (file.reads, done, cancelled.ranges) == ([], [], [])


def test_a_cold_read_names_its_range() -> None:
    cold = ColdRead(DESCRIPTOR, 5, 10)
    assert (cold.position, cold.length, cold.end, cold.work) == (5, 10, 15, None)
    assert "10 bytes at 5" in str(cold)
