"""Callables that Spark runs in its Python workers, on Arrow arrays and Arrow batches."""

from collections.abc import Iterable, Iterator

from pyarrow import lib as pa

from headgate.spark_udfs.executor.decoding import DETAIL, Decoding
from headgate.spark_udfs.executor.encoding import Encoding
from headgate.spark_udfs.executor.required_fields import with_type
from headgate.spark_udfs.spec.policy import OnPoison


class DecodeColumn:
    """Payloads to structs of the outcome. Large arrays are decoded in pieces."""

    def __init__(self, decoding: Decoding, value_type: pa.DataType) -> None:
        self._decoding = decoding
        self._value_type = value_type

    def __call__(self, arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        names = list(self._decoding.outcome_names)
        for payloads in arrays:
            for start, columns in self._decoding.in_pieces(payloads):
                value, *others = self._decoding.outcome(columns, payloads.slice(start, len(columns.reasons)))
                yield pa.StructArray.from_arrays([with_type(value, self._value_type), *others], names=names)


class DecodePairs:
    """Pairs of payloads and record headers to structs of the outcome. Headers of another type are ignored."""

    def __init__(self, decoding: Decoding, details: bool) -> None:
        self._decoding = decoding
        self._details = details

    def __call__(self, pairs: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        names = [*self._decoding.outcome_names, *((DETAIL,) if self._details else ())]
        for payloads, given in pairs:
            headers = given if is_header_type(given.type) else None
            for start, columns in self._decoding.in_pieces(payloads, headers):
                rows = len(columns.reasons)
                outcome = self._decoding.outcome(
                    columns,
                    payloads.slice(start, rows),
                    None if headers is None else headers.slice(start, rows),
                    details=self._details,
                )
                yield pa.StructArray.from_arrays(list(outcome), names=names)


def is_header_type(kind: pa.DataType) -> bool:
    """Whether this is the Arrow type of record headers, as in Spark's Kafka source."""
    if not isinstance(kind, pa.ListType) or not isinstance(kind.value_type, pa.StructType):
        return False
    entry = kind.value_type
    return [field.name for field in entry] == ["key", "value"] and entry[0].type == pa.string()


class DecodeReason:
    """Payloads to poison reasons."""

    def __init__(self, decoding: Decoding) -> None:
        self._decoding = decoding

    def __call__(self, arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for payloads in arrays:
            for _, columns in self._decoding.in_pieces(payloads):
                yield columns.reasons


class EncodeColumn:
    """Structs to payloads, with their reasons in the mode DEAD_LETTER."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding

    def __call__(self, arrays: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for values in arrays:
            for payloads, reasons in self._encoding.encode(values):
                if self._encoding.on_poison is OnPoison.DEAD_LETTER:
                    yield pa.StructArray.from_arrays([payloads, reasons], names=["value", "reason"])
                else:
                    yield payloads


class EncodeFrame:
    """Batches with a column of structs to batches with a column of payloads."""

    def __init__(self, encoding: Encoding, at: int) -> None:
        self._encode = EncodeColumn(encoding)
        self._at = at

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            start = 0
            for payloads in self._encode(iter([batch.column(self._at)])):
                columns = [column.slice(start, len(payloads)) for column in batch.columns]
                columns[self._at] = payloads
                start += len(payloads)
                yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


class DecodeFrame:
    """Batches of kept columns, headers and payloads (the last column) to batches of kept columns and the outcome."""

    def __init__(self, decoding: Decoding, kept: int, headers_at: int | None, details: bool, flat: bool) -> None:
        self._decoding = decoding
        self._kept = kept
        self._headers_at = headers_at
        self._details = details
        self._flat = flat

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            payloads = batch.column(batch.num_columns - 1)
            headers = None if self._headers_at is None else batch.column(self._headers_at)
            for start, columns in self._decoding.in_pieces(payloads, headers):
                rows = len(columns.reasons)
                value, *others = self._decoding.outcome(
                    columns,
                    payloads.slice(start, rows),
                    None if headers is None else headers.slice(start, rows),
                    details=self._details,
                )
                kept = [batch.column(at).slice(start, rows) for at in range(self._kept)]
                names = [*batch.schema.names[: self._kept], *self._names(value)]
                values = value.flatten() if self._flat else [value]
                yield pa.RecordBatch.from_arrays([*kept, *values, *others], names)

    def _names(self, value: pa.Array) -> list[str]:
        fields = [field.name for field in value.type] if self._flat else ["value"]
        return [*fields, *self._decoding.outcome_names[1:], *((DETAIL,) if self._details else ())]
