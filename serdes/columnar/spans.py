"""A payload column as one buffer and the positions of its rows, without a copy."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.columnar.errors import NotBinary
from headgate.serdes.columnar.memory import empty, is_valid


@dataclass(frozen=True, slots=True)
class Spans:
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    present: NDArray[np.uint8]
    """1 for a payload, 0 for null. Empty if no row is null."""

    def __len__(self) -> int:
        return len(self.starts)

    def slice(self, start: int, rows: int) -> "Spans":
        end = start + rows
        return Spans(self.data, self.starts[start:end], self.ends[start:end], self.present[start:end])


def spans_of(payloads: pa.Array | pa.ChunkedArray | Spans) -> Spans:
    """The positions of the payloads. Raises `NotBinary` for other columns."""
    if isinstance(payloads, Spans):
        return payloads
    if isinstance(payloads, pa.ChunkedArray):
        payloads = _one_chunk(payloads)
    kind = payloads.type
    if kind in (pa.binary(), pa.string()):
        width: type[np.int32] | type[np.int64] = np.int32
    elif kind in (pa.large_binary(), pa.large_string()):
        width = np.int64
    else:
        try:
            return spans_of(payloads.cast(pa.large_binary()))
        except pa.ArrowException:
            raise NotBinary(f"the payload column must be binary, not {kind}") from None
    rows, first = len(payloads), payloads.offset
    _, offset_bytes, data_bytes = payloads.buffers()
    if rows == 0 or offset_bytes is None:
        offsets = np.zeros(rows + 1, np.int64)
    else:
        offsets = empty(rows + 1, np.int64)
        offsets[:] = np.frombuffer(offset_bytes, width)[first : first + rows + 1]
    has_data = data_bytes is not None and data_bytes.size > 0
    data = np.frombuffer(data_bytes, np.uint8) if has_data else np.zeros(1, np.uint8)
    present = is_valid(payloads).view(np.uint8) if payloads.null_count else np.zeros(0, np.uint8)
    return Spans(data, offsets[:-1], offsets[1:], present)


def _one_chunk(chunked: pa.ChunkedArray) -> pa.Array:
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    # Several chunks together may exceed 32-bit offsets.
    wide = {pa.binary(): pa.large_binary(), pa.string(): pa.large_string()}.get(chunked.type, chunked.type)
    return pa.concat_arrays(chunked.cast(wide).chunks) if chunked.num_chunks else pa.nulls(0, wide)
