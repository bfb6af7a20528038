"""How much of a bare FastAPI route's speed does the schema registry keep, or gain?

The peer answers the same payload from one FastAPI route on uvicorn (httptools, uvloop): the least that a registry built
the usual way could cost. One worker each, 32 connections, the two in turn. New schemas are on disk when acknowledged.
Run alone: `python -m benchmarks.registry [--quick]`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.harness import Report
from benchmarks.http_load import HAS_WRK, Request, rate
from tests.live.registry import ROOT, RegistryProcess, free_port

PEER = "FastAPI route"
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "note", "type": ["null", "string"], "default": None},
    {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
SCHEMA = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": FIELDS})
KNOWN = Request("POST", "/subjects/orders-value/versions", json.dumps({"schema": SCHEMA}))


def new_schemas(first: int) -> Request:
    """Return a request that registers a new schema under a new subject each time."""
    fields = [*FIELDS, {"name": "fNUMBER", "type": "double"}]
    schema = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})
    return Request("POST", "/subjects/subject-NUMBER/versions", json.dumps({"schema": schema}), first)


def lines(first: int, count: int) -> Iterator[bytes]:
    """Yield import lines for `count` schemas similar to those of `new_schemas`."""
    for number in range(first, first + count):
        fields = [*FIELDS, {"name": f"g{number}", "type": "double"}]
        schema = json.dumps(
            {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}, separators=(",", ":")
        )
        line = {"kind": "schema", "subject": f"filled-{number}", "version": 1, "id": number, "schema": schema}
        yield json.dumps(line).encode() + b"\n"


def fill(url: str, first: int, count: int) -> None:
    with httpx.Client(base_url=url, timeout=None) as client:
        for start in range(first, first + count, 10_000):
            body = b"".join(lines(start, min(10_000, first + count - start)))
            answer = client.post("/import", content=body, headers={"content-type": "application/x-ndjson"})
            answer.raise_for_status()


@contextmanager
def peer(answers: dict[str, Any]) -> Iterator[str]:
    """Start the bare FastAPI routes in a separate process. `answers` maps method and path to the response."""
    port = free_port() + 1
    command = [sys.executable, "-m", "benchmarks.registry", "--peer", str(port), json.dumps(answers)]
    process = subprocess.Popen(command, cwd=ROOT)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                httpx.get(url)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def serve_peer(port: int, answers: dict[str, Any]) -> None:
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI(openapi_url=None)
    for key, answer in answers.items():
        method, _, path = key.partition(" ")
        handler = _getter(answer) if method == "GET" else _poster(answer)
        app.add_api_route(path, handler, methods=[method])
    uvicorn.run(app, port=port, log_level="error", access_log=False, http="httptools", loop="uvloop")


def _getter(answer: Any) -> Callable[[], Any]:
    async def get() -> Any:
        return answer

    return get


def _poster(answer: Any) -> Callable[[dict[str, Any]], Any]:
    async def post(body: dict[str, Any]) -> Any:
        return answer

    return post


def resident_bytes(process: RegistryProcess) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmRSS")


class Bench:
    def __init__(self, report: Report, *, quick: bool) -> None:
        self.report = report
        self.rounds = 3 if quick else 5
        self.seconds = 2 if quick else 5
        self.many = 10_000 if quick else 100_000
        self.numbers = iter(range(10_000_000, 2_000_000_000, 1_000_000))

    def compare(self, metric: str, url: str, peer_url: str, ours: Request, theirs: Request) -> float:
        rates: list[list[float]] = [[], []]
        for number in range(self.rounds + 1):
            for index, (base, request) in enumerate(((url, ours), (peer_url, theirs))):
                asked = new_schemas(next(self.numbers)) if request.counts else request
                measured = rate(base, asked, self.seconds)
                if number:
                    rates[index].append(measured)
        return self.report.record_rounds(metric, *rates, unit="requests/s", peer_name=PEER)

    def run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            process = RegistryProcess(Path(folder))
            process.start()
            try:
                self.measure(process)
            finally:
                process.stop()

    def measure(self, process: RegistryProcess) -> None:
        url = process.url
        headers = {"content-type": MEDIA_TYPE}
        registered = httpx.post(f"{url}{KNOWN.path}", content=KNOWN.body, headers=headers).json()
        by_id, latest = Request("GET", "/schemas/ids/1"), Request("GET", "/subjects/orders-value/versions/latest")
        answers = {
            f"GET {by_id.path}": httpx.get(f"{url}{by_id.path}").json(),
            f"GET {latest.path}": httpx.get(f"{url}{latest.path}").json(),
            f"POST {KNOWN.path}": registered,
        }
        with peer(answers) as peer_url:
            self.compare("get_by_id", url, peer_url, by_id, by_id)
            self.compare("get_latest", url, peer_url, latest, latest)
            self.compare("post_known", url, peer_url, KNOWN, KNOWN)
            self.compare("post_new_durable", url, peer_url, new_schemas(0), KNOWN)
        self.growth(process)

    def growth(self, process: RegistryProcess) -> None:
        """Compare the registration rate of a registry with 100 schemas and one with `many` schemas."""
        with tempfile.TemporaryDirectory() as folder:
            small = RegistryProcess(Path(folder))
            small.start()
            try:
                fill(small.url, 1, 100)
                before = resident_bytes(process)
                fill(process.url, 1_000_000_000, self.many)
                after = resident_bytes(process)
                rates: list[list[float]] = [[], []]
                for number in range(self.rounds + 1):
                    for index, one in enumerate((process, small)):
                        measured = rate(one.url, new_schemas(next(self.numbers)), self.seconds)
                        if number:
                            rates[index].append(measured)
            finally:
                small.stop()
        full, few = (statistics.median(one) for one in rates)
        self.report.record(
            f"post_new_at_{self.many}",
            full,
            few,
            unit="requests/s",
            peer_name="ours with 100 schemas",
            note="1/1.2 = 0.83 is the target",
        )
        per_thousand = (after - before) / self.many * 1000 / 1024
        self.report.state("memory_per_1000_schemas", per_thousand, "KiB", "resident, while they were imported")
        process.stop()
        started = time.perf_counter()
        process.start()
        self.report.state(
            f"start_with_{self.many}", time.perf_counter() - started, "s", "process start to first answer"
        )


def run(quick: bool) -> Report:
    load = "wrk" if HAS_WRK else "a Python client (install wrk for the fast ones)"
    report = Report("registry", f"The schema registry beside a bare FastAPI route, 32 connections, load by {load}.")
    Bench(report, quick=quick).run()
    report.write()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peer", nargs=2, metavar=("PORT", "ANSWERS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        serve_peer(int(arguments.peer[0]), json.loads(arguments.peer[1]))
    else:
        run(arguments.quick)


if __name__ == "__main__":
    main()
