"""The listening socket, the timers and the threads of a running broker."""

import asyncio
import errno
import itertools
import logging
import os
import socket
from pathlib import Path

from headgate.broker.engine import Engine
from headgate.broker.log.open_files import descriptors_max, open_files
from headgate.broker.node.opening import open_broker
from headgate.broker.runtime.log_rate_limit import LogRateLimit, interval_ms
from headgate.broker.server.connection import Connection
from headgate.broker.server.readiness import Readiness
from headgate.broker.state.settings import BrokerSettings

logger = logging.getLogger("headgate.broker.server")

# One receive buffer for all connections. Complete requests are executed directly from this buffer. Therefore idle
# connections need no buffer.
receive_buffer_bytes = 256 * 1024

# Memory for partial and waiting requests of all connections. When it is exhausted, the server closes the connection
# with the longest stalled request. If no request has stalled, the server closes the connection that needs more memory.
partial_requests_bytes_max = 1024 * 1024 * 1024
stalled_request_ms_min = 1_000

# The maximum interval between checks for idle connections, and the pause after the server runs out of descriptors.
idle_check_interval_ms = 10_000
accept_pause_ms = 200

# File descriptors reserved for segment files (reads, rolls, checkpoints). At most a quarter of the process limit.
spare_descriptors = 64

# Limit on accepted connections per event-loop iteration, so that a flood does not starve existing connections.
accepts_per_iteration_max = 64


class Server:
    """Binds the address and recovers the data directory. `start` then accepts connections."""

    def __init__(self, data_directory: Path, settings: BrokerSettings, host: str, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener = _bind(host, port)
        try:
            self.broker = open_broker(data_directory, settings, self._post, address=self._listener.getsockname()[:2])
        except BaseException:
            self._listener.close()
            raise
        self.now_ms = self.broker.clock.monotonic_ms
        self._engine = Engine(self.broker)
        self._readiness = Readiness(self._loop)
        self._connections: dict[int, Connection] = {}
        self._per_host: dict[str, int] = {}
        self._numbers = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._accepting_paused = False
        self._log_rate_limit = LogRateLimit()
        self._reserved_bytes = 0
        self.receive_buffer = memoryview(bytearray(receive_buffer_bytes))
        self.received = self.receive_buffer.toreadonly()
        self.spare_frame: bytearray | None = None
        self.frame_bytes_max = settings.socket_request_max_bytes
        limit = descriptors_max()
        self._last_descriptor = limit - min(spare_descriptors, limit // 4)

    def start(self) -> tuple[str, int]:
        """Accept connections. Returns the address. Raises OSError."""
        self._listener.listen(self.broker.settings.socket_listen_backlog_size)
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener.fileno(), self._accept)
        self.broker.timers.on_earlier = self._schedule
        self._log_rate_limit.install()
        self.broker.timers.after(interval_ms, self._next_log_interval)
        self._close_idle()
        self._schedule()
        return self.broker.address

    def stop(self) -> None:
        """Stop listening, close all connections and close the broker cleanly."""
        self._loop.remove_reader(self._listener.fileno())
        self._listener.close()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._connections.values()):
            connection.close(None)
        self._readiness.close()
        self.broker.timers.on_earlier = None
        self._log_rate_limit.uninstall()
        self.broker.close()

    def reserve(self, size_bytes: int, holder: int) -> bool:
        while self._reserved_bytes + size_bytes > partial_requests_bytes_max:
            if not self._close_most_stalled(holder):
                return False
        self._reserved_bytes += size_bytes
        return True

    def _close_most_stalled(self, spared: int) -> bool:
        """Close the connection with the longest stalled partial request. Returns False if no request has stalled."""
        partial = [each for each in self._connections.values() if each.partial_bytes and each.number != spared]
        stalled = min(partial, key=lambda connection: connection.last_active_ms, default=None)
        if stalled is None or stalled.last_active_ms > self.now_ms() - stalled_request_ms_min:
            return False
        stalled.close("its request stalled while memory for requests ran out")
        return True

    def release(self, size_bytes: int) -> None:
        self._reserved_bytes -= size_bytes

    def _post(self, callback: object) -> None:
        self._loop.call_soon_threadsafe(callback)  # type: ignore[arg-type]

    def _accept(self) -> None:
        for _ in range(accepts_per_iteration_max):
            try:
                sock, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE) and open_files.make_room():
                    continue
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._pause_accepting(str(error.strerror))
                    return
                continue
            try:
                self._welcome(sock, address[0])
            except OSError as error:
                logger.warning("lost a connection from %s at its start: %s", address[0], error.strerror)
                sock.close()
                continue
            if sock.fileno() >= self._last_descriptor and not open_files.make_room():
                self._pause_accepting("the rest of the file descriptors is kept for files")
                return

    def _pause_accepting(self, reason: str) -> None:
        if not self._accepting_paused:
            logger.error("cannot accept connections for now: %s", reason)
        self._accepting_paused = True
        self._loop.remove_reader(self._listener.fileno())
        self._loop.call_later(accept_pause_ms / 1000, self._accept_again)

    def _accept_again(self) -> None:
        if self._listener.fileno() < 0:
            return
        if not self._has_descriptors():
            self._loop.call_later(accept_pause_ms / 1000, self._accept_again)
            return
        self._accepting_paused = False
        logger.info("accepting connections again")
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _has_descriptors(self) -> bool:
        """Whether the lowest free descriptor is below the limit for connections."""
        try:
            descriptor = os.dup(self._listener.fileno())
        except OSError:
            return open_files.make_room()
        os.close(descriptor)
        return descriptor <= self._last_descriptor or open_files.make_room()

    def _welcome(self, sock: socket.socket, host: str) -> None:
        settings = self.broker.settings
        if (
            len(self._connections) >= settings.max_connections
            or self._per_host.get(host, 0) >= settings.max_connections_per_ip
        ):
            logger.warning("refusing a connection from %s: max.connections or max.connections.per.ip is reached", host)
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = next(self._numbers)
        self._per_host[host] = self._per_host.get(host, 0) + 1
        self._connections[number] = Connection(sock, number, host, self._engine, self._readiness, self, self._forget)

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.number]
        left = self._per_host[connection.host] - 1
        if left:
            self._per_host[connection.host] = left
        else:
            del self._per_host[connection.host]

    def _next_log_interval(self) -> None:
        self.broker.timers.after(interval_ms, self._next_log_interval)
        self._log_rate_limit.next_interval()

    def _close_idle(self) -> None:
        idle_ms_max = self.broker.settings.connections_max_idle_ms
        if idle_ms_max < 0:
            self.broker.timers.after(idle_check_interval_ms, self._close_idle)
            return
        # Check more often if the idle limit is short. The default is ten minutes.
        self.broker.timers.after(max(min(idle_check_interval_ms, idle_ms_max // 2), 100), self._close_idle)
        idle_before_ms = self.now_ms() - idle_ms_max
        for connection in list(self._connections.values()):
            if connection.idle_since_ms < idle_before_ms:
                connection.close("idle for longer than connections.max.idle.ms")

    def _schedule(self) -> None:
        """Schedule a wake-up for the next timer."""
        deadline_ms = self.broker.timers.next_deadline_ms()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline_ms is not None:
            delay_ms = max(deadline_ms - self.now_ms(), 0)
            self._timer = self._loop.call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.broker.timers.run_due()
        self._schedule()


def _bind(host: str, port: int) -> socket.socket:
    """Bind a TCP socket to the first address of `host`. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener
