"""Framed Avro and record batches to Arrow columns: the columnar decoder compared with Python's usual decoders.

    python -m benchmarks.decode

The first part compares with fastavro: the peer removes the frame, decodes each payload, sets bad ones aside and builds
an Arrow array. The second part compares with aiokafka's parser on the same batches, and with confluent-kafka, which
takes the same records from librdkafka's queue. Both peers keep the same columns. One core does all of the work.
"""

import argparse
import io
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import fastavro
from aiokafka.record.memory_records import MemoryRecords
from pyarrow import lib as pa

from benchmarks.decode_data import (
    FLAT,
    NESTED,
    RECORDS,
    RECORDS_PER_BATCH,
    WIDE,
    WIDE_ASKED,
    batches,
    flat_value,
    nested_value,
    payloads,
    repeated,
    wide_value,
)
from benchmarks.harness import Contender, Report
from headgate.serdes.avro import parse
from headgate.serdes.columnar import ColumnarDecoder, ColumnarEncoder, FixedSchemas, project, read_batches
from headgate.serdes.columnar.native.library import LIBRARY
from headgate.serdes.columnar.native.signatures import SIGNATURES

ROWS = 200_000
PEER_ROWS = 20_000
"""The peer is much slower, so a tenth of the rows is enough. The benchmark compares rates, not times."""
CONFLUENT_RECORDS = 30_000
"""librdkafka's mock broker stores at most five megabytes."""


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
    parser.add_argument("--quick", action="store_true", help="do not measure memory, and do not save the results")
    parser.add_argument("--memory", choices=["ours", "peer"], help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.memory:
        measure_memory(chosen.memory)
        return
    report = Report("decode", "How fast do framed Avro and Kafka's record batches become Arrow columns, on one core?")
    for kernel in SIGNATURES:
        LIBRARY.wait(kernel)
    decoding(report)
    encoding(report)
    records(report)
    if not chosen.quick:
        memory(report)
        report.write()


if __name__ == "__main__":
    main()
