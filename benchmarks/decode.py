"""Framed Avro and record batches to Arrow columns: the columnar decoder against what Python users do today.

    python -m benchmarks.decode

The peer of the first part takes each payload off its frame, reads it with fastavro, keeps bad ones aside, and makes an
Arrow array of the rows. The peers of the second part read the same batches with aiokafka's parser, and the same records
out of librdkafka's own queue through confluent-kafka, and keep what the columns hold. One core, all of the work.
"""

import argparse
import io
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import fastavro
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from pyarrow import lib as pa

from benchmarks.harness import Contender, Report
from headgate.serdes.avro import parse
from headgate.serdes.columnar import ColumnarDecoder, ColumnarEncoder, FixedSchemas, project, read_batches

ROWS = 200_000
PEER_ROWS = 20_000
"""The peer is much slower, so a tenth of the rows is enough. The benchmark compares rates, not times."""
DISTINCT = 5_000
RECORDS = 200_000
RECORDS_PER_BATCH = 500
CONFLUENT_RECORDS = 30_000
"""librdkafka's mock broker stores at most five megabytes."""

FLAT: dict[str, Any] = {
    "type": "record",
    "name": "Flat",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "quantity", "type": "int"},
        {"name": "paid", "type": "boolean"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "score", "type": ["null", "double"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OPEN", "CLOSED"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "country", "type": "string"},
        {"name": "visits", "type": "long"},
    ],
}
NESTED: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {
            "name": "buyer",
            "type": {
                "type": "record",
                "name": "Buyer",
                "fields": [{"name": "name", "type": "string"}, {"name": "vip", "type": ["null", "boolean"]}],
            },
        },
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [
                        {"name": "sku", "type": "string"},
                        {"name": "price", "type": "double"},
                        {"name": "count", "type": "int"},
                    ],
                },
            },
        },
        {"name": "labels", "type": {"type": "map", "values": "string"}},
        {
            "name": "shipped",
            "type": ["null", {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}],
        },
    ],
}
WIDE: dict[str, Any] = {
    "type": "record",
    "name": "Wide",
    "fields": [
        {"name": f"f{number}", "type": ("long", "string", "double", ["null", "string"], "int")[number % 5]}
        for number in range(100)
    ],
}
WIDE_ASKED = ["f0", "f21", "f42", "f63", "f84"]


def flat_value(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.getrandbits(40),
        "user": f"user-{rng.randrange(100_000)}",
        "amount": rng.random() * 1e4,
        "quantity": rng.randrange(1000),
        "paid": rng.random() < 0.5,
        "at": 1_700_000_000_000 + rng.randrange(10**10),
        "note": None if rng.random() < 0.6 else "left at the door",
        "score": None if rng.random() < 0.2 else rng.random(),
        "kind": rng.choice(("NEW", "OPEN", "CLOSED")),
        "price": rng.randrange(10**7).to_bytes(4),
        "country": rng.choice(("NL", "DE", "FR")),
        "visits": rng.randrange(10**6),
    }


def nested_value(rng: random.Random) -> dict[str, Any]:
    return {
        "id": rng.getrandbits(40),
        "buyer": {"name": f"buyer {rng.randrange(1000)}", "vip": rng.choice((None, True, False))},
        "items": [
            {"sku": f"sku-{rng.randrange(9999)}", "price": rng.random() * 100, "count": rng.randrange(9)}
            for _ in range(rng.randrange(6))
        ],
        "labels": {f"label{number}": "value" for number in range(rng.randrange(3))},
        "shipped": None if rng.random() < 0.5 else {"city": "Utrecht"},
    }


def wide_value(rng: random.Random) -> dict[str, Any]:
    makers: tuple[Callable[[], Any], ...] = (
        lambda: rng.getrandbits(30),
        lambda: "some text",
        rng.random,
        lambda: None if rng.random() < 0.5 else "optional",
        lambda: rng.randrange(10**6),
    )
    return {f"f{number}": makers[number % 5]() for number in range(100)}


def raw_schema(schema: Any) -> Any:
    """Remove the logical types, so that the generator can write the underlying values."""
    if isinstance(schema, dict):
        return {key: raw_schema(value) for key, value in schema.items() if key != "logicalType"}
    return [raw_schema(one) for one in schema] if isinstance(schema, list) else schema


def payloads(schema: Any, make: Callable[[random.Random], Any], poison: float) -> list[bytes]:
    rng = random.Random(1)
    parsed = fastavro.parse_schema(raw_schema(schema))
    out = []
    for _ in range(DISTINCT):
        body = io.BytesIO()
        fastavro.schemaless_writer(body, parsed, make(rng))
        payload = struct.pack(">BI", 0, 1) + body.getvalue()
        if rng.random() < poison:
            payload = rng.choice(
                (payload[: rng.randrange(len(payload))], payload + b"x", b"\1" + payload[1:], b"not Avro")
            )
        out.append(payload)
    return out


def row_by_row(rows: list[bytes], writer: Any, reader: Any, kind: pa.DataType) -> Callable[[], Any]:
    """Decode with fastavro and record the error of each bad row, as a careful consumer does."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(writer)))
    parsed_reader = None if reader is None else fastavro.parse_schema(json.loads(json.dumps(reader)))

    def run() -> Any:
        values: list[Any] = []
        reasons: list[str | None] = []
        for payload in rows:
            value, reason = None, None
            if len(payload) < 5 or payload[0] != 0:
                reason = "frame"
            else:
                body = io.BytesIO(payload)
                body.seek(5)
                try:
                    value = fastavro.schemaless_reader(body, parsed, parsed_reader)
                    if body.read(1):
                        value, reason = None, "trailing bytes"
                except Exception as error:  # the peer must survive every error of fastavro
                    reason = repr(error)
            values.append(value)
            reasons.append(reason)
        return pa.array(values, kind), pa.array(reasons)

    return run


def repeated(rows: list[bytes], count: int) -> list[bytes]:
    return (rows * (count // len(rows) + 1))[:count]


def decoding(report: Report) -> None:
    cases: list[tuple[str, Any, Callable[[random.Random], Any], list[str] | None]] = [
        ("flat", FLAT, flat_value, None),
        ("nested", NESTED, nested_value, None),
        ("wide_5_of_100", WIDE, wide_value, WIDE_ASKED),
    ]
    for name, schema, make, asked in cases:
        text = json.dumps(schema)
        reader = parse(text) if asked is None else project(parse(text), asked)
        reader_json = (
            None if asked is None else {**schema, "fields": [one for one in schema["fields"] if one["name"] in asked]}
        )
        for label, poison in (("clean", 0.0), ("poison_10", 0.1)):
            decoder = ColumnarDecoder(reader, FixedSchemas({1: text}))
            rows = payloads(schema, make, poison)
            column = pa.array(repeated(rows, ROWS), pa.binary())
            few = repeated(rows, PEER_ROWS)
            agree(decoder, rows, row_by_row(rows, schema, reader_json, decoder.type), poison)
            report.compare(
                f"{name}_{label}",
                Contender("columnar", partial(decoder.decode, column), ROWS),
                Contender("fastavro", row_by_row(few, schema, reader_json, decoder.type), PEER_ROWS),
                rounds=7,
                warm_ups=2,
            )


def agree(decoder: ColumnarDecoder, rows: list[bytes], peer: Callable[[], Any], poison: float) -> None:
    """Check that both decoders return the same values."""
    ours = decoder.decode(pa.array(rows, pa.binary()))
    theirs, _ = peer()
    if not poison:
        assert ours.values.equals(theirs), "the columns differ from fastavro's"
        return
    both = [row for row in range(len(rows)) if ours.reasons[row].as_py() == 0]
    assert ours.values.take(pa.array(both)).equals(theirs.take(pa.array(both))), "the good rows differ from fastavro's"


def encoding(report: Report) -> None:
    text = json.dumps(FLAT)
    decoder = ColumnarDecoder(parse(text), FixedSchemas({1: text}))
    rows = payloads(FLAT, flat_value, 0)
    values = decoder.decode(pa.array(repeated(rows, ROWS), pa.binary())).values
    few = values.slice(0, PEER_ROWS)
    parsed = fastavro.parse_schema(json.loads(text))
    encoder = ColumnarEncoder(parse(text), 1)

    def peer() -> Any:
        out = []
        for row in few.to_pylist():
            body = io.BytesIO()
            body.write(b"\0\0\0\0\1")
            fastavro.schemaless_writer(body, parsed, row)
            out.append(body.getvalue())
        return pa.array(out, pa.binary())

    assert encoder.encode(few).payloads.equals(peer()), "the payloads differ from fastavro's"
    report.compare(
        "encode_flat",
        Contender("columnar", lambda: encoder.encode(values), ROWS),
        Contender("fastavro", peer, PEER_ROWS),
        warm_ups=2,
    )


def batches(codec: int) -> bytes:
    out = []
    for base in range(0, RECORDS, RECORDS_PER_BATCH):
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
            batch_size=1 << 30,
        )  # fmt: skip
        for number in range(RECORDS_PER_BATCH):
            headers: list[Any] = [("trace", b"0123456789abcdef")] if number % 2 else []
            builder.append(number, 1_700_000_000_000 + number, b"key-%d" % number, b"value %d " % number * 8, headers)
        batch = bytearray(builder.build())
        struct.pack_into(">q", batch, 0, base)
        out.append(bytes(batch))
    return b"".join(out)


def read_with_aiokafka(data: bytes) -> tuple[list[Any], ...]:
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    offsets, times, keys, values, headers = columns
    memory = MemoryRecords(data)
    while (batch := memory.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            offsets.append(record.offset)
            times.append(record.timestamp)
            keys.append(record.key)
            values.append(record.value)
            headers.append(record.headers)
    return columns


def records(report: Report) -> None:
    for name, codec in (("none", 0), ("lz4", 3), ("zstd", 4)):
        data = batches(codec)
        assert read_batches(data, 0).columns.column("value").to_pylist() == read_with_aiokafka(data)[3]
        report.compare(
            f"records_{name}_aiokafka",
            Contender("columnar", partial(read_batches, data, 0), RECORDS),
            Contender("aiokafka", partial(read_with_aiokafka, data), RECORDS),
            unit="records/s",
            rounds=9,
            warm_ups=2,
            note="aiokafka's parser in C, into lists",
        )
    rate = confluent_rate()
    data = batches(0)
    started = time.perf_counter()
    for _ in range(5):
        read_batches(data, 0)
    ours = 5 * RECORDS / (time.perf_counter() - started)
    report.record(
        "records_none_confluent", ours, rate, unit="records/s", peer_name="confluent-kafka",
        note="already fetched and parsed by librdkafka: only taken out of its queue, into lists",
    )  # fmt: skip


def confluent_rate() -> float:
    """Return the records per second that confluent-kafka takes from librdkafka's full queue.

    The broker is librdkafka's mock cluster.
    """
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer({"test.mock.num.brokers": 1, "queue.buffering.max.messages": 10**6})
    for number in range(CONFLUENT_RECORDS):
        headers: list[tuple[str, str | bytes | None]] = [("trace", b"0123456789abcdef")] if number % 2 else []
        producer.produce("t", b"value %d " % (number % RECORDS_PER_BATCH) * 8, b"key-%d" % number, 0, headers=headers)
        if number % 1000 == 0:
            producer.poll(0)
    producer.flush()
    broker = next(iter(producer.list_topics().brokers.values()))
    consumer = Consumer(
        {
            "bootstrap.servers": f"{broker.host}:{broker.port}",
            "group.id": "g",
            "queued.min.messages": 10**7,
            "queued.max.messages.kbytes": 2_000_000,
            "fetch.message.max.bytes": 50_000_000,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    assert consumer.consume(1, 30)
    time.sleep(5)
    keys: list[Any] = []
    values: list[Any] = []
    offsets: list[Any] = []
    times: list[Any] = []
    headers_read: list[Any] = []
    seconds = 0.0
    while len(keys) < CONFLUENT_RECORDS - 1:
        started = time.perf_counter()
        for message in consumer.consume(min(10_000, CONFLUENT_RECORDS - 1 - len(keys)), 30):
            keys.append(message.key())
            values.append(message.value())
            offsets.append(message.offset())
            times.append(message.timestamp())
            headers_read.append(message.headers())
        seconds += time.perf_counter() - started
    consumer.close()
    return len(keys) / seconds


FIRST_BATCH = """
import time
started = time.perf_counter()
import numba, pyarrow
from headgate.serdes.avro import parse
from headgate.serdes.columnar import ColumnarDecoder, FixedSchemas
payload = pyarrow.array([b"\\0\\0\\0\\0\\1\\2a"])
imported = time.perf_counter()
decoder = ColumnarDecoder(parse('"string"'), FixedSchemas({1: '"string"'}))
assert decoder.decode(payload).values.to_pylist() == ["a"]
print(imported - started, time.perf_counter() - imported)
"""
"""Measures the imports and the first decoded column in a new process."""


def compiling(report: Report) -> None:
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "NUMBA_CACHE_DIR": directory}
        for name, note in (
            ("first_batch_cold", "compiled; imports not counted"),
            ("first_batch_cached", "code read from the cache; imports not counted"),
        ):
            done = subprocess.run(
                [sys.executable, "-c", FIRST_BATCH], env=environment, capture_output=True, text=True, check=True
            )
            numba_seconds, seconds = map(float, done.stdout.split())
            report.state(name, seconds, "s", note)
        report.state("imports", numba_seconds, "s")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure_memory(side: str) -> None:
    """Measure the peak memory of decoding without the payloads, in MB per million rows. Runs in a separate process."""
    text = json.dumps(FLAT)
    decoder = ColumnarDecoder(parse(text), FixedSchemas({1: text}))
    count = 1_000_000 if side == "ours" else 200_000
    rows = repeated(payloads(FLAT, flat_value, 0), count)
    column = pa.array(rows, pa.binary())
    decoder.decode(column.slice(0, 10))
    before = peak = resident_bytes()
    is_done = Event()

    def watch() -> None:
        nonlocal peak
        while not is_done.wait(0.002):
            peak = max(peak, resident_bytes())

    watcher = Thread(target=watch)
    watcher.start()
    kept = decoder.decode(column) if side == "ours" else row_by_row(rows, FLAT, None, decoder.type)()
    peak = max(peak, resident_bytes())
    is_done.set()
    watcher.join()
    assert kept
    print((peak - before) / 1e6 * 1_000_000 / count)


def memory(report: Report) -> None:
    sizes = [
        float(
            subprocess.run(
                [sys.executable, "-m", "benchmarks.decode", "--memory", side],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for side in ("ours", "peer")
    ]
    report.record(
        "memory_flat", *sizes, unit="MB/million rows", peer_name="fastavro", higher_is_better=False,
        note="peak on top of the payloads",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", choices=["ours", "peer"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        measure_memory(chosen.memory)
        return
    report = Report("decode", "How fast do framed Avro and Kafka's record batches become Arrow columns, on one core?")
    compiling(report)
    decoding(report)
    encoding(report)
    records(report)
    memory(report)
    report.write()


if __name__ == "__main__":
    main()
