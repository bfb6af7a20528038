"""Parses Parquet files into encoded records. Avro is encoded by column, the other languages by row."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyarrow import lib as pa

from headgate.gateway.records.input import InputRow, LineFormat
from headgate.gateway.records.json_lines import BadRecord
from headgate.gateway.records.record import NewRecord
from headgate.serdes.codecs import WholeSchema
from headgate.spark_udfs.executor.encoding import Encoding, EncodingError
from headgate.spark_udfs.spec.policy import OnPoison
from headgate.spark_udfs.spec.reader import SchemaText

BATCH_ROWS: Final = 10_000


class ParquetInput:
    """The columns are the fields of the schema. `key_column` becomes the key, and also a field if the schema has it."""

    def __init__(self, schema: WholeSchema, schema_id: int, line_format: LineFormat, key_column: str | None) -> None:
        definition = schema.definition
        self._is_avro = definition.type.value == "AVRO"
        text = SchemaText(definition.type.value, definition.text, tuple(schema.texts.items()))
        self._encoding = Encoding(text, schema_id, OnPoison.DEAD_LETTER)
        self._line_format = line_format
        self._key_column = key_column

    def rows(self, path: Path) -> Iterator[InputRow]:
        """Raises BadRecord if the file is not Parquet or its columns do not match the schema."""
        first = 1
        try:
            with pq.ParquetFile(path) as file:  # type: ignore[no-untyped-call]
                for batch in file.iter_batches(BATCH_ROWS):
                    yield from self._batch(batch, first)
                    first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise BadRecord(f"{path}: {error}") from error
        except EncodingError as error:
            raise BadRecord(f"{path}: {error}") from error

    def _batch(self, batch: pa.RecordBatch, first: int) -> Iterator[InputRow]:
        keys = self._keys(batch)
        if not self._is_avro:
            for at, row in enumerate(batch.to_pylist()):
                text = json.dumps(row, default=str).encode()
                yield InputRow(f"row {first + at}", text, self._new(keys[at], text), is_encoded=False)
            return
        values = batch.to_struct_array()
        done = 0
        for payloads, reasons in self._encoding.encode(values):
            for payload, reason in zip(payloads.to_pylist(), reasons.to_pylist(), strict=True):
                name = f"row {first + done}"
                if payload is None:
                    detail = self._encoding.explain(values[done], reason).detail
                    text = json.dumps(values[done].as_py(), default=str).encode()
                    yield InputRow(name, text, BadRecord(detail), is_encoded=True)
                else:
                    yield InputRow(name, b"", self._new(keys[done], payload), is_encoded=True)
                done += 1

    def _keys(self, batch: pa.RecordBatch) -> list[bytes | None]:
        if self._key_column is None:
            return [None] * batch.num_rows
        if self._key_column not in batch.schema.names:
            raise BadRecord(f"the file has no column {self._key_column!r}")
        return [
            key if key is None or isinstance(key, bytes) else str(key).encode()
            for key in batch.column(self._key_column).to_pylist()
        ]

    def _new(self, key: bytes | None, value: bytes) -> NewRecord:
        return self._line_format.with_defaults(NewRecord(key, value))
