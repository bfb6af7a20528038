"""The arrays that a batch of Kafka records is read into, and the Arrow columns over them."""

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from serdes.columnar.memory import empty

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
"""What Kafka writes where a record has none; null in the column."""


class _Bytes:
    """Bytes or nulls, row by row."""

    def __init__(self, rows: int, size: int) -> None:
        self.offsets = empty(rows + 1, np.int32)
        self.offsets[0] = 0
        self.valid = empty(rows, np.uint8)
        self.data = np.empty(size, np.uint8)

    def column(self, rows: int, kind: pa.DataType, *, nullable: bool = True) -> pa.Array:
        present = _bits(self.valid, rows) if nullable else None
        buffers = [present, pa.py_buffer(self.offsets[: rows + 1]), pa.py_buffer(self.data[: self.offsets[rows]])]
        return pa.Array.from_buffers(kind, rows, buffers)


class RecordBuffers:
    def __init__(self, rows: int, headers: int, size: int) -> None:
        """Room for so many rows and headers; no column can hold more bytes than the records have."""
        self._offsets = empty(rows, np.int64)
        self._timestamps = empty(rows, np.int64)
        self._timestamp_types = empty(rows, np.uint8)
        self._keys = _Bytes(rows, size)
        self._values = _Bytes(rows, size)
        self._lists = empty(rows + 1, np.int32)
        self._lists[0] = 0
        self._header_keys = _Bytes(headers, size)
        self._header_values = _Bytes(headers, size)

    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """In the order that `decode_records` takes them."""
        return (
            self._offsets,
            self._timestamps,
            self._timestamp_types,
            self._keys.offsets,
            self._keys.valid,
            self._keys.data,
            self._values.offsets,
            self._values.valid,
            self._values.data,
            self._lists,
            self._header_keys.offsets,
            self._header_keys.data,
            self._header_values.offsets,
            self._header_values.valid,
            self._header_values.data,
        )

    def batch(self, rows: int, headers: int, partition: int) -> pa.RecordBatch:
        entries = [
            self._header_keys.column(headers, pa.string(), nullable=False),
            self._header_values.column(headers, pa.binary()),
        ]
        items = pa.Array.from_buffers(HEADERS.value_type, headers, [None], children=entries)
        lists = pa.Array.from_buffers(HEADERS, rows, [None, pa.py_buffer(self._lists[: rows + 1])], children=[items])
        times = self._timestamps[:rows]
        columns = [
            pa.array(self._offsets[:rows]),
            pa.array(times, mask=times == NO_TIMESTAMP).cast(SCHEMA.field("timestamp").type),
            pa.array(self._timestamp_types[:rows].astype(np.int32)),
            self._keys.column(rows, pa.binary()),
            self._values.column(rows, pa.binary()),
            lists,
            pa.array(np.full(rows, partition, np.int32)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _bits(cells: NDArray[np.uint8], rows: int) -> pa.Buffer | None:
    present = cells[:rows]
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
