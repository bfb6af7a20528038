"""The functions that process eight bytes at a time have the results of the plain functions and change nothing else."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from numba import njit, types

from headgate.serdes.columnar.kernels import primitives
from headgate.serdes.columnar.native import signatures
from headgate.serdes.columnar.native.compiler import numba_type

BYTES_IN = numba_type(signatures.BYTES_IN)
U8 = numba_type(signatures.U8)
CANARY = 0xA5
NUMBER_BYTES = (0, 1, 2, 0x0F, 0x10, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0xFF)

Read = Callable[[Any, int, int], tuple[int, int]]


def machine(function: Callable[..., Any], *kinds: Any) -> Any:
    """Compiled for arguments of these types."""
    dispatcher: Any = njit(function)
    dispatcher.compile(kinds)
    dispatcher.disable_compile()
    return dispatcher


def numbers() -> Iterator[bytes]:
    rng = Random(5)
    for size in range(13):
        for _ in range(200):
            body = bytes(rng.choice(NUMBER_BYTES) for _ in range(size))
            yield body
            # Continuation bytes, up to the last one.
            yield bytes(byte | 0x80 for byte in body[:-1]) + body[-1:]


@pytest.mark.parametrize("read", [primitives.read_long, primitives.read_int])
def test_numbers_agree_with_the_plain_function(read: Read) -> None:
    def call(data: Any, pos: int, end: int) -> tuple[int, int]:
        return read(data, pos, end)

    fast = machine(call, BYTES_IN, types.int64, types.int64)
    for body in numbers():
        for behind in (b"", b"\0" * 9, b"\xff" * 9):
            data = np.frombuffer(b"\x81" + body + behind, np.uint8)
            end = 1 + len(body)
            expected, after = read(data.tolist(), 1, end)
            if expected >= 2**63:
                expected -= 2**64
            assert fast(data, 1, end) == (expected, after), body.hex()


def test_small_big_endian_numbers_agree_with_the_plain_function() -> None:
    def call(data: Any, pos: int, size: int) -> int:
        return primitives.small_signed(data, pos, size)

    fast = machine(call, BYTES_IN, types.int64, types.int64)
    rng = Random(6)
    for size in range(1, 9):
        for behind in (0, 1, 9):
            for first in (0, 1, 0x7F, 0x80, 0xFF):
                body = bytes([first]) + rng.randbytes(size - 1)
                data = np.frombuffer(b"\x55" + body + rng.randbytes(behind), np.uint8)
                assert fast(data, 1, size) == int.from_bytes(body, signed=True)


def copied(fast: Any, body: bytes, *, room: int, behind: int, has_limit: bool) -> Any:
    """The result, with a given space after the target and a given number of bytes in the source."""
    at, pos = 3, 2
    data = np.frombuffer(b"\x80\x80" + body + b"\xff" * behind, np.uint8)
    limit = at + len(body) + room
    target = np.full(limit + 16, CANARY, np.uint8)
    result = fast(target, at, limit, data, pos, len(body)) if has_limit else fast(target, at, data, pos, len(body))
    assert target[at : at + len(body)].tobytes() == body
    assert (target[:at] == CANARY).all()
    assert (target[limit if has_limit else at + len(body) :] == CANARY).all()
    return result


TEXTS = ("", "a", "ab", "é", "漢字", "\0", "seven b", "eight by", "nine byte", "x" * 16, "y" * 17, "z" * 33, "é" * 20)


def test_text_is_appended_within_its_limit_and_checked() -> None:
    def call(target: Any, at: int, limit: int, data: Any, pos: int, size: int) -> bool:
        return primitives.append_text(target, at, limit, data, pos, size)

    long = types.int64
    fast = machine(call, U8, long, long, BYTES_IN, long, long)
    for text in TEXTS:
        for room in range(10):
            for behind in range(10):
                assert copied(fast, text.encode(), room=room, behind=behind, has_limit=True)
                if text:
                    spoilt = text.encode()[:-1] + b"\xff"
                    assert not copied(fast, spoilt, room=room, behind=behind, has_limit=True)


def test_bytes_are_appended_within_their_limit() -> None:
    def call(target: Any, at: int, limit: int, data: Any, pos: int, size: int) -> None:
        primitives.append_bytes(target, at, limit, data, pos, size)

    long = types.int64
    fast = machine(call, U8, long, long, BYTES_IN, long, long)
    for size in range(50):
        for room in range(10):
            for behind in range(10):
                copied(fast, bytes(range(200, 200 + size)), room=room, behind=behind, has_limit=True)


def test_bytes_are_copied_and_nothing_else_changes() -> None:
    def call(target: Any, at: int, data: Any, pos: int, size: int) -> None:
        primitives.copy_bytes(target, at, data, pos, size)

    long = types.int64
    fast = machine(call, U8, long, BYTES_IN, long, long)
    for size in range(50):
        for behind in range(10):
            copied(fast, bytes(range(200, 200 + size)), room=0, behind=behind, has_limit=False)
