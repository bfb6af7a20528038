"""What does HTTP cost in front of a broker? The REST proxy, one worker, on the embedded broker.

One record a request is compared with a bare FastAPI route that only echoes its JSON; a hundred records a request, the
stream of v3 and the read of a whole topic with an aiokafka client that does the same to the same broker, acks=all and
idempotent as the proxy is. Every acknowledged record is on disk. Run alone: `python -m benchmarks.proxy [--quick]`.
"""

import argparse
import asyncio
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from benchmarks import raw_load
from benchmarks.harness import Contender, Report, alternate
from headgate.proxy.api.v3.produce_stream import RECORDS_IN_FLIGHT_MAX
from headgate.serdes.avro import Encoder, parse
from headgate.serdes.framing import frame
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT
from tests.live.ports import accepts, free_port

ECHO = "FastAPI echo"
AIOKAFKA = "aiokafka"
CONNECTIONS = 32
RECORDS_A_REQUEST = 100
CONNECTIONS_OF_MANY = 8
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "customer", "type": "string"},
            {"name": "amount", "type": "double"},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
)


def order(number: int) -> dict[str, object]:
    return {"id": number, "customer": f"customer-{number % 1000}", "amount": number / 4, "note": None}


def tagged(number: int) -> dict[str, object]:
    """Return the order in Avro's JSON encoding, which tags the branch of a union."""
    return {**order(number), "note": {"string": "as agreed"}}


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


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(262144)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000


def stream(url: str, path: str, lines: list[bytes]) -> None:
    """Send one v3 request: write records in chunks while reading the reports. Every report must be a success."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=120)
    connection.sendall(
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n".encode()
    )

    def send() -> None:
        for start in range(0, len(lines), 500):
            part = b"".join(lines[start : start + 500])
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        connection.sendall(b"0\r\n\r\n")

    sending = threading.Thread(target=send)
    sending.start()
    good, tail = 0, b""
    while not tail.endswith(b"0\r\n\r\n"):
        data = tail[-30:] + _more(connection)
        good += data.count(b'"error_code":200,') - tail[-30:].count(b'"error_code":200,')
        tail = data
    sending.join()
    connection.close()
    assert good == len(lines), f"{good} of {len(lines)} reports were good"


def send_directly(address: str, topic: str, values: list[bytes], window: int) -> None:
    """Produce with aiokafka. `window` is the number of in-flight records, the same as for the proxy's clients."""

    async def run() -> None:
        make: Any = AIOKafkaProducer
        producer = make(bootstrap_servers=address, acks="all", enable_idempotence=True, max_batch_size=1_000_000)
        await producer.start()
        try:
            for start in range(0, len(values), window):
                sent = [await producer.send(topic, value) for value in values[start : start + window]]
                await asyncio.gather(*sent)
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


def read_over_http(url: str, path: str, wanted: int) -> None:
    seen = 0
    with httpx.stream(
        "GET", url + path, headers={"accept": "application/x-ndjson", "accept-encoding": "identity"}, timeout=120
    ) as answer:
        assert answer.status_code == 200, answer.read()
        for chunk in answer.iter_raw():
            seen += chunk.count(b"\n")
            if seen >= wanted:
                break
    assert seen >= wanted, f"{seen} of {wanted} records"


class Bench:
    def __init__(self, broker: HeadgateBroker, proxy: HeadgateProxy, echo: str, report: Report, *, quick: bool) -> None:
        self.broker = broker
        self.proxy = proxy
        self.echo = echo
        self.report = report
        self.scale = 0.2 if quick else 1.0
        self.rounds = 3 if quick else 5
        self._numbers = count()
        clusters = httpx.get(proxy.url + "/v3/clusters").json()
        self.base = f"/v3/clusters/{clusters['data'][0]['cluster_id']}"

    def amount(self, full: int) -> int:
        return max(int(full * self.scale), 100)

    def topic(self) -> str:
        name = f"bench-{next(self._numbers)}"
        raw_load.create_topic(self.broker.address, name)
        return name

    def one_record_a_request(self, connections: int) -> None:
        topic = self.topic()
        body = json.dumps({"records": [{"value": order(7)}]}).encode()
        ours = Load(self.proxy.url, f"/topics/{topic}", body, "application/vnd.kafka.json.v2+json", connections)
        peer = Load(self.echo, "/echo", body, "application/json", connections)
        requests = self.amount(20_000 if connections > 1 else 3_000)
        rates = alternate(
            [
                Contender("proxy", lambda: ours.run(requests), requests),
                Contender(ECHO, lambda: peer.run(requests), requests),
            ],
            self.rounds,
            1,
        )
        name = f"one_record_{connections}_connections"
        self.report.record_rounds(f"{name}_rate", *rates, unit="requests/s", peer_name=ECHO)
        for share, label in ((0.5, "p50"), (0.99, "p99")):
            found = [percentile(load.seconds, share) for load in (ours, peer)]
            self.report.record(f"{name}_{label}", *found, unit="ms", peer_name=ECHO, higher_is_better=False)

    def many_records_a_request(
        self, name: str, media: str, body: dict[str, object], values: list[bytes], requests: int
    ) -> None:
        topic, other = self.topic(), self.topic()
        load = Load(self.proxy.url, f"/topics/{topic}", json.dumps(body).encode(), media, CONNECTIONS_OF_MANY)
        records = requests * RECORDS_A_REQUEST
        direct = values * requests
        many = RECORDS_A_REQUEST * CONNECTIONS_OF_MANY
        self.report.compare(
            name,
            Contender("proxy", lambda: load.run(requests), records),
            Contender(AIOKAFKA, lambda: send_directly(self.broker.address, other, direct, many), records),
            unit="records/s",
            rounds=self.rounds,
        )
        self.report.state(f"{name}_p50", percentile(load.seconds, 0.5), "ms")
        self.report.state(f"{name}_p99", percentile(load.seconds, 0.99), "ms")

    def hundred_json(self) -> None:
        values = [order(number) for number in range(RECORDS_A_REQUEST)]
        body: dict[str, object] = {"records": [{"value": value} for value in values]}
        texts = [json.dumps(value, separators=(",", ":")).encode() for value in values]
        self.many_records_a_request(
            "hundred_json_records", "application/vnd.kafka.json.v2+json", body, texts, self.amount(600)
        )

    def hundred_avro(self) -> None:
        values = [tagged(number) for number in range(RECORDS_A_REQUEST)]
        body: dict[str, object] = {"value_schema": SCHEMA, "records": [{"value": value} for value in values]}
        encode = Encoder(parse(SCHEMA)).encode
        framed = [frame(1, encode({**order(number), "note": "as agreed"})) for number in range(RECORDS_A_REQUEST)]
        self.many_records_a_request(
            "hundred_avro_records", "application/vnd.kafka.avro.v2+json", body, framed, self.amount(600)
        )

    def streaming(self) -> None:
        topic, other = self.topic(), self.topic()
        records = self.amount(60_000)
        values = [json.dumps(order(number), separators=(",", ":")).encode() for number in range(records)]
        lines = [b'{"value":{"type":"JSON","data":%s}}\n' % value for value in values]
        path = f"{self.base}/topics/{topic}/records"
        self.report.compare(
            "streaming_produce",
            Contender("proxy", lambda: stream(self.proxy.url, path, lines), records),
            Contender(
                AIOKAFKA, lambda: send_directly(self.broker.address, other, values, RECORDS_IN_FLIGHT_MAX), records
            ),
            unit="records/s",
            rounds=self.rounds,
        )

    def reading(self) -> None:
        topic = self.topic()
        records = self.amount(100_000)
        values = [json.dumps(order(number), separators=(",", ":")).encode() for number in range(records)]
        send_directly(self.broker.address, topic, values, RECORDS_IN_FLIGHT_MAX)
        path = f"{self.base}/topics/{topic}/partitions/0/records?from=earliest&format=json"
        self.report.compare(
            "ndjson_read",
            Contender("proxy", lambda: read_over_http(self.proxy.url, path, records), records),
            Contender(AIOKAFKA, lambda: read_directly(self.broker.address, topic, records), records),
            unit="records/s",
            rounds=self.rounds,
        )


@contextmanager
def echo_server() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.proxy", "--echo", str(port)], cwd=ROOT)
    try:
        while not accepts(f"127.0.0.1:{port}"):
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def serve_echo(port: int) -> None:
    import uvicorn
    from fastapi import Body, FastAPI

    app = FastAPI(openapi_url=None)

    async def echo(body: Any = Body()) -> Any:  # noqa: B008  # FastAPI's way
        return body

    app.add_api_route("/echo", echo, methods=["POST"])
    uvicorn.run(app, port=port, log_level="error", access_log=False, http="httptools", loop="uvloop")


def run(*, quick: bool = False, only: str = "") -> Report:
    report = Report("proxy", __doc__ or "")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = HeadgateBroker(folder / "broker")
        stack.callback(broker.stop)
        broker.start()
        registry = HeadgateRegistry(folder / "registry")
        stack.callback(registry.stop)
        registry.start()
        proxy = HeadgateProxy(folder / "proxy", broker.address, registry.url)
        stack.callback(proxy.stop)
        proxy.start()
        bench = Bench(broker, proxy, stack.enter_context(echo_server()), report, quick=quick)
        questions: dict[str, Callable[[], None]] = {
            "one": lambda: bench.one_record_a_request(CONNECTIONS),
            "alone": lambda: bench.one_record_a_request(1),
            "json": bench.hundred_json,
            "avro": bench.hundred_avro,
            "stream": bench.streaming,
            "read": bench.reading,
        }
        for name, question in questions.items():
            if not only or name in only.split(","):
                question()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work and fewer rounds")
    parser.add_argument("--only", default="", help="some of: one, alone, json, avro, stream, read")
    parser.add_argument("--echo", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.echo:
        serve_echo(arguments.echo)
        return
    report = run(quick=arguments.quick, only=arguments.only)
    if not arguments.quick and not arguments.only:
        report.write()


if __name__ == "__main__":
    main()
