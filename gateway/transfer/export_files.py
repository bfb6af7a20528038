"""The files of an export: NDJSON, Parquet and Avro containers. A file is complete when it has its final name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, Protocol

import orjson
from pyarrow import lib as pa

from headgate.gateway.records.decoding import RecordDecoder
from headgate.gateway.records.json_lines import document_of
from headgate.gateway.records.record import Record
from headgate.gateway.transfer.rows import records_of
from headgate.serdes import AsyncDeserializer, Poison

RAW_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "KafkaRecord",
    "namespace": "headgate.export",
    "fields": [
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
        {"name": "key", "type": ["null", "bytes"]},
        {"name": "value", "type": ["null", "bytes"]},
        {
            "name": "headers",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Header",
                    "fields": [{"name": "key", "type": "string"}, {"name": "value", "type": ["null", "bytes"]}],
                },
            },
        },
    ],
}


class Output(Protocol):
    """Writes one file."""

    async def write(self, batch: pa.RecordBatch) -> int:
        """Returns the number of poison records."""
        ...

    def close(self) -> None: ...


class NdjsonOutput:
    """The lines of `headgate consume --json`."""

    def __init__(self, file: IO[bytes], decoder: RecordDecoder) -> None:
        self._file = file
        self._decoder = decoder

    async def write(self, batch: pa.RecordBatch) -> int:
        records = await self._decoder.decode(list(records_of(batch)))
        self._file.writelines(orjson.dumps(document_of(record)) + b"\n" for record in records)
        return sum(record.poison is not None for record in records)

    def close(self) -> None:
        pass


class ParquetOutput:
    """The columns of the Spark data source."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(file, schema, compression="zstd")  # type: ignore[no-untyped-call]

    async def write(self, batch: pa.RecordBatch) -> int:
        self._writer.write_batch(batch)  # type: ignore[no-untyped-call]
        if "reason" not in batch.schema.names:
            return 0
        return int(batch.num_rows - batch.column("reason").null_count)

    def close(self) -> None:
        self._writer.close()  # type: ignore[no-untyped-call]


class AvroOutput:
    """Records of `RAW_SCHEMA`. With a value schema, `value` is decoded, and poison has `reason` and `raw`."""

    def __init__(
        self, file: IO[bytes], value_schema: object | None = None, deserializer: AsyncDeserializer | None = None
    ) -> None:
        from fastavro.write import Writer

        self._deserializer = deserializer
        self._writer = Writer(file, container_schema(value_schema), codec="deflate")

    async def write(self, batch: pa.RecordBatch) -> int:
        poison = 0
        for record in records_of(batch):
            row = _row(record)
            if self._deserializer is not None:
                outcome = await self._deserializer.decode(record.value, headers=record.headers)
                if isinstance(outcome, Poison):
                    poison += 1
                    row |= {"value": None, "reason": outcome.reason.name, "raw": record.value}
                else:
                    row |= {"value": outcome.value, "reason": None, "raw": None}
            self._writer.write(row)
        return poison

    def close(self) -> None:
        self._writer.flush()


def container_schema(value_schema: object | None) -> dict[str, Any]:
    if value_schema is None:
        return dict(RAW_SCHEMA)
    fields = [field for field in RAW_SCHEMA["fields"] if field["name"] != "value"]
    fields += [
        {"name": "value", "type": ["null", value_schema]},
        {"name": "reason", "type": ["null", "string"]},
        {"name": "raw", "type": ["null", "bytes"]},
    ]
    return {**RAW_SCHEMA, "fields": fields}


def _row(record: Record) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": record.key,
        "value": record.value,
        "headers": [{"key": name, "value": value} for name, value in record.headers],
    }


def finish(file: IO[bytes], part: Path, final: Path) -> None:
    """Sync and rename."""
    file.flush()
    os.fsync(file.fileno())
    file.close()
    part.replace(final)
