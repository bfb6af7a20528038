"""Clients of the proxy benchmark: plain sockets for HTTP, aiokafka for the same work without HTTP."""

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httptools
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


class Load:
    """Closed loop over keep-alive connections. One thread drives plain sockets, to keep the client's cost low."""

    def __init__(self, url: str, path: str, body: bytes, media: str, connections: int) -> None:
        host, _, port = url.removeprefix("http://").rpartition(":")
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._request = head.encode() + body
        self._address = (host, int(port))
        self._connections = connections
        self.seconds: list[float] = []

    def run(self, requests: int) -> None:
        """Send the requests over all connections and record their latencies."""
        clock = time.perf_counter
        selector = selectors.DefaultSelector()
        left = requests
        started: dict[socket.socket, float] = {}
        taken: list[float] = []
        # Open new connections for each run: servers close idle ones while the other contender runs.
        sockets = [socket.create_connection(self._address, timeout=60) for _ in range(self._connections)]
        for connection in sockets[:requests]:
            selector.register(connection, selectors.EVENT_READ)
            started[connection] = clock()
            connection.sendall(self._request)
            left -= 1
        while started:
            for key, _ in selector.select():
                connection = key.fileobj  # type: ignore[assignment]
                self._receive(connection)
                now = clock()
                taken.append(now - started[connection])
                if left:
                    left -= 1
                    started[connection] = now
                    connection.sendall(self._request)
                else:
                    del started[connection]
                    selector.unregister(connection)
        self.seconds += taken
        for connection in sockets:
            connection.close()

    @staticmethod
    def _receive(connection: socket.socket) -> None:
        data = connection.recv(65536)
        while b"\r\n\r\n" not in data:
            data += _more(connection)
        head, _, body = data.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(data.decode())
        left = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) - len(body)
        while left > 0:
            left -= len(_more(connection))


def _connect(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=120)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(262144)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


class StreamedBody:
    """Collects the body of a chunked response. A report may span two chunks."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.complete = False

    def on_body(self, data: bytes) -> None:
        self.parts.append(data)

    def on_message_complete(self) -> None:
        self.complete = True


def stream(url: str, path: str, lines: list[bytes]) -> None:
    """Send one v3 request: write records in chunks while reading the reports. Every report must be a success."""
    connection = _connect(url)
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nHost: {url.removeprefix('http://')}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )

    def send() -> None:
        for start in range(0, len(lines), 500):
            part = b"".join(lines[start : start + 500])
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        connection.sendall(b"0\r\n\r\n")

    sending = threading.Thread(target=send)
    sending.start()
    response = StreamedBody()
    parser = httptools.HttpResponseParser(response)
    while not response.complete:
        parser.feed_data(_more(connection))
    sending.join()
    connection.close()
    good = b"".join(response.parts).count(b'"error_code":200,')
    assert good == len(lines), f"{good} of {len(lines)} reports were good"


def _producer(address: str) -> Any:
    """Return aiokafka's producer with the proxy's guarantees: acks=all and idempotent."""
    make: Any = AIOKafkaProducer
    return make(bootstrap_servers=address, acks="all", enable_idempotence=True, max_batch_size=1_000_000)


def send_directly(
    address: str, topic: str, values: Sequence[Any], window: int, encode: Callable[[Any], bytes] | None = None
) -> None:
    """Produce with aiokafka. `window` is the number of in-flight records, the same as for the proxy's clients."""

    async def run() -> None:
        producer = _producer(address)
        await producer.start()
        try:
            for start in range(0, len(values), window):
                some = values[start : start + window]
                if encode is None:
                    sent = [await producer.send(topic, value) for value in some]
                else:
                    sent = [await producer.send(topic, encode(value)) for value in some]
                await asyncio.gather(*sent)
        finally:
            await producer.stop()

    uvloop.run(run())


class DirectLatency:
    """Produces one record at a time with aiokafka and records the latencies."""

    def __init__(self, address: str, topic: str, value: bytes) -> None:
        self._address = address
        self._topic = topic
        self._value = value
        self.seconds: list[float] = []

    def run(self, requests: int) -> None:
        async def run() -> None:
            clock = time.perf_counter
            producer = _producer(self._address)
            await producer.start()
            try:
                await producer.send_and_wait(self._topic, self._value)
                for _ in range(requests):
                    started = clock()
                    await producer.send_and_wait(self._topic, self._value)
                    self.seconds.append(clock() - started)
            finally:
                await producer.stop()

        uvloop.run(run())


def read_directly(address: str, topic: str, wanted: int) -> None:
    async def run() -> None:
        make: Any = AIOKafkaConsumer
        consumer = make(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
        await consumer.start()
        try:
            where = TopicPartition(topic, 0)
            consumer.assign([where])
            await consumer.seek_to_beginning(where)
            seen = 0
            while seen < wanted:
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    # Count the records without parsing them, as `read_over_http` does with lines.
                    seen += len(records)
        finally:
            await consumer.stop()

    uvloop.run(run())


class LineCounter:
    """Counts the lines of a chunked response without keeping it."""

    def __init__(self) -> None:
        self.lines = 0

    def on_body(self, data: bytes) -> None:
        self.lines += data.count(b"\n")


def read_over_http(url: str, path: str, wanted: int) -> None:
    """Read a topic as NDJSON. A plain socket: `httpx` loads CA certificates for each client, which takes 30 ms."""
    connection = _connect(url)
    host = url.removeprefix("http://")
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/x-ndjson\r\n\r\n".encode())
    counter = LineCounter()
    parser = httptools.HttpResponseParser(counter)
    while counter.lines < wanted:
        parser.feed_data(_more(connection))
        assert parser.get_status_code() == 200
    connection.close()
