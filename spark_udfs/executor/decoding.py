"""Framed payloads to Spark's columns, in an executor: the one step that the functions, the frames and the source share.

A `Decoding` is plain data that travels with the plan. Each Python worker makes one decoder of it and keeps it: writers'
schemas that the plan did not bring are asked for once per worker, and what the registry did not know is remembered too.
Avro goes through `serdes.columnar` (`spark_udfs.avro_columns`), JSON Schema and Protobuf row by row
(`spark_udfs.row_columns`).
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes import Poison, PoisonError, Reason
from headgate.serdes.columnar import BatchTooLarge, Spans
from headgate.serdes.columnar.layout import RECURSION_MAX_DEFAULT
from headgate.spark_udfs.executor.worker_memory import freeze_loaded_objects, keep_freed_buffers
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison
from headgate.spark_udfs.spec.reader import Reader
from headgate.spark_udfs.spec.registry_options import RegistryOptions

DECODERS_MAX = 32
"""Decoders that one Python worker keeps: as many queries can share it."""

PIECE_BYTES_MAX = 8 * 1024 * 1024
"""Payload bytes decoded at once. A null in a list takes one byte, and a slot in every column below it, so that what is
decoded can be a hundred times larger."""

JOINED_BYTES_MAX = 2**31 - 1
"""Of one Arrow array with 32-bit offsets, at the most pessimistic."""

DETAILS_MAX = 200
"""Rows of a piece whose fault is described in full: each is read once more, by itself. The others have a general
sentence, so that a topic of nothing but garbage costs little more than a good one."""

DETAIL_CHARS_MAX = 2000
HEX_BYTES_MAX = 16
"""Of a payload, in the text of an error."""

REASON_SENTENCES: dict[str, str] = {reason.name: reason.message for reason in Reason}
"""What a reason means, where nothing more is known of the row."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Row for row: the value as Spark takes it, the name of the reason (null where good), the schema id if any."""

    values: pa.Array
    reasons: pa.Array
    schema_ids: pa.Array


class Decoder(Protocol):
    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values, as Spark takes it."""
        ...

    def decode(self, payloads: pa.Array | Spans, headers: pa.Array | None = None) -> Columns:
        """`headers` are the records' own, lists of key and value, in which the newer form names the schema.

        Raises nothing for any payload, but `BatchTooLarge` where the rows should come in smaller pieces, and
        `NewVersionError` where the policy asks for it.
        """
        ...

    def explain(self, payload: bytes | None, headers: list[tuple[str, bytes | None]]) -> str:
        """What is wrong with a payload that `decode` gave a reason for; "" where that cannot be said."""
        ...


@dataclass(frozen=True, slots=True)
class Decoding:
    """Picklable and hashable."""

    reader: Reader
    registry: RegistryOptions
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    recursion_max: int = RECURSION_MAX_DEFAULT

    def decoder(self) -> Decoder:
        """The decoder of this process; the same for an equal spec."""
        return decoder_of(self)

    def decode(
        self, payloads: pa.Array | pa.ChunkedArray, headers: pa.Array | pa.ChunkedArray | None = None
    ) -> Columns:
        """All rows in one piece, whatever the mode. Raises nothing for any payload.

        Rows past two gigabytes of values, which one Arrow array cannot hold, are INVALID_VALUE; `in_pieces` has no such
        bound.
        """
        parts: list[Columns] = []
        size = 0
        for _, part in self.in_pieces(payloads, headers):
            size += part.values.nbytes
            parts.append(part if size <= JOINED_BYTES_MAX else _refused(part))
        return _joined(parts, self.decoder().type)

    def in_pieces(
        self, payloads: pa.Array | pa.ChunkedArray, headers: pa.Array | pa.ChunkedArray | None = None
    ) -> Iterator[tuple[int, Columns]]:
        """The columns of runs of rows, each with the number of its first row."""
        payloads = _one_array(payloads)
        headers = None if headers is None else _one_array(headers)
        for start, rows in pieces(payloads):
            taken = None if headers is None else headers.slice(start, rows)
            yield from self._halved(start, payloads.slice(start, rows), taken)

    @property
    def is_in_place(self) -> bool:
        """Whether payloads are read where they lie, without a column made of them."""
        return self.reader.language == "AVRO"

    def in_place(self, payloads: Spans) -> Iterator[tuple[int, Columns]]:
        """As `in_pieces`, for payloads of bounded bytes."""
        return self._halved(0, payloads, None)

    def _halved(
        self, start: int, payloads: pa.Array | Spans, headers: pa.Array | None
    ) -> Iterator[tuple[int, Columns]]:
        work = [(start, payloads, headers)]
        while work:
            start, payloads, headers = work.pop()
            try:
                columns = self.decoder().decode(payloads, headers)
            except BatchTooLarge:
                half = len(payloads) // 2
                if half == 0:
                    yield start, _nothing(payloads, self.decoder().type)
                    continue
                for at, rows in ((half, len(payloads) - half), (0, half)):
                    taken = None if headers is None else headers.slice(at, rows)
                    work.append((start + at, payloads.slice(at, rows), taken))
            else:
                yield start, columns

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """The names of the columns that `outcome` gives."""
        return (
            ("value", "reason", "schema_id", "raw")
            if self.on_poison is OnPoison.DEAD_LETTER
            else ("value", "reason", "schema_id")
        )

    def outcome(
        self, columns: Columns, payloads: pa.Array, headers: pa.Array | None = None, *, details: bool = False
    ) -> list[pa.Array]:
        """Value, reason, schema id; the raw bytes of poison in the mode DEAD_LETTER; the detail of it if asked for.

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
        for place, (row, reason) in enumerate(zip(bad.tolist(), columns.reasons.take(bad).to_pylist(), strict=True)):
            said = self._explained(payloads[row].as_py(), _headers_of(headers, row)) if place < DETAILS_MAX else ""
            texts[row] = said or REASON_SENTENCES[reason]
        return pa.array(texts, pa.string())

    def _explained(self, payload: bytes | None, headers: list[tuple[str, bytes | None]]) -> str:
        text = self.decoder().explain(payload, headers)[:DETAIL_CHARS_MAX]
        # It can quote the payload: what is no text in UTF-8 would fail the column.
        return text.encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=DECODERS_MAX)
def decoder_of(spec: Decoding) -> Decoder:
    """Kept per process: Spark's Python workers are reused from task to task."""
    made: Decoder
    if spec.reader.language == "AVRO":
        from headgate.spark_udfs.executor.avro_columns import AvroColumns

        made = AvroColumns(spec)
    else:
        from headgate.spark_udfs.executor.row_columns import RowColumns

        made = RowColumns(spec)
    if _is_in_a_task():
        keep_freed_buffers()
        freeze_loaded_objects()
    return made


def _is_in_a_task() -> bool:
    """Whether this process is a Python worker of Spark's, whose memory is ours to arrange; a driver's is not."""
    if "pyspark" not in sys.modules:
        return False
    from pyspark import TaskContext

    return TaskContext.get() is not None


@cache
def reason_names() -> pa.Array:
    """By the number of the reason; null for 0. Made late: with its first array, Arrow imports pandas."""
    return pa.array([None, *(reason.name for reason in sorted(Reason))], pa.string())


def poison_rows(columns: Columns) -> NDArray[np.int64]:
    """The rows that have a reason."""
    return poison_rows_of(columns.reasons)


def poison_rows_of(reasons: pa.Array) -> NDArray[np.int64]:
    if reasons.null_count == len(reasons):
        return np.zeros(0, np.int64)
    return np.flatnonzero(reasons.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)


def raw_of(payloads: pa.Array, bad: NDArray[np.int64]) -> pa.Array:
    """The payloads of the bad rows, null elsewhere."""
    if not len(bad):
        return pa.nulls(len(payloads), pa.binary())
    is_good = np.ones(len(payloads), bool)
    is_good[bad] = False
    return payloads.take(pa.array(np.arange(len(payloads)), mask=is_good)).cast(pa.binary())


def pieces(payloads: pa.Array, bytes_max: int = PIECE_BYTES_MAX) -> Iterator[tuple[int, int]]:
    """Start and length of runs of rows with so many bytes at most, or one row with more."""
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
        # Several chunks together may be more than 32-bit offsets can count.
        column = column.cast(pa.large_binary())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _joined(parts: list[Columns], kind: pa.DataType) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return Columns(
        pa.concat_arrays([pa.array([], kind), *(part.values for part in parts)]),
        pa.concat_arrays([pa.array([], pa.string()), *(part.reasons for part in parts)]),
        pa.concat_arrays([pa.array([], pa.int64()), *(part.schema_ids for part in parts)]),
    )


def _refused(part: Columns) -> Columns:
    """Every good row as poison."""
    reasons = part.reasons.fill_null(Reason.INVALID_VALUE.name)
    return Columns(pa.nulls(len(reasons), part.values.type), reasons, part.schema_ids)


def _nothing(payloads: pa.Array | Spans, kind: pa.DataType) -> Columns:
    rows = len(payloads)
    reasons = pa.array([Reason.INVALID_VALUE.name] * rows, pa.string())
    return Columns(pa.nulls(rows, kind), reasons, pa.nulls(rows, pa.int64()))


def _headers_of(headers: pa.Array | None, row: int) -> list[tuple[str, bytes | None]]:
    entries = None if headers is None else headers[row].as_py()
    return [(entry["key"], entry["value"]) for entry in entries or () if entry is not None]
