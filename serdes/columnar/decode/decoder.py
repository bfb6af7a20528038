"""Decodes a batch of framed Avro to Arrow columns: values, reasons and schema ids.

Combines the planner, the arena and the kernel. `schema_source` provides schemas, `projection` selects columns.
"""

from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.avro.column_size import RECURSION_MAX_DEFAULT, ROW_BYTES_MAX, item_bytes
from headgate.serdes.avro.resolution import Plan, Unresolvable, resolve
from headgate.serdes.avro.schema import Schema
from headgate.serdes.columnar.decode.arena import Arena, Demand, Rates, Room, measure, scope_widths
from headgate.serdes.columnar.decode.arrays import assemble
from headgate.serdes.columnar.decode.planner import compile_plan
from headgate.serdes.columnar.decode.program import Program
from headgate.serdes.columnar.decode.schema_source import SchemaSource
from headgate.serdes.columnar.engine import Engine, default_engine
from headgate.serdes.columnar.errors import SchemaTooLarge
from headgate.serdes.columnar.kernels import decode_rows
from headgate.serdes.columnar.kernels.frames import FRAME_BYTES
from headgate.serdes.columnar.layout import lay_out
from headgate.serdes.columnar.memory import as_arrow, empty
from headgate.serdes.columnar.spans import Spans, spans_of
from headgate.serdes.outcome import Reason

UNLIMITED_BYTES: Final = 2**62
"""Decode all rows at once. Arrow's offsets still limit a batch (`BatchTooLarge`)."""

DISTINCT_IDS_FEW: Final = 500
"""The first estimate of distinct schema ids in a batch. In corrupt data, each row can have another id."""


@dataclass(frozen=True, slots=True)
class Batch:
    """For each row: the value (null if there is a reason), the reason (0 if decoded), and the schema id, if any."""

    values: pa.Array
    reasons: pa.Array
    schema_ids: pa.Array


class ColumnarDecoder:
    """Decodes to one reader schema. Compiles writer schemas on demand. Safe to share between threads."""

    def __init__(
        self,
        reader: Schema,
        source: SchemaSource,
        *,
        recursion_max: int = RECURSION_MAX_DEFAULT,
        row_bytes_max: int = ROW_BYTES_MAX,
        batch_bytes_max: int = UNLIMITED_BYTES,
        engine: Engine | None = None,
    ) -> None:
        """A row above `row_bytes_max` is TOO_LARGE. A batch ends before the row that would exceed `batch_bytes_max`.

        `serdes.avro.column_size` defines the size of a row.
        """
        self._reader = reader
        self._source = source
        self._engine = engine or default_engine()
        self._layout = lay_out(reader, recursion_max)
        self._row_bytes = item_bytes(reader, recursion_max)
        self._batch_bytes_max = batch_bytes_max
        self._limits = np.array([self._row_bytes, row_bytes_max, batch_bytes_max], np.int64)
        self._scope_widths = scope_widths(self._layout.buffers, self._layout.scopes)
        self._program = Program(self._layout)
        self._entries: dict[int, int] = {}
        self._lock = Lock()
        self._rates = Rates.guess(self._layout.buffers, self._layout.scopes)

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the values."""
        return self._layout.root.arrow

    def decode(self, payloads: pa.Array | pa.ChunkedArray | Spans) -> Batch:
        """Decode framed payloads: an array (binary or large_binary; slices, chunks and nulls are allowed) or spans.

        The batch has fewer rows than the payloads if it ends at `batch_bytes_max`. It has at least one row.
        """
        spans = self._head(spans_of(payloads))
        rows = len(spans.starts)
        ids = empty(rows, np.int64)
        slots = empty(rows, np.int64)
        distinct = self._scan(spans, ids, slots)
        return self._run(spans, FRAME_BYTES, slots, distinct, as_arrow(ids, slots < 0))

    def decode_bodies(self, bodies: pa.Array, schema_ids: pa.Array) -> Batch:
        """Decode bodies without a frame, for example if the schema id is in a record header.

        A null body is NULL. A body with a null id is UNKNOWN_SCHEMA.
        """
        spans = self._head(spans_of(bodies))
        schema_ids = schema_ids.slice(0, len(spans))
        known = schema_ids.is_valid().to_numpy(zero_copy_only=False)
        ids = schema_ids.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        distinct, places = np.unique(ids, return_inverse=True)
        slots = np.where(known, places, -int(Reason.UNKNOWN_SCHEMA)).astype(np.int64)
        if len(spans.present):
            slots[spans.present == 0] = -int(Reason.NULL)
        return self._run(spans, 0, slots, distinct, schema_ids.cast(pa.int64()))

    def _head(self, spans: Spans) -> Spans:
        """The rows that fit a batch even if each is as small as possible."""
        rows = max(self._batch_bytes_max // max(self._row_bytes, 1), 1)
        return spans if len(spans) <= rows else spans.slice(0, rows)

    def _scan(self, spans: Spans, ids: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Parse the frames. Returns the distinct ids."""
        for capacity in (DISTINCT_IDS_FEW, max(len(ids), 1)):
            distinct = np.zeros(capacity, np.int64)
            table = np.full(1 << (2 * capacity).bit_length(), -1, np.int64)
            found = self._engine.scan_frames(
                spans.data, spans.starts, spans.ends, spans.present, ids, slots, table, distinct
            )
            if found >= 0:
                break
        return distinct[:found]

    def _entry(self, schema_id: int) -> int:
        entry = self._entries.get(schema_id)
        if entry is not None:
            return entry
        writer = self._source.writer_schema(schema_id)
        if isinstance(writer, Reason):
            return -writer
        plan = resolve(writer, self._reader)
        with self._lock:
            if schema_id not in self._entries:
                self._entries[schema_id] = self._compiled(plan, writer)
            return self._entries[schema_id]

    def _compiled(self, plan: Plan, writer: Schema) -> int:
        if isinstance(plan, Unresolvable):
            return -Reason.UNRESOLVABLE
        try:
            return compile_plan(self._program, plan, writer, self._reader)
        except SchemaTooLarge:
            return -Reason.UNRESOLVABLE

    def _run(
        self, spans: Spans, skip: int, slots: NDArray[np.int64], distinct: NDArray[np.int64], ids: pa.Array
    ) -> Batch:
        rows = len(slots)
        entries = np.array([self._entry(int(schema_id)) for schema_id in distinct] or [0], np.int64)
        with self._lock:
            program, constants = self._program.arrays()
        payload_bytes = int((spans.ends - spans.starts).sum())
        arena = Arena(self._layout.buffers, self._room(self._rates, rows, payload_bytes))
        reasons = empty(rows, np.uint8)
        stack = np.zeros(decode_rows.FRAMES * decode_rows.FRAME, np.int64)
        progress = np.zeros(4, np.int64)
        while True:
            status = self._engine.decode_rows(
                spans.data, spans.starts, spans.ends, skip, slots, entries, program, constants,
                arena.base, arena.room.scopes, arena.room.bytes, arena.u8, arena.i32, arena.i64, arena.f32, arena.f64,
                self._limits, reasons, stack, progress,
            )  # fmt: skip
            done, number, needed, _ = (int(word) for word in progress)
            used = measure(arena, self._layout.root, done)
            if status in (decode_rows.DONE, decode_rows.FULL):
                break
            demand = Demand(status == decode_rows.GROW_SCOPE, number, needed)
            wanted = self._room(Rates.of(used, done), rows, payload_bytes)
            arena = arena.moved(demand.enlarged(arena.room, wanted))
        if done:
            self._rates = Rates.of(used, done)
        reasons = reasons[:done]
        values = assemble(arena, self._layout.root, done, reasons == 0)
        return Batch(values, as_arrow(reasons), ids.slice(0, done))

    def _room(self, rates: Rates, rows: int, payload_bytes: int) -> Room:
        return rates.room(rows, payload_bytes, self._scope_widths, self._batch_bytes_max)
