"""A partially received request. Its buffer grows with the received bytes, up to the server's memory limit."""

import socket
import struct
from typing import Protocol

SIZE = struct.Struct(">i")
"""The length at the start of each frame."""

# The minimum growth of a buffer. A client that only claims a large length gets no large buffer.
frame_buffer_step_bytes = 1024 * 1024

# Large buffers are expensive to allocate. The last one is reused for the next large frame of any connection.
spared_frame_bytes_min = 128 * 1024


class Memory(Protocol):
    """The memory budget for partial frames and waiting requests of all connections. Implemented by the server."""

    receive_buffer: memoryview
    received: memoryview
    """A read-only view of `receive_buffer`."""
    frame_bytes_max: int
    spare_frame: bytearray | None
    """The buffer for the next large frame."""

    def reserve(self, size_bytes: int, holder: int) -> bool: ...
    def release(self, size_bytes: int) -> None: ...
    def now_ms(self) -> int: ...


class NoRoom(Exception):
    def __init__(self) -> None:
        super().__init__("the memory for partial requests is exhausted")


class PartialFrame:
    """A frame of `wanted` bytes, including its length. `wanted` is 4 until the length has arrived."""

    __slots__ = ("_buffer", "_filled", "_holder", "_memory", "wanted")

    def __init__(self, memory: Memory, holder: int, part: memoryview, wanted: int) -> None:
        """Reserve memory and copy `part` into the buffer. Raises NoRoom."""
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
        """The frame without its length."""
        return memoryview(self._buffer)[4 : self.wanted].toreadonly()

    def claimed_size(self) -> int:
        """The length in the first four bytes."""
        size: int = SIZE.unpack_from(self._buffer)[0]
        return size

    def receive(self, sock: socket.socket) -> int:
        """Receive up to the end of the frame. Returns 0 if the client has closed the connection. Raises NoRoom."""
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
        """Release the buffer. Another connection may reuse it."""
        size = len(self._buffer)
        self._memory.release(size)
        if spared_frame_bytes_min <= size <= frame_buffer_step_bytes:
            self._memory.spare_frame = self._buffer
