"""The connection of one client: receives frames, executes requests and sends responses in order.

All buffers are bounded. The connection uses a raw non-blocking socket and receives frames directly into their buffers.
It executes a few requests at a time. A response that waits (for a long poll or an fsync) delays later responses. Later
requests are still executed, up to a limit. A request whose batches are verified in a thread blocks later requests, too.
"""

import logging
import socket
from collections import deque
from collections.abc import Callable

from headgate.broker.engine import Engine, Reply
from headgate.broker.protocol.outcomes import Disconnect, NoReply
from headgate.broker.requests.payload import Payload
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.server.other_protocols import other_protocol
from headgate.broker.server.output import Output
from headgate.broker.server.partial_frame import SIZE, Memory, NoRoom, PartialFrame
from headgate.broker.server.readiness import Readiness

logger = logging.getLogger("headgate.broker.server")

# Backpressure: limits on the waiting responses of one connection, and on their bytes. At the limit, the connection
# executes no further request. Clients have 5 to 100 in-flight requests. A client that does not read must not fill the
# memory.
requests_in_flight_max = 128
waiting_answers_bytes_max = 16 * 1024 * 1024

# The time slice of one connection: the maximum number of requests, and the maximum duration.
requests_per_turn_max = 8
turn_seconds_max = 0.0003

# Bytes per receive from a client that pipelines more requests than fit into a time slice. They wait in memory.
pipelined_receive_bytes = 16 * 1024


class Connection:
    __slots__ = (
        "_backlog",
        "_backlog_bytes",
        "_blocking_bytes",
        "_engine",
        "_fd",
        "_frame",
        "_is_queued",
        "_memory",
        "_on_close",
        "_output",
        "_readiness",
        "_reading",
        "_receive",
        "_receive_bytes",
        "_slots",
        "_socket",
        "_waiting_bytes",
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
        self._frame: PartialFrame | None = None
        self._backlog: memoryview | None = None
        self._backlog_bytes = 0
        self._blocking_bytes = 0
        """The size of a request that blocks later requests until it is executed. 0 if there is none."""
        self._is_queued = False
        self._receive_bytes = len(memory.receive_buffer)
        self._slots: deque[_Slot] = deque()
        self._waiting_bytes = 0
        self._output = Output(sock, readiness, self, memory.now_ms, engine.cold_reads)
        self._reading = True
        readiness.add_reader(self._fd, self._on_readable)

    @property
    def partial_bytes(self) -> int:
        """The buffer size of a partially received request."""
        return self._frame.held_bytes if self._frame is not None else 0

    @property
    def idle_since_ms(self) -> int:
        return max(self.last_active_ms, self._output.last_sent_ms)

    def _on_readable(self) -> None:
        try:
            if self._frame is None:
                memory = self._memory
                count = self._receive(memory.receive_buffer, self._receive_bytes)
                if count > 4 and SIZE.unpack_from(memory.received)[0] == count - 4:
                    # Fast path: exactly one request.
                    self.last_active_ms = memory.now_ms()
                    self._receive_bytes = len(memory.receive_buffer)
                    self._execute(memory.received[4:count])
                elif count:
                    self.last_active_ms = memory.now_ms()
                    rest = self._take(memory.received[:count])
                    if rest is not None:
                        self._set_aside(rest)
            else:
                count = self._receive_frame(self._frame)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"receive failed: {error.strerror}")
            return
        if count == 0 and not self.closed:
            self.close(None)

    def _take(self, data: memoryview) -> memoryview | None:
        """Execute the complete frames in `data` and buffer an incomplete last frame. `data` is read-only.

        Returns the frames that must wait for the next time slice, or until the connection is no longer full.
        """
        readiness = self._readiness
        # Coalesce responses: this connection probably has more than one request.
        readiness.coalesces = True
        until = readiness.now() + turn_seconds_max
        executed = position = 0
        end = len(data)
        while not self.closed:
            if executed and (executed == requests_per_turn_max or self._is_full() or readiness.now() >= until):
                return data[position:]
            if end - position < 4:
                self._keep(data[position:], 4)
                break
            size = SIZE.unpack_from(data, position)[0]
            if not self._is_acceptable(size):
                break
            if end - position - 4 < size:
                self._keep(data[position:], size + 4)
                break
            self._execute(data[position + 4 : position + 4 + size])
            executed += 1
            position += 4 + size
            if position == end:
                break
        return None

    def _is_acceptable(self, size: int) -> bool:
        if 0 <= size <= self._memory.frame_bytes_max:
            return True
        limit = self._memory.frame_bytes_max
        self.close(f"a frame of {size} bytes; socket.request.max.bytes is {limit}{other_protocol(size)}")
        return False

    def _set_aside(self, rest: memoryview) -> None:
        """Store requests that must wait, and stop receiving."""
        size = len(rest)
        if not self._memory.reserve(size, self.number):
            self.close("too much memory is held for waiting requests")
            return
        self._backlog = memoryview(bytes(rest))
        self._backlog_bytes = size
        self._receive_bytes = pipelined_receive_bytes
        self._pause_reading()
        if not self._is_full():
            self._enqueue()

    def _enqueue(self) -> None:
        if not self._is_queued:
            self._is_queued = True
            self._readiness.enqueue(self._serve_backlog)

    def _serve_backlog(self) -> None:
        """Execute the waiting requests for one time slice."""
        self._is_queued = False
        backlog = self._backlog
        if self.closed or backlog is None or self._is_full():
            return
        self.last_active_ms = self._memory.now_ms()
        self._replace_backlog(self._take(backlog))

    def _replace_backlog(self, rest: memoryview | None) -> None:
        if self.closed:
            return
        self._backlog = rest
        if rest is None:
            self._memory.release(self._backlog_bytes)
            self._backlog_bytes = 0
        if not self._is_full():
            self._resume()

    def _keep(self, part: memoryview, wanted: int) -> None:
        """Buffer `part`, the first bytes of a frame. `wanted` is the size of the frame, including its length field."""
        if not len(part):
            return
        try:
            self._frame = PartialFrame(self._memory, self.number, part, wanted)
        except NoRoom as error:
            self.close(str(error))

    def _receive_frame(self, frame: PartialFrame) -> int:
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
            # The length field is complete.
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
            # Fast path.
            self._output.send(reply)
            return
        if isinstance(reply, Deferred):
            slot = _Slot(reply)
            self._slots.append(slot)
            if reply.blocks_connection and not self._block(len(frame)):
                return
            reply.then(lambda ready: self._complete(slot, ready))
        elif self._slots:
            self._slots.append(_Slot(None))
            self._complete(self._slots[-1], reply)
        else:
            self._send(reply)
            return
        if self._is_full():
            self._pause_reading()

    def _block(self, size_bytes: int) -> bool:
        """Block later requests until this request is executed. Reserves memory for the copy that its handler keeps."""
        if not self._memory.reserve(size_bytes, self.number):
            self.close("too much memory is held for waiting requests")
            return False
        self._blocking_bytes = size_bytes
        return True

    def _unblock(self) -> None:
        self._memory.release(self._blocking_bytes)
        self._blocking_bytes = 0

    def _is_full(self) -> bool:
        """Whether the next request must wait: for a blocking request, for the output, or for earlier responses."""
        return (
            self._output.is_blocked
            or self._blocking_bytes > 0
            or len(self._slots) >= requests_in_flight_max
            or self._waiting_bytes > waiting_answers_bytes_max
        )

    def _complete(self, slot: "_Slot", reply: Reply) -> None:
        slot.reply = reply
        if slot.deferred is not None and slot.deferred.blocks_connection:
            self._unblock()
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
            self._resume()

    def _send(self, reply: Reply) -> None:
        if self.closed or isinstance(reply, NoReply):
            return
        if isinstance(reply, bytes):
            self._output.send(reply)
        elif isinstance(reply, Disconnect):
            self.close(reply.reason)
        else:
            self._output.send_payload(reply)

    def on_blocked(self) -> None:
        """Backpressure: stop receiving until the output is drained."""
        self._pause_reading()

    def on_drained(self) -> None:
        self.last_active_ms = self._memory.now_ms()
        if not self._is_full():
            self._resume()

    def on_send_failure(self, reason: str) -> None:
        self.close(reason)

    def _pause_reading(self) -> None:
        if self._reading and not self.closed:
            self._reading = False
            self._readiness.remove_reader(self._fd)

    def _resume(self) -> None:
        """Continue with the waiting requests, or with receiving."""
        if self._backlog is not None:
            # Do not execute requests here: the caller may be executing a request of another client.
            self._enqueue()
        elif not self._reading and not self.closed:
            self._reading = True
            self._readiness.add_reader(self._fd, self._on_readable)

    def close(self, reason: str | None) -> None:
        """Close the connection and log `reason`. None logs nothing: the client or the server closed it normally."""
        self._output.send_held()
        if self.closed:
            return
        self.closed = True
        if reason is not None:
            logger.warning("closing connection %d from %s: %s", self.number, self.host, reason)
        self._readiness.remove_reader(self._fd)
        self._output.close()
        slots, self._slots = self._slots, deque()
        for slot in slots:
            if slot.deferred is not None:
                slot.deferred.abandon()
        if self._frame is not None:
            self._frame.release()
            self._frame = None
        self._backlog = None
        self._memory.release(self._backlog_bytes)
        self._backlog_bytes = 0
        self._unblock()
        self._socket.close()
        self._on_close(self)


class _Slot:
    """The position of a response in the queue of waiting responses."""

    __slots__ = ("deferred", "reply")

    def __init__(self, deferred: Deferred[Reply] | None) -> None:
        self.deferred = deferred
        self.reply: Reply | None = None


def _length(reply: Reply) -> int:
    if isinstance(reply, bytes):
        return len(reply)
    return reply.length if isinstance(reply, Payload) else 0
