"""One client's connection: frames in, answers out, in order, with every buffer bounded.

Works on a raw non-blocking socket, so that frames are received straight into their buffer and records go from the page
cache to the socket with sendfile. Requests are executed as they arrive; an answer that has to wait (a long poll, an
fsync) holds back later answers, not the execution of later requests, up to a limit.
"""

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence

from broker.deferred import Deferred
from broker.engine import Engine, Reply
from broker.log.segment import Region
from broker.protocol.payload import Chunk, Disconnect, NoReply, Payload
from broker.server.other_protocols import other_protocol
from broker.server.readiness import Readiness
from broker.server.unfinished import SIZE, Memory, NoRoom, UnfinishedFrame

logger = logging.getLogger("headgate.broker.server")

# Answers that may wait on one connection before no further request is executed, and their bytes. Clients have five to
# a hundred in flight; one that sends on and on without reading must not fill the memory.
requests_in_flight_max = 128
waiting_answers_bytes_max = 16 * 1024 * 1024

# Requests of one connection are executed for this long at a stretch, then others have their turn.
turn_ms_max = 50

# Below this, a copy of records costs less than the extra system call of sendfile.
sendfile_bytes_min = 16 * 1024

# Larger answers go out at once. The others wait for those of other connections, where a turn has several.
held_answer_bytes_max = 16 * 1024

_MSG_MORE = getattr(socket, "MSG_MORE", 0)


class Connection:
    __slots__ = (
        "_backlog",
        "_engine",
        "_fd",
        "_frame",
        "_memory",
        "_on_close",
        "_output",
        "_readiness",
        "_reading",
        "_receive",
        "_slots",
        "_socket",
        "_waiting_bytes",
        "_writing",
        "closed",
        "host",
        "last_active_ms",
        "number",
    )

    def __init__(
        self,
        sock: socket.socket,
        number: int,
        host: str,
        engine: Engine,
        readiness: Readiness,
        memory: Memory,
        on_close: Callable[["Connection"], None],
    ) -> None:
        self.number = number
        self.host = host
        self.closed = False
        self.last_active_ms = memory.now_ms()
        self._socket = sock
        self._receive = sock.recv_into
        self._fd = sock.fileno()
        self._engine = engine
        self._readiness = readiness
        self._memory = memory
        self._on_close = on_close
        self._frame: UnfinishedFrame | None = None
        self._backlog: bytes | None = None
        self._slots: deque[_Slot] = deque()
        self._waiting_bytes = 0
        self._output: deque[Chunk | memoryview] = deque()
        self._reading = True
        self._writing = False
        readiness.add_reader(self._fd, self._on_readable)

    @property
    def unfinished_bytes(self) -> int:
        """Memory held for a request that is not here as a whole."""
        return self._frame.held_bytes if self._frame is not None else 0

    def _on_readable(self) -> None:
        try:
            if self._frame is None:
                memory = self._memory
                count = self._receive(memory.receive_buffer)
                if count > 4 and SIZE.unpack_from(memory.received)[0] == count - 4:
                    # One request and nothing else: nearly always.
                    self.last_active_ms = memory.now_ms()
                    self._execute(memory.received[4:count])
                elif count:
                    self._take(memory.received[:count])
            else:
                count = self._receive_frame(self._frame)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"receive failed: {error.strerror}")
            return
        if count == 0 and not self.closed:
            self.close(None)

    def _take(self, data: memoryview) -> None:
        """Execute the whole frames in `data`, which is read-only; keep the rest."""
        self._readiness.release()
        started_ms = self.last_active_ms = self._memory.now_ms()
        position, end = 0, len(data)
        while not self.closed:
            if position and (self._is_full() or self._memory.now_ms() - started_ms > turn_ms_max):
                self._set_aside(data[position:])
                return
            if end - position < 4:
                self._keep(data[position:], 4)
                return
            size = SIZE.unpack_from(data, position)[0]
            if not self._is_acceptable(size):
                return
            if end - position - 4 < size:
                self._keep(data[position:], size + 4)
                return
            self._execute(data[position + 4 : position + 4 + size])
            position += 4 + size
            if position == end:
                return

    def _is_acceptable(self, size: int) -> bool:
        if 0 <= size <= self._memory.frame_bytes_max:
            return True
        limit = self._memory.frame_bytes_max
        self.close(f"a frame of {size} bytes; socket.request.max.bytes is {limit}{other_protocol(size)}")
        return False

    def _set_aside(self, rest: memoryview) -> None:
        """Keep requests that are here but must wait, and read no more meanwhile."""
        if not self._memory.reserve(len(rest), self.number):
            self.close("too much memory is held for waiting requests")
            return
        self._backlog = bytes(rest)
        self._pause_reading()
        if not self._is_full():
            self._readiness.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Execute what was set aside."""
        backlog = self._backlog
        if self.closed or backlog is None or self._is_full():
            return
        self._backlog = None
        self._memory.release(len(backlog))
        self._take(memoryview(backlog))
        if not self._is_full():
            self._resume_reading()

    def _keep(self, part: memoryview, wanted: int) -> None:
        """Begin a buffer for a frame of `wanted` bytes, length included, of which `part` is here."""
        if not len(part):
            return
        try:
            self._frame = UnfinishedFrame(self._memory, self.number, part, wanted)
        except NoRoom as error:
            self.close(str(error))

    def _receive_frame(self, frame: UnfinishedFrame) -> int:
        try:
            count = frame.receive(self._socket)
        except NoRoom as error:
            self.close(str(error))
            return -1
        if count == 0:
            return 0
        self.last_active_ms = self._memory.now_ms()
        if not frame.is_whole:
            return count
        if frame.wanted == 4:
            # Only now is the length known.
            size = frame.claimed_size()
            if not self._is_acceptable(size):
                return count
            frame.wanted = size + 4
            if size:
                return count
        self._frame = None
        self._readiness.release()
        self._execute(frame.request)
        frame.release()
        return count

    def _execute(self, frame: memoryview) -> None:
        reply = self._engine.execute(frame, self.host, self.number)
        if isinstance(reply, bytes) and not self._slots and not self.closed:
            # Nearly always.
            self._send_whole(reply)
            return
        if isinstance(reply, Deferred):
            slot = _Slot(reply)
            self._slots.append(slot)
            reply.then(lambda ready: self._complete(slot, ready))
        elif self._slots:
            self._slots.append(_Slot(None))
            self._complete(self._slots[-1], reply)
        else:
            self._send(reply)
            return
        if self._is_full():
            self._pause_reading()

    def _is_full(self) -> bool:
        """Whether the client has to take answers before more of its requests are executed."""
        return (
            self._writing
            or len(self._slots) >= requests_in_flight_max
            or self._waiting_bytes > waiting_answers_bytes_max
        )

    def _complete(self, slot: "_Slot", reply: Reply) -> None:
        slot.reply = reply
        slot.deferred = None
        self.last_active_ms = self._memory.now_ms()
        self._waiting_bytes += _length(reply)
        slots = self._slots
        while slots and not self.closed:
            ready = slots[0].reply
            if ready is None:
                break
            slots.popleft()
            self._waiting_bytes -= _length(ready)
            self._send(ready)
        if not self._reading and not self._is_full():
            self._resume_reading()

    def _send(self, reply: Reply) -> None:
        if self.closed or isinstance(reply, NoReply):
            return
        if isinstance(reply, bytes):
            self._send_whole(reply)
            return
        if isinstance(reply, Disconnect):
            self.close(reply.reason)
            return
        if reply.length < sendfile_bytes_min:
            self._send_joined(reply.chunks)
            return
        self._readiness.release()
        self._output.extend(reply.chunks)
        if not self._writing:
            self._flush()

    def _send_joined(self, chunks: Sequence[Chunk]) -> None:
        """A small answer: one copy costs less than a system call for each chunk."""
        try:
            parts = [chunk.content() if isinstance(chunk, Region) else chunk for chunk in chunks]
        except OSError as error:
            self.close(f"send failed: {error.strerror}")
            return
        self._send_whole(b"".join(parts))

    def _send_whole(self, frame: bytes) -> None:
        """An answer in one piece, of which the socket nearly always takes all."""
        if self._output:
            self._output.append(frame)
            if not self._writing:
                # The one before was held back. A second is not, so that they cannot pile up.
                self._flush()
            return
        if self._readiness.is_busy and len(frame) <= held_answer_bytes_max:
            self._output.append(frame)
            self._readiness.hold(self, self.last_active_ms)
            return
        try:
            sent = self._socket.send(frame)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.close(f"send failed: {error.strerror}")
            return
        if sent < len(frame):
            self._output.append(memoryview(frame)[sent:])
            self._flush()

    def send_held(self) -> None:
        """Send an answer that waited for those of others."""
        if self._output and not self._writing:
            self._flush()

    def _flush(self) -> None:
        """Write what the socket takes; wait for it to take more, reading nothing meanwhile."""
        output = self._output
        try:
            while output:
                chunk = output[0]
                if isinstance(chunk, Region):
                    sent = self._send_region(chunk, last=len(output) == 1)
                    self.last_active_ms = self._memory.now_ms()
                    if sent < chunk.length:
                        output[0] = Region(chunk.file, chunk.position + sent, chunk.length - sent)
                        continue
                else:
                    sent = self._socket.send(chunk, _MSG_MORE if len(output) > 1 else 0)
                    if sent < len(chunk):
                        output[0] = memoryview(chunk)[sent:]
                        continue
                output.popleft()
        except BlockingIOError:
            if not self._writing:
                self._writing = True
                self._readiness.add_writer(self._fd, self._flush)
                self._pause_reading()
            return
        except OSError as error:
            output.clear()
            self.close(f"send failed: {error.strerror}")
            return
        self.last_active_ms = self._memory.now_ms()
        if self._writing:
            self._writing = False
            self._readiness.remove_writer(self._fd)
            if not self._is_full():
                self._resume_reading()

    def _send_region(self, region: Region, *, last: bool) -> int:
        if region.length < sendfile_bytes_min:
            # Told of more to come, the kernel holds the bytes back for 200 ms.
            return self._socket.send(region.content(), 0 if last else _MSG_MORE)
        sent = os.sendfile(self._fd, region.file.fd, region.position, region.length)
        if sent == 0:
            raise region.shortened()
        return sent

    def _pause_reading(self) -> None:
        if self._reading and not self.closed:
            self._reading = False
            self._readiness.remove_reader(self._fd)

    def _resume_reading(self) -> None:
        if self._backlog is not None:
            # In a turn of its own: this one may be in the middle of another client's request.
            self._readiness.call_soon(self._go_on)
        elif not self._reading and not self.closed:
            self._reading = True
            self._readiness.add_reader(self._fd, self._on_readable)

    def close(self, reason: str | None) -> None:
        """End the connection; `reason` is logged, None is the client's own good-bye."""
        self.send_held()
        if self.closed:
            return
        self.closed = True
        if reason is not None:
            logger.warning("closing connection %d from %s: %s", self.number, self.host, reason)
        self._readiness.remove_reader(self._fd)
        if self._writing:
            self._readiness.remove_writer(self._fd)
        self._output.clear()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.deferred is not None:
                slot.deferred.abandon()
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        if self._backlog is not None:
            self._memory.release(len(self._backlog))
            self._backlog = None
        self._socket.close()
        self._on_close(self)


class _Slot:
    """The place of an answer in the row."""

    __slots__ = ("deferred", "reply")

    def __init__(self, deferred: Deferred[Reply] | None) -> None:
        self.deferred = deferred
        self.reply: Reply | None = None


def _length(reply: Reply) -> int:
    if isinstance(reply, bytes):
        return len(reply)
    return reply.length if isinstance(reply, Payload) else 0
