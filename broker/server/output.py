"""The sending side of a connection: sends responses in order to a non-blocking socket.

The output coalesces small responses of one event-loop iteration into one system call. It sends records from the page
cache with sendfile. If the send buffer is full, the remaining bytes wait until the socket is writable. If the records
are not in the page cache, the remaining bytes wait until a thread has read them.
"""

import socket
from collections import deque
from collections.abc import Callable
from typing import Protocol

from headgate.broker.log.page_cache import ColdRead, ColdReads, PendingRead, cold_read_bytes_max
from headgate.broker.log.region import Region
from headgate.broker.requests.payload import Chunk, Payload
from headgate.broker.server.readiness import Readiness

# Below this size, copying records costs less than the extra system call of sendfile.
sendfile_bytes_min = 16 * 1024

# Responses of one connection that are coalesced into one send. Larger responses are sent immediately.
coalesced_bytes_max = 16 * 1024

_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class Owner(Protocol):
    """The connection. The output reports when it is blocked, when it has sent all bytes, and when sending fails."""

    def on_blocked(self) -> None: ...
    def on_drained(self) -> None: ...
    def on_send_failure(self, reason: str) -> None: ...


class Output:
    __slots__ = (
        "_chunks",
        "_cold_reads",
        "_fd",
        "_held",
        "_held_bytes",
        "_is_watching",
        "_loaded",
        "_now_ms",
        "_owner",
        "_pending",
        "_readiness",
        "_socket",
        "is_blocked",
        "last_sent_ms",
    )

    def __init__(
        self,
        sock: socket.socket,
        readiness: Readiness,
        owner: Owner,
        now_ms: Callable[[], int],
        cold_reads: ColdReads,
    ) -> None:
        self.is_blocked = False
        """Whether sending waits for a writable socket or for cold data."""
        self.last_sent_ms = 0
        """When `_flush` last sent records, or its last chunk."""
        self._now_ms = now_ms
        self._socket = sock
        self._fd = sock.fileno()
        self._readiness = readiness
        self._owner = owner
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._chunks: deque[Chunk | memoryview] = deque()
        self._is_watching = False
        self._cold_reads = cold_reads
        self._pending: PendingRead | None = None
        self._loaded: ColdRead | None = None
        """The range that a thread has just read. It is sent without a probe, so that each read makes progress."""

    def send(self, frame: bytes) -> None:
        """Send or coalesce an encoded response. The socket nearly always accepts all bytes."""
        if self.is_blocked:
            self._chunks.append(frame)
            return
        if self._held or self._readiness.coalesces:
            self._hold(frame)
            return
        try:
            sent = self._socket.send(frame)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self._fail(error)
            return
        if sent < len(frame):
            self._chunks.append(memoryview(frame)[sent:])
            self._flush()

    def send_payload(self, payload: Payload) -> None:
        """Send a response that contains records."""
        chunks = payload.chunks
        if payload.length < sendfile_bytes_min:
            # One copy costs less than a system call for each chunk.
            try:
                parts = [chunk.cached_content() if isinstance(chunk, Region) else chunk for chunk in chunks]
            except ColdRead:
                parts = []
            except OSError as error:
                self._fail(error)
                return
            if parts:
                self.send(b"".join(parts))
                return
        # Flush the responses of other connections first: sending records may take long.
        self._readiness.release()
        self.send_held()
        self._chunks.extend(chunks)
        if not self.is_blocked:
            self._flush()

    def _hold(self, frame: bytes) -> None:
        """Buffer a response until the iteration ends or `coalesced_bytes_max` is reached."""
        size = self._held_bytes + len(frame)
        if size > coalesced_bytes_max:
            self.send_held()
            if self.is_blocked or len(frame) > coalesced_bytes_max:
                self._chunks.append(frame)
                if not self.is_blocked:
                    self._flush()
                return
            size = len(frame)
        is_first = not self._held
        self._held.append(frame)
        self._held_bytes = size
        if is_first:
            # Call `hold` last: it flushes all connections if too many of them hold responses.
            self._readiness.hold(self)

    def send_held(self) -> None:
        """Flush the coalesced responses."""
        held = self._held
        if not held:
            return
        self._chunks.append(held[0] if len(held) == 1 else b"".join(held))
        self._held = []
        self._held_bytes = 0
        if not self.is_blocked:
            self._flush()

    def close(self) -> None:
        """Drop all unsent responses."""
        self._held = []
        self._chunks.clear()
        self._loaded = None
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._stop_watching()

    def _flush(self) -> None:
        """Send until the socket blocks, then wait until it is writable."""
        chunks = self._chunks
        try:
            while chunks:
                chunk = chunks[0]
                if isinstance(chunk, Region):
                    sent = self._send_region(chunk, last=len(chunks) == 1)
                    self.last_sent_ms = self._now_ms()
                    if sent < chunk.length:
                        chunks[0] = Region(chunk.file, chunk.position + sent, chunk.length - sent)
                        continue
                else:
                    sent = self._socket.send(chunk, _MSG_MORE if len(chunks) > 1 else 0)
                    if sent < len(chunk):
                        chunks[0] = memoryview(chunk)[sent:]
                        continue
                chunks.popleft()
        except ColdRead as cold:
            self._load(cold)
            return
        except BlockingIOError:
            # The kernel may evict the pages before the socket is writable again.
            self._loaded = None
            if not self._is_watching:
                self._is_watching = True
                self._readiness.add_writer(self._fd, self._flush)
            self._block()
            return
        except OSError as error:
            self._fail(error)
            return
        self._loaded = None
        self.last_sent_ms = self._now_ms()
        if self.is_blocked:
            self.is_blocked = False
            self._stop_watching()
            self._owner.on_drained()

    def _block(self) -> None:
        if not self.is_blocked:
            self.is_blocked = True
            self._owner.on_blocked()

    def _stop_watching(self) -> None:
        if self._is_watching:
            self._is_watching = False
            self._readiness.remove_writer(self._fd)

    def _load(self, cold: ColdRead) -> None:
        """Let a thread read the cold data, then continue sending."""
        self._stop_watching()
        try:
            self._pending = self._cold_reads.load((cold,), lambda: self._on_loaded(cold))
        except OSError as error:
            self._fail(error)
            return
        self._block()

    def _on_loaded(self, cold: ColdRead) -> None:
        self._pending = None
        self._loaded = cold
        self._flush()

    def _send_region(self, region: Region, *, last: bool) -> int:
        file, position, length = region
        loaded = self._loaded
        if loaded is not None and loaded.file is file and loaded.position <= position < loaded.end:
            length = min(length, loaded.end - position)
        else:
            length = min(length, cold_read_bytes_max)
            cached = file.cached_bytes(position, length)
            if cached == 0:
                raise ColdRead(file, position, length)
            length = cached
        if length < sendfile_bytes_min:
            # With MSG_MORE on the last chunk, the kernel would delay the bytes by up to 200 ms.
            is_end = last and length == region.length
            return self._socket.send(Region(file, position, length).content(), 0 if is_end else _MSG_MORE)
        sent = file.send(self._fd, position, length)
        if sent == 0:
            raise region.shortened()
        return sent

    def _fail(self, error: OSError) -> None:
        self._held = []
        self._chunks.clear()
        self._owner.on_send_failure(f"send failed: {error.strerror}")
