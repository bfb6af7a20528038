"""Encode columns to registered Avro payloads with `serdes.columnar`, for `to_registry_avro`.

The driver registers the schema or looks it up. Executors never contact the registry. A row that the schema cannot
represent is handled by the policy. A column of the wrong type fails the query with the name of the field.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from pyarrow import lib as pa

from headgate.serdes import EncodeError, Poison, PoisonError, Reason
from headgate.serdes.avro import Schema, parse
from headgate.serdes.avro.codec import AvroWriter
from headgate.serdes.codec import WriteOptions
from headgate.serdes.columnar import (
    BatchTooLarge,
    ColumnarDecoder,
    ColumnarEncoder,
    ColumnarError,
    FixedSchemas,
    NotEncodable,
)
from headgate.serdes.columnar.engine import ShippedCode, use_shipped
from headgate.spark_udfs.executor.decoding import REASON_SENTENCES, poison_rows_of, reason_names
from headgate.spark_udfs.executor.python_values import python_value
from headgate.spark_udfs.executor.spark_types import truncate_timestamps
from headgate.spark_udfs.spec.policy import OnPoison
from headgate.spark_udfs.spec.reader import SchemaText

ENCODERS_MAX = 32


class EncodingError(ValueError):
    """The columns do not match the schema, or the registry rejects the schema."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The plan of encoding one column. Picklable and hashable."""

    schema: SchemaText
    schema_id: int
    on_poison: OnPoison = OnPoison.FAIL
    code: ShippedCode = field(default=(), compare=False, repr=False)
    """Compiled code from the driver."""

    def encode(self, values: pa.Array) -> "Iterator[tuple[pa.Array, pa.Array]]":
        """Payloads and reasons of consecutive slices. Raises `EncodingError`, and `PoisonError` in the mode FAIL."""
        for start, payloads, reasons in _encoder(self).encode(values):
            if self.on_poison is OnPoison.FAIL:
                # A null row becomes a null payload, a tombstone. It is not an error.
                bad = [row for row in poison_rows_of(reasons) if reasons[row].as_py() != Reason.NULL.name]
                if bad:
                    raise PoisonError(self.explain(values[start + bad[0]], reasons[bad[0]].as_py()))
            yield payloads, reasons

    def explain(self, value: pa.Scalar, reason: str) -> Poison:
        """Encode one row again, for a message that names the field."""
        schema = parse(self.schema.text, dict(self.schema.references))
        detail = REASON_SENTENCES[reason]
        try:
            AvroWriter(schema, WriteOptions()).write(python_value(value.as_py(), value.type))
        except EncodeError as error:
            detail = str(error)
        return Poison(Reason[reason], f"{detail} (schema id {self.schema_id})", None, self.schema_id)


@lru_cache(maxsize=ENCODERS_MAX)
def _encoder(spec: Encoding) -> "_Encoder":
    use_shipped(spec.code)
    return _Encoder(parse(spec.schema.text, dict(spec.schema.references)), spec.schema_id)


class _Encoder:
    """Cached per process."""

    def __init__(self, schema: Schema, schema_id: int) -> None:
        self._encoder = ColumnarEncoder(schema, schema_id)
        self._type = ColumnarDecoder(schema, FixedSchemas({})).type
        self._checked_types: set[pa.DataType] = set()

    def encode(self, values: pa.Array) -> "Iterator[tuple[int, pa.Array, pa.Array]]":
        self._check(values)
        values = truncate_timestamps(values, self._type)
        pending = [(0, values)]
        while pending:
            start, some = pending.pop()
            try:
                encoded = self._encoder.encode(some)
            except (NotEncodable, BatchTooLarge):
                # The types match, so some row does not fit. Arrow casts a column completely or not at all.
                half = len(some) // 2
                if half == 0:
                    yield start, pa.nulls(1, pa.binary()), pa.array([Reason.INVALID_VALUE.name])
                else:
                    pending.append((start + half, some.slice(half)))
                    pending.append((start, some.slice(0, half)))
            else:
                yield start, encoded.payloads, reason_names().take(encoded.reasons)

    def _check(self, values: pa.Array) -> None:
        """Check the types with an empty array: a wrong type is an error of the query, not of a row."""
        if values.type in self._checked_types:
            return
        try:
            self._encoder.encode(truncate_timestamps(values.slice(0, 0), self._type))
        except ColumnarError as error:
            raise EncodingError(f"the columns do not match the schema: {error}") from error
        self._checked_types.add(values.type)
