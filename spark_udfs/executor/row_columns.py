"""JSON Schema and Protobuf payloads to Spark's columns, row by row: the slower way, with the same outcome."""

from typing import Any

from pyarrow import lib as pa

from headgate.serdes import Poison, Reason
from headgate.serdes.protobuf.messages import Messages
from headgate.spark_udfs.executor.column_converter import ConversionError, Shape
from headgate.spark_udfs.executor.decoding import Columns, Decoding
from headgate.spark_udfs.executor.json_schema_columns import json_shape
from headgate.spark_udfs.executor.protobuf_columns import protobuf_shape
from headgate.spark_udfs.executor.row_reading import Headers, RowReading
from headgate.spark_udfs.executor.spark_types import spark_arrow_type, to_spark
from headgate.spark_udfs.executor.writer_schemas import Writers
from headgate.spark_udfs.spec.reader import Reader

NO_MESSAGE = ""
"""JSON has only one kind of value."""


class RowColumns:
    def __init__(self, spec: Decoding) -> None:
        """Raises `InvalidSchema`."""
        self._rows = RowReading(spec.reader, Writers(spec.reader, spec.registry, spec.on_new_version))
        self._shape, self._message = _shape_of(spec.reader)
        self.type = spark_arrow_type(self._shape.arrow)

    def explain(self, payload: bytes | None, headers: Headers) -> str:
        outcome = self._outcome(payload, headers)
        return outcome.detail if isinstance(outcome, Poison) else ""

    def decode(self, payloads: pa.Array, headers: pa.Array | None = None) -> Columns:
        values: list[Any] = []
        reasons: list[str | None] = []
        schema_ids: list[int | None] = []
        rows = payloads.to_pylist()
        for payload, carried in zip(rows, _headers(headers, len(rows)), strict=True):
            outcome = self._outcome(payload, carried)
            value, reason, schema_id = (
                (None, outcome.reason.name, outcome.schema_id)
                if isinstance(outcome, Poison)
                else (outcome[0], None, outcome[1])
            )
            values.append(value)
            reasons.append(reason)
            schema_ids.append(schema_id)
        return Columns(
            to_spark(pa.array(values, self._shape.arrow)),
            pa.array(reasons, pa.string()),
            pa.array(schema_ids, pa.int64()),
        )

    def _outcome(self, payload: bytes | None, headers: Headers) -> tuple[Any, int | None] | Poison:
        outcome = self._rows.read(payload, headers)
        if isinstance(outcome, Poison):
            return outcome
        value: Any = outcome.value
        if self._message and value.DESCRIPTOR.full_name != self._message:
            detail = f"a {value.DESCRIPTOR.full_name}, where the columns are those of {self._message}"
            return Poison(Reason.UNRESOLVABLE, detail, payload, outcome.schema_id, outcome.schema_guid)
        try:
            return (None if value is None else self._shape.convert(value)), outcome.schema_id
        except (ConversionError, RecursionError) as error:
            return Poison(Reason.INVALID_VALUE, str(error), payload, outcome.schema_id, outcome.schema_guid)


def _shape_of(reader: Reader) -> tuple[Shape, str]:
    texts = dict(reader.schema.references)
    if reader.language == "JSON":
        return json_shape(reader.schema.text, texts), NO_MESSAGE
    message = Messages(reader.schema.text, texts).first()
    return protobuf_shape(message), message.full_name


def _headers(headers: pa.Array | None, rows: int) -> list[Headers]:
    if headers is None:
        return [[]] * rows
    return [
        [(entry["key"], entry["value"]) for entry in entries or () if entry is not None]
        for entries in headers.to_pylist()
    ]
