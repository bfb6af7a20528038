"""Decode framed payloads to Spark columns. Column functions, DataFrames and the data source share this module.

A `Decoding` is plain data in the query plan. Each Python worker creates one decoder from it and caches it. The decoder
fetches unknown writer schemas once per worker, and caches unknown ids as well. Avro is decoded by `serdes.columnar`
(`avro_columns`), JSON Schema and Protobuf row by row (`row_columns`).
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes import Poison, PoisonError, Reason
from headgate.serdes.avro.column_size import RECURSION_MAX_DEFAULT, ROW_BYTES_MAX
from headgate.serdes.columnar import BatchTooLarge, Spans
from headgate.serdes.columnar.engine import ShippedCode, use_shipped
from headgate.serdes.columnar.memory import as_arrow, is_valid
from headgate.spark_udfs.executor.worker_memory import freeze_loaded_objects, keep_freed_buffers
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.reader import AnyReader, TypedReader
from headgate.spark_udfs.spec.registry_options import RegistryOptions

DECODERS_MAX = 128
"""Decoders that one Python worker caches. A query needs one for each subject and, with several subjects, each topic."""

PIECE_BYTES_MAX = 8 * 1024 * 1024
"""Payload bytes that are decoded at once."""

PIECE_OUTPUT_BYTES_MAX = 32 * 1024 * 1024
"""Default size of one Arrow batch of decoded values (`serdes.avro.column_size`). Payloads can be a hundred times
smaller: a null in a list is one byte, and a cell in every nested column."""

JOINED_BYTES_MAX = 2**31 - 1
"""Size limit of one Arrow array with 32-bit offsets."""

DETAILS_MAX = 200
"""Bad rows of a piece that get a specific message, because each is decoded again individually. The others get a general
message, so that a topic full of poison costs little more than a good one."""

DETAIL_CHARS_MAX = 2000
HEX_BYTES_MAX = 16
"""Bytes of a payload in an error message."""
DETAIL = "detail"
"""The column with the message of a bad row."""

REASON_SENTENCES: dict[str, str] = {reason.name: reason.message for reason in Reason}
"""The general message of each reason."""


@dataclass(frozen=True, slots=True)
class Columns:
    """One entry per row: the value in a Spark type, the name of the reason (null if good), and the schema id."""

    values: pa.Array
    reasons: pa.Array
    schema_ids: pa.Array


class Decoder(Protocol):
    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values, which Spark accepts."""
        ...

    def decode(self, payloads: pa.Array | Spans, headers: pa.Array | None = None) -> Columns:
        """`headers` are lists of key and value; a record header can contain the schema id.

        Returns fewer rows, at least one, if the first rows fill a batch (`batch_bytes_max`). No payload raises
        an exception. Raises `BatchTooLarge` if the rows must be split, and `NewVersionError` or `RegistryDownError` if
        a policy requires it.
        """
        ...

    def explain(self, payload: bytes | None, headers: list[tuple[str, bytes | None]]) -> str:
        """A message for a payload with a reason; "" if there is no specific one."""
        ...


@dataclass(frozen=True, slots=True)
class Decoding:
    """The plan of decoding one column. Picklable and hashable."""

    reader: AnyReader
    registry: RegistryOptions
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    on_registry_down: OnRegistryDown = OnRegistryDown.WAIT
    recursion_max: int = RECURSION_MAX_DEFAULT
    row_bytes_max: int = ROW_BYTES_MAX
    """Rows that are larger as columns are TOO_LARGE."""
    batch_bytes_max: int = PIECE_OUTPUT_BYTES_MAX
    """Size of one Arrow batch. One row may be larger."""
    is_key: bool = False
    """Whether the payloads are record keys: their schema ids are in another record header."""
    code: ShippedCode = field(default=(), compare=False, repr=False)
    """Compiled code from the driver, so that a new executor need not compile."""

    def for_topic(self, topic: str) -> "Decoding":
        """The decoding of one topic, if there are several."""
        return replace(self, reader=self.reader.for_topic(topic)) if isinstance(self.reader, TypedReader) else self

    def decoder(self) -> Decoder:
        """The cached decoder of this process."""
        return decoder_of(self)

    def decode(
        self, payloads: pa.Array | pa.ChunkedArray, headers: pa.Array | pa.ChunkedArray | None = None
    ) -> Columns:
        """Decode all rows into one array per column, in any mode. No payload raises an exception.

        Rows beyond two gigabytes of values, the limit of an Arrow array, are TOO_LARGE. `in_pieces` has no limit.
        """
        parts: list[Columns] = []
        size = 0
        for _, part in self.in_pieces(payloads, headers):
            size += part.values.nbytes
            parts.append(part if size <= JOINED_BYTES_MAX else _all_poison(part))
        return _concatenated(parts, self.decoder().type)

    def in_pieces(
        self, payloads: pa.Array | pa.ChunkedArray, headers: pa.Array | pa.ChunkedArray | None = None
    ) -> Iterator[tuple[int, Columns]]:
        """The columns of consecutive slices, each with the index of its first row.

        Input and output limit the size of a slice (`PIECE_BYTES_MAX`, `batch_bytes_max`).
        """
        payloads = _one_array(payloads)
        headers = None if headers is None else _one_array(headers)
        for start, rows in pieces(payloads):
            taken = None if headers is None else headers.slice(start, rows)
            yield from self._decode_parts(start, payloads.slice(start, rows), taken)

    @property
    def is_in_place(self) -> bool:
        """Whether payloads can be decoded in their fetch buffer, without an Arrow array."""
        return all(reader.language == "AVRO" for reader in self.reader.readers)

    def in_place(self, payloads: Spans) -> Iterator[tuple[int, Columns]]:
        """Like `in_pieces`, for payloads in a fetch buffer of limited size."""
        return self._decode_parts(0, payloads, None)

    def _decode_parts(
        self, start: int, payloads: pa.Array | Spans, headers: pa.Array | None
    ) -> Iterator[tuple[int, Columns]]:
        pending = [(start, payloads, headers)]
        while pending:
            start, payloads, headers = pending.pop()
            try:
                columns = self.decoder().decode(payloads, headers)
            except BatchTooLarge:
                half = len(payloads) // 2
                if half == 0:
                    yield start, _all_too_large(payloads, self.decoder().type)
                    continue
                for at, rows in ((half, len(payloads) - half), (0, half)):
                    taken = None if headers is None else headers.slice(at, rows)
                    pending.append((start + at, payloads.slice(at, rows), taken))
                continue
            yield start, columns
            done, rows = len(columns.reasons), len(payloads)
            if done < rows:
                rest = None if headers is None else headers.slice(done, rows - done)
                pending.append((start + done, payloads.slice(done, rows - done), rest))

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """The names of the columns of `outcome`."""
        return (
            ("value", "reason", "schema_id", "raw")
            if self.on_poison is OnPoison.DEAD_LETTER
            else ("value", "reason", "schema_id")
        )

    def outcome(
        self, columns: Columns, payloads: pa.Array, headers: pa.Array | None = None, *, details: bool = False
    ) -> list[pa.Array]:
        """Value, reason, schema id, in the mode DEAD_LETTER the raw bytes of bad rows, and optionally their details.

        Raises `PoisonError` in the mode FAIL.
        """
        bad = poison_rows(columns)
        if self.on_poison is OnPoison.FAIL and len(bad):
            raise PoisonError(self._poison(int(bad[0]), columns, payloads, headers))
        arrays = [columns.values, columns.reasons, columns.schema_ids]
        if self.on_poison is OnPoison.DEAD_LETTER:
            arrays.append(raw_of(payloads, bad))
        if details:
            arrays.append(self._details(bad, columns, payloads, headers))
        return arrays

    def _poison(self, row: int, columns: Columns, payloads: pa.Array, headers: pa.Array | None) -> Poison:
        reason = Reason[columns.reasons[row].as_py()]
        schema_id, payload = columns.schema_ids[row].as_py(), payloads[row].as_py()
        detail = self._explained(payload, _headers_of(headers, row)) or REASON_SENTENCES[reason.name]
        if payload is not None:
            more = "…" if len(payload) > HEX_BYTES_MAX else ""
            detail += f"; {len(payload)} bytes: {payload[:HEX_BYTES_MAX].hex()}{more}"
        return Poison(reason, f"{detail} (schema id {schema_id})", payload, schema_id)

    def _details(
        self, bad: NDArray[np.int64], columns: Columns, payloads: pa.Array, headers: pa.Array | None
    ) -> pa.Array:
        if not len(bad):
            return pa.nulls(len(payloads), pa.string())
        texts: list[str | None] = [None] * len(payloads)
        for place, (row, reason) in enumerate(
            zip(bad.tolist(), columns.reasons.take(as_arrow(bad)).to_pylist(), strict=True)
        ):
            message = self._explained(payloads[row].as_py(), _headers_of(headers, row)) if place < DETAILS_MAX else ""
            texts[row] = message or REASON_SENTENCES[reason]
        return pa.array(texts, pa.string())

    def _explained(self, payload: bytes | None, headers: list[tuple[str, bytes | None]]) -> str:
        text = self.decoder().explain(payload, headers)[:DETAIL_CHARS_MAX]
        # The message can quote the payload, and invalid UTF-8 would fail the column.
        return text.encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=DECODERS_MAX)
def decoder_of(spec: Decoding) -> Decoder:
    """Cached per process, because Spark reuses its Python workers."""
    decoder: Decoder
    use_shipped(spec.code)
    if isinstance(spec.reader, TypedReader):
        from headgate.spark_udfs.executor.type_columns import TypeColumns

        decoder = TypeColumns(spec.reader, spec)
    elif spec.reader.language == "AVRO":
        from headgate.spark_udfs.executor.avro_columns import AvroColumns

        decoder = AvroColumns(spec.reader, spec)
    else:
        from headgate.spark_udfs.executor.row_columns import RowColumns

        decoder = RowColumns(spec.reader, spec)
    if _is_worker():
        keep_freed_buffers()
        freeze_loaded_objects()
    return decoder


def _is_worker() -> bool:
    """Whether this process is a Python worker. The memory settings of a driver belong to the user."""
    if sys.modules.get("pyspark") is None:
        return False
    from pyspark import TaskContext

    return TaskContext.get() is not None


@cache
def reason_names() -> pa.Array:
    """Reason names by number; null for 0. Not created by `pa.array`, which imports pandas."""
    names = [reason.name.encode() for reason in sorted(Reason)]
    offsets = np.cumsum([0, 0, *map(len, names)]).astype(np.int32)
    is_valid = np.packbits([False] + [True] * len(names), bitorder="little")
    buffers = [pa.py_buffer(is_valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(names))]
    return pa.Array.from_buffers(pa.string(), 1 + len(names), buffers)


def poison_rows(columns: Columns) -> NDArray[np.int64]:
    """The indexes of the bad rows."""
    return poison_rows_of(columns.reasons)


def poison_rows_of(reasons: pa.Array) -> NDArray[np.int64]:
    if reasons.null_count == len(reasons):
        return np.zeros(0, np.int64)
    return np.flatnonzero(is_valid(reasons)).astype(np.int64)


def raw_of(payloads: pa.Array, bad: NDArray[np.int64]) -> pa.Array:
    """The payloads of the bad rows, and null for good rows."""
    if not len(bad):
        return pa.nulls(len(payloads), pa.binary())
    is_good = np.ones(len(payloads), bool)
    is_good[bad] = False
    return payloads.take(as_arrow(np.arange(len(payloads)), is_good)).cast(pa.binary())


def pieces(payloads: pa.Array, bytes_max: int = PIECE_BYTES_MAX) -> Iterator[tuple[int, int]]:
    """Start and length of slices of up to `bytes_max` bytes, or of one larger row."""
    rows = len(payloads)
    if payloads.nbytes <= bytes_max or rows <= 1:
        yield 0, rows
        return
    lengths = payloads.cast(pa.large_binary())
    offsets = np.frombuffer(lengths.buffers()[1], np.int64)[lengths.offset : lengths.offset + rows + 1]
    start = 0
    while start < rows:
        end = int(np.searchsorted(offsets, offsets[start] + bytes_max, "right")) - 1
        end = min(max(end, start + 1), rows)
        yield start, end - start
        start = end


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.type == pa.binary():
        # Several chunks together may exceed 32-bit offsets.
        column = column.cast(pa.large_binary())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)


def _concatenated(parts: list[Columns], kind: pa.DataType) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return Columns(
        pa.concat_arrays([pa.nulls(0, kind), *(part.values for part in parts)]),
        pa.concat_arrays([pa.nulls(0, pa.string()), *(part.reasons for part in parts)]),
        pa.concat_arrays([pa.nulls(0, pa.int64()), *(part.schema_ids for part in parts)]),
    )


def _all_poison(part: Columns) -> Columns:
    """The part with every good row marked as poison."""
    reasons = part.reasons.fill_null(Reason.TOO_LARGE.name)
    return Columns(pa.nulls(len(reasons), part.values.type), reasons, part.schema_ids)


def _all_too_large(payloads: pa.Array | Spans, kind: pa.DataType) -> Columns:
    rows = len(payloads)
    reasons = pa.array([Reason.TOO_LARGE.name] * rows, pa.string())
    return Columns(pa.nulls(rows, kind), reasons, pa.nulls(rows, pa.int64()))


def _headers_of(headers: pa.Array | None, row: int) -> list[tuple[str, bytes | None]]:
    return [] if headers is None else header_pairs(headers[row].as_py())


def header_pairs(entries: list[dict[str, Any] | None] | None) -> list[tuple[str, bytes | None]]:
    """The headers of one record, from a row of the column `headers`."""
    return [(entry["key"], entry["value"]) for entry in entries or () if entry is not None]
