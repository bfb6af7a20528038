"""Records in place, in the bytes of a fetch response, and their Arrow columns on request.

Decoding payloads needs no column: the decoder reads them in place.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.engine import Engine
from headgate.serdes.columnar.memory import as_arrow, empty
from headgate.serdes.columnar.spans import Spans

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("partition", pa.int32()),
    ]
)
NO_TIMESTAMP = -1
"""Kafka's value for a missing timestamp. It is null in the column."""


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of byte strings. A null ends before its start."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @staticmethod
    def allocate(count: int) -> "Places":
        return Places(empty(count, np.int64), empty(count, np.int64))

    def slice(self, start: int, end: int) -> "Places":
        return Places(self.starts[start:end], self.ends[start:end])

    @property
    def sizes(self) -> NDArray[np.int64]:
        sizes: NDArray[np.int64] = np.maximum(self.ends - self.starts, 0)
        return sizes


@dataclass(frozen=True, slots=True)
class RecordRows:
    data: NDArray[np.uint8]
    engine: Engine
    partition: int
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    timestamp_types: NDArray[np.uint8]
    keys: Places
    values: Places
    header_starts: NDArray[np.int64]
    header_lists: NDArray[np.int32]
    """The number of headers before each row, and one more entry for the end."""

    @staticmethod
    def allocate(data: NDArray[np.uint8], engine: Engine, partition: int, rows: int) -> "RecordRows":
        """Empty arrays that `scan_records` fills."""
        return RecordRows(
            data,
            engine,
            partition,
            empty(rows, np.int64),
            empty(rows, np.int64),
            empty(rows, np.uint8),
            Places.allocate(rows),
            Places.allocate(rows),
            empty(rows, np.int64),
            empty(rows + 1, np.int32),
        )

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """The arguments of `scan_records`, in order."""
        return (
            self.offsets,
            self.timestamps,
            self.timestamp_types,
            self.keys.starts,
            self.keys.ends,
            self.values.starts,
            self.values.ends,
            self.header_starts,
            self.header_lists,
        )

    def __len__(self) -> int:
        return len(self.offsets)

    def slice(self, start: int, rows: int) -> "RecordRows":
        end = start + rows
        return RecordRows(
            self.data,
            self.engine,
            self.partition,
            self.offsets[start:end],
            self.timestamps[start:end],
            self.timestamp_types[start:end],
            self.keys.slice(start, end),
            self.values.slice(start, end),
            self.header_starts[start:end],
            self.header_lists[start : end + 1],
        )

    @property
    def has_headers(self) -> bool:
        return bool(self.header_lists[-1] > self.header_lists[0])

    def payloads(self) -> Spans:
        """The values, in place."""
        starts, ends = self.values.starts, self.values.ends
        is_null = ends < starts
        if not is_null.any():
            return Spans(self.data, starts, ends, np.zeros(0, np.uint8))
        return Spans(self.data, starts, np.maximum(starts, ends), (~is_null).astype(np.uint8))

    def batch(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self.column(name) for name in SCHEMA.names], schema=SCHEMA)

    def column(self, name: str) -> pa.Array:
        """A column of `SCHEMA`. It copies the bytes."""
        if name == "offset":
            return as_arrow(self.offsets)
        if name == "timestamp":
            times = self.timestamps
            return as_arrow(times, times == NO_TIMESTAMP).cast(SCHEMA.field("timestamp").type)
        if name == "timestamp_type":
            return as_arrow(self.timestamp_types.astype(np.int32))
        if name == "partition":
            return as_arrow(np.full(len(self), self.partition, np.int32))
        if name == "headers":
            return self._headers()
        return self._bytes(self.keys if name == "key" else self.values)

    def _bytes(self, places: Places, *, is_text: bool = False) -> pa.Array:
        rows = len(places.starts)
        offsets, valid = empty(rows + 1, np.int32), empty(rows, np.uint8)
        copied = empty(int(places.sizes.sum()), np.uint8)
        self.engine.copy_spans(self.data, places.starts, places.ends, offsets, valid, copied)
        if is_text:
            self.engine.make_text(offsets, copied)
        present = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        kind = pa.string() if is_text else pa.binary()
        return pa.Array.from_buffers(kind, rows, [present, pa.py_buffer(offsets), pa.py_buffer(copied)])

    def _headers(self) -> pa.Array:
        lists = self.header_lists - self.header_lists[0]
        count = int(lists[-1])
        keys, values = Places.allocate(count), Places.allocate(count)
        self.engine.find_headers(
            self.data, self.header_starts, lists, keys.starts, keys.ends, values.starts, values.ends
        )
        entries = [self._bytes(keys, is_text=True), self._bytes(values)]
        items = pa.Array.from_buffers(HEADERS.value_type, count, [None], children=entries)
        return pa.Array.from_buffers(HEADERS, len(self), [None, pa.py_buffer(lists)], children=[items])
