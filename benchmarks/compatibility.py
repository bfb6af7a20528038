"""How long does it take to compare schemas with many alternatives?

- Avro: a union of records with one field that is widened from int to long, without and with two nullable fields. The
  peer is the checker of the `avro` package, which stops at the first difference.
- JSON Schema: a `oneOf` of objects that a constant tells apart. No Python package has a checker to compare with.
- A registry that compares such schemas: how long other clients wait meanwhile.

    python -m benchmarks.compatibility [--quick]
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from avro.compatibility import ReaderWriterCompatibilityChecker
from avro.schema import parse as parse_with_avro

from benchmarks.harness import Contender, Report, seconds_of
from headgate.registry.compatibility import avro as avro_compatibility
from headgate.registry.compatibility import json_schema as json_compatibility
from headgate.registry.formats import avro, json_schema
from tests.live.registry import RegistryProcess

PEER = "avro"
BRANCHES = (100, 200, 400)


def union(count: int, kind: str, nullable: int = 0) -> str:
    fields: list[dict[str, Any]] = [{"name": "value", "type": kind}]
    fields += [{"name": f"optional{n}", "type": ["null", kind], "default": None} for n in range(nullable)]
    return json.dumps(
        [{"type": "record", "name": f"Event{n}", "namespace": "shop", "fields": fields} for n in range(count)]
    )


def one_of(count: int, kind: str) -> str:
    members = [
        {
            "type": "object",
            "properties": {"type": {"const": f"event{n}"}, "value": {"type": kind}, "note": {"type": "string"}},
            "required": ["type"],
            "additionalProperties": False,
        }
        for n in range(count)
    ]
    return json.dumps({"oneOf": members})


def compare_avro(report: Report, count: int, nullable: int, rounds: int) -> None:
    narrow, wide = union(count, "int", nullable), union(count, "long", nullable)
    reader, writer = avro.parse(wide, {}), avro.parse(narrow, {})
    checker: Callable[[], Any] = ReaderWriterCompatibilityChecker
    peer_reader, peer_writer = parse_with_avro(wide), parse_with_avro(narrow)
    report.compare(
        f"avro_union_{count}_branches_{nullable}_nullable",
        Contender("ours", lambda: avro_compatibility.check(reader, writer), 1),
        Contender(PEER, lambda: checker().get_compatibility(peer_reader, peer_writer), 1),
        unit="comparisons/s",
        rounds=rounds,
        warm_ups=0,
    )


def state_one_of(report: Report, count: int, rounds: int) -> None:
    narrow, wide = json_schema.parse(one_of(count, "integer"), {}), json_schema.parse(one_of(count, "number"), {})
    for name, reader, writer in (("compatible", wide, narrow), ("incompatible", narrow, wide)):
        compare = partial(json_compatibility.check, reader, writer)
        taken = [seconds_of(compare) for _ in range(rounds)]
        report.state(f"one_of_{count}_members_{name}", statistics.median(taken) * 1000, "ms")


def state_requests(report: Report, count: int) -> None:
    """Measure registrations and compatibility checks of large unions, and the latency of other clients meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        process = RegistryProcess(Path(folder))
        process.start()
        try:
            with httpx.Client(base_url=process.url, timeout=120) as client:
                _register(client, "small", json.dumps({"type": "record", "name": "S", "fields": []}))
                registered = seconds_of(lambda: _register(client, "events", union(count, "int", 2)))
                report.state(f"register_{count}_branches_first", registered * 1000, "ms", "HTTP, durable")
                idle = _latencies(client, lambda: False)
                done = threading.Event()

                def busy() -> None:
                    with httpx.Client(base_url=process.url, timeout=120) as other:
                        for kind in ("long", "float", "double"):
                            started = time.perf_counter()
                            _register(other, "events", union(count, kind, 2))
                            taken = (time.perf_counter() - started) * 1000
                            report.state(f"register_{count}_branches_{kind}", taken, "ms", "compared with the latest")
                    done.set()

                thread = threading.Thread(target=busy)
                thread.start()
                waited = _latencies(client, lambda: not done.is_set())
                thread.join()
        finally:
            process.stop()
    report.state("other_requests_idle_max", max(idle) * 1000, "ms", "GET /subjects, alone")
    report.state("other_requests_meanwhile_p50", statistics.median(waited) * 1000, "ms", "GET /subjects, meanwhile")
    report.state("other_requests_meanwhile_max", max(waited) * 1000, "ms", "GET /subjects, meanwhile")


def _register(client: httpx.Client, subject: str, schema: str) -> None:
    client.post(f"/subjects/{subject}/versions", json={"schema": schema}).raise_for_status()


def _latencies(client: httpx.Client, more: Callable[[], bool]) -> list[float]:
    taken: list[float] = []
    while len(taken) < 50 or more():
        taken.append(seconds_of(lambda: client.get("/subjects").raise_for_status()))
    return taken


def run(quick: bool) -> Report:
    report = Report("compatibility", "Comparing schemas with many alternatives.")
    rounds = 1 if quick else 3
    for count in BRANCHES[:2] if quick else BRANCHES:
        for nullable in (0, 2):
            compare_avro(report, count, nullable, rounds)
        state_one_of(report, count, rounds)
    state_requests(report, BRANCHES[-1])
    report.write()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    run(parser.parse_args().quick)


if __name__ == "__main__":
    main()
