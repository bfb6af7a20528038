"""Decode JSON Schema and Protobuf payloads to Spark columns, row by row."""

from typing import Any

from pyarrow import lib as pa

from headgate.serdes import Poison, Reason
from headgate.serdes.protobuf.messages import Messages
from headgate.spark_udfs.executor.column_converter import ColumnConverter, ConversionError
from headgate.spark_udfs.executor.decoding import Columns, Decoding, header_pairs
from headgate.spark_udfs.executor.json_schema_columns import json_schema_converter
from headgate.spark_udfs.executor.protobuf_columns import protobuf_converter
from headgate.spark_udfs.executor.row_reading import Headers, RowReader
from headgate.spark_udfs.executor.spark_types import spark_arrow_type, to_spark
from headgate.spark_udfs.executor.value_size import value_bytes
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas
from headgate.spark_udfs.spec.reader import Reader

NO_MESSAGE = ""
"""JSON Schema has no message name."""


class RowColumns:
    def __init__(self, reader: Reader, spec: Decoding) -> None:
        """Raises `InvalidSchema`."""
        self._is_key = spec.is_key
        writers = WriterSchemas(reader, spec.registry, spec.on_new_version, spec.on_registry_down)
        self._rows = RowReader(reader, writers)
        self._row_bytes_max = spec.row_bytes_max
        self._batch_bytes_max = spec.batch_bytes_max
        self._converter, self._message = _converter_of(reader)
        self.type = spark_arrow_type(self._converter.arrow_type)

    def explain(self, payload: bytes | None, headers: Headers) -> str:
        outcome = self._outcome(payload, headers)
        return outcome.detail if isinstance(outcome, Poison) else ""

    def decode(self, payloads: pa.Array, headers: pa.Array | None = None) -> Columns:
        values: list[Any] = []
        reasons: list[str | None] = []
        schema_ids: list[int | None] = []
        rows = payloads.to_pylist()
        size = 0
        for payload, carried in zip(rows, _headers(headers, len(rows)), strict=True):
            outcome = self._outcome(payload, carried)
            size += 0 if isinstance(outcome, Poison) else value_bytes(outcome[0], self._converter.arrow_type)
            if size > self._batch_bytes_max and values:
                break
            value, reason, schema_id = (
                (None, outcome.reason.name, outcome.schema_id)
                if isinstance(outcome, Poison)
                else (outcome[0], None, outcome[1])
            )
            values.append(value)
            reasons.append(reason)
            schema_ids.append(schema_id)
        return Columns(
            to_spark(pa.array(values, self._converter.arrow_type)),
            pa.array(reasons, pa.string()),
            pa.array(schema_ids, pa.int64()),
        )

    def _outcome(self, payload: bytes | None, headers: Headers) -> tuple[Any, int | None] | Poison:
        outcome = self._rows.read(payload, headers, is_key=self._is_key)
        if isinstance(outcome, Poison):
            return outcome
        value: Any = outcome.value
        if self._message and value.DESCRIPTOR.full_name != self._message:
            detail = f"the message is {value.DESCRIPTOR.full_name}, and the columns are those of {self._message}"
            return Poison(Reason.UNRESOLVABLE, detail, payload, outcome.schema_id, outcome.schema_guid)
        try:
            converted = None if value is None else self._converter.convert(value)
        except (ConversionError, RecursionError) as error:
            return Poison(Reason.INVALID_VALUE, str(error), payload, outcome.schema_id, outcome.schema_guid)
        size = value_bytes(converted, self._converter.arrow_type)
        if size > self._row_bytes_max:
            detail = f"{size} bytes as columns; row_bytes_max is {self._row_bytes_max}"
            return Poison(Reason.TOO_LARGE, detail, payload, outcome.schema_id, outcome.schema_guid)
        return converted, outcome.schema_id


def _converter_of(reader: Reader) -> tuple[ColumnConverter, str]:
    texts = dict(reader.schema.references)
    if reader.language == "JSON":
        return json_schema_converter(reader.schema.text, texts), NO_MESSAGE
    message = Messages(reader.schema.text, texts).first()
    return protobuf_converter(message), message.full_name


def _headers(headers: pa.Array | None, rows: int) -> list[Headers]:
    return [[]] * rows if headers is None else [header_pairs(entries) for entries in headers.to_pylist()]
