"""What does HTTP cost in front of a broker? The REST proxy, one worker, on the embedded broker.

| question | compared with |
|---|---|
| one record per request, rate and latency | a bare FastAPI route that echoes its JSON |
| one record per request on one connection, latency | aiokafka, one record at a time |
| 100 records per request, the stream of v3 | aiokafka, the same records; Avro: encoded with fastavro |
| read of a whole topic | aiokafka's consumer |

aiokafka uses the same broker with the proxy's guarantees: acks=all and idempotent. Every acknowledged record is on
disk. Run alone: `python -m benchmarks.proxy [--quick]`.
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import fastavro
import httpx

from benchmarks import raw_load
from benchmarks.harness import Contender, Report, alternate
from benchmarks.proxy_load import DirectLatency, Load, percentile, read_directly, read_over_http, send_directly, stream
from headgate.proxy.api.v3.produce_stream import RECORDS_IN_FLIGHT_MAX
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

    def latency(self) -> None:
        """One record at a time: HTTP through the proxy, and aiokafka without HTTP."""
        value = json.dumps(order(7), separators=(",", ":")).encode()
        body = json.dumps({"records": [{"value": order(7)}]}).encode()
        media = "application/vnd.kafka.json.v2+json"
        ours = Load(self.proxy.url, f"/topics/{self.topic()}", body, media, 1)
        peer = DirectLatency(self.broker.address, self.topic(), value)
        requests = self.amount(3_000)
        alternate(
            [
                Contender("proxy", lambda: ours.run(requests), requests),
                Contender(AIOKAFKA, lambda: peer.run(requests), requests),
            ],
            self.rounds,
            1,
        )
        for share, label in ((0.5, "p50"), (0.99, "p99")):
            found = [percentile(load.seconds, share) for load in (ours, peer)]
            self.report.record(f"latency_{label}", *found, unit="ms", peer_name=AIOKAFKA, higher_is_better=False)

    def many_records_a_request(
        self,
        name: str,
        media: str,
        body: dict[str, object],
        values: Sequence[Any],
        requests: int,
        encode: Callable[[Any], bytes] | None = None,
    ) -> None:
        topic, other = self.topic(), self.topic()
        load = Load(self.proxy.url, f"/topics/{topic}", json.dumps(body).encode(), media, CONNECTIONS_OF_MANY)
        records = requests * RECORDS_A_REQUEST
        direct = [*values] * requests
        many = RECORDS_A_REQUEST * CONNECTIONS_OF_MANY
        self.report.compare(
            name,
            Contender("proxy", lambda: load.run(requests), records),
            Contender(AIOKAFKA, lambda: send_directly(self.broker.address, other, direct, many, encode), records),
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
        direct = [{**order(number), "note": "as agreed"} for number in range(RECORDS_A_REQUEST)]
        self.many_records_a_request(
            "hundred_avro_records",
            "application/vnd.kafka.avro.v2+json",
            body,
            direct,
            self.amount(600),
            _fastavro_encode,
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


_PARSED_SCHEMA = fastavro.parse_schema(json.loads(SCHEMA))


def _fastavro_encode(value: dict[str, object]) -> bytes:
    out = io.BytesIO()
    out.write(b"\0\0\0\0\1")
    fastavro.schemaless_writer(out, _PARSED_SCHEMA, value)
    return out.getvalue()


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
            "latency": bench.latency,
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
    parser.add_argument("--only", default="", help="some of: one, alone, latency, json, avro, stream, read")
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
