"""Clients that pipeline requests without waiting for responses, to measure their effect on another client.

They run in a separate process. Each connection keeps its send buffer full of ApiVersions requests and reads the
responses as they arrive.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe

from benchmarks import raw_load

API_VERSIONS_VERSION = 3
# Requests per system call.
REQUESTS_PER_SEND = 400
RECEIVE_BYTES = 256 * 1024


@contextmanager
def greedy_clients(address: str, connections: int) -> Iterator[None]:
    """Pipeline ApiVersions requests over `connections` connections until the block ends."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_run, args=(address, connections, there), daemon=True)
    process.start()
    try:
        assert here.recv() == "started"
        yield
    finally:
        here.send("stop")
        process.join(30)
        assert process.exitcode == 0, f"the greedy clients ended with {process.exitcode}"


def _run(address: str, connections: int, pipe: Pipe) -> None:
    body: dict[str, object] = {"client_software_name": "greedy", "client_software_version": "1"}
    frame = raw_load.request_frame("api_versions", API_VERSIONS_VERSION, body)
    host, _, port = address.rpartition(":")
    sockets: dict[int, socket.socket] = {}
    unsent: dict[int, memoryview] = {}
    requests = memoryview(frame * REQUESTS_PER_SEND)
    buffer = bytearray(RECEIVE_BYTES)
    with ExitStack() as stack, select.epoll() as poll:
        for _ in range(connections):
            sock = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            sock.setblocking(False)
            sockets[sock.fileno()] = sock
            unsent[sock.fileno()] = requests
            poll.register(sock.fileno(), select.EPOLLIN | select.EPOLLOUT)
        pipe.send("started")
        poll.register(pipe.fileno(), select.EPOLLIN)
        while True:
            for fd, events in poll.poll(60):
                if fd == pipe.fileno():
                    return
                if events & select.EPOLLIN and not sockets[fd].recv_into(buffer):
                    raise ConnectionError("the broker closed a greedy connection")
                if events & select.EPOLLOUT:
                    sent = sockets[fd].send(unsent[fd])
                    unsent[fd] = unsent[fd][sent:] or requests
