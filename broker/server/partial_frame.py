"""A request that has arrived in part: its buffer, which grows with the bytes that come, within the server's account."""

import socket
import struct
from typing import Protocol

SIZE = struct.Struct(">i")
"""What every frame begins with."""

# A frame's buffer grows with the bytes that arrive, not with the length it claims.
frame_buffer_step_bytes = 1024 * 1024

# Buffers of large frames are costly to get from the system; the last one is kept for the next, whoever sends it.
spared_frame_bytes_min = 128 * 1024


class Memory(Protocol):
    """The server's account of bytes held for requests that are still arriving."""

    receive_buffer: memoryview
    received: memoryview
    """The same bytes, read-only."""
    frame_bytes_max: int
    spare_frame: bytearray | None
    """A buffer that nobody uses just now."""

    def reserve(self, size_bytes: int, holder: int) -> bool: ...
    def release(self, size_bytes: int) -> None: ...
    def now_ms(self) -> int: ...


class NoRoom(Exception):
    def __init__(self) -> None:
        super().__init__("too much memory is held for unfinished requests")


class UnfinishedFrame:
    """A frame of `wanted` bytes, its length included; 4 while not even the length is here."""

    __slots__ = ("_buffer", "_filled", "_holder", "_memory", "wanted")

    def __init__(self, memory: Memory, holder: int, part: memoryview, wanted: int) -> None:
        """Raises NoRoom."""
        self._memory = memory
        self._holder = holder
        self.wanted = wanted
        capacity = max(len(part), min(wanted, frame_buffer_step_bytes))
        spare = memory.spare_frame
        if spare is not None and not spared_frame_bytes_min <= capacity <= len(spare):
            spare = None
        if not memory.reserve(capacity if spare is None else len(spare), holder):
            raise NoRoom
        if spare is None:
            self._buffer = bytearray(capacity)
        else:
            self._buffer, memory.spare_frame = spare, None
        self._buffer[: len(part)] = part
        self._filled = len(part)

    @property
    def held_bytes(self) -> int:
        return len(self._buffer)

    @property
    def is_whole(self) -> bool:
        return self._filled >= self.wanted

    @property
    def request(self) -> memoryview:
        """What stands behind the length."""
        return memoryview(self._buffer)[4 : self.wanted].toreadonly()

    def claimed_size(self) -> int:
        """What the first four bytes say."""
        size: int = SIZE.unpack_from(self._buffer)[0]
        return size

    def receive(self, sock: socket.socket) -> int:
        """Receive what the socket has, never beyond the frame's end; 0 where the client has ended. Raises NoRoom."""
        buffer = self._buffer
        if self._filled == len(buffer):
            more = min(self.wanted - len(buffer), max(len(buffer), frame_buffer_step_bytes))
            if not self._memory.reserve(more, self._holder):
                raise NoRoom
            buffer.extend(bytes(more))
        limit = min(len(buffer), self.wanted)
        count = sock.recv_into(memoryview(buffer)[self._filled : limit])
        self._filled += count
        return count

    def release(self) -> None:
        """Give the memory back; it may be another's from now on."""
        size = len(self._buffer)
        self._memory.release(size)
        if spared_frame_bytes_min <= size <= frame_buffer_step_bytes:
            self._memory.spare_frame = self._buffer
