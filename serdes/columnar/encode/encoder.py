"""Encodes Arrow columns to framed Avro payloads, for sinks.

Accepts the columns of the decoder, and all columns that Arrow can cast to them. A row that does not match the schema
becomes null with a reason. A column that does not match (a missing field, another type) raises an error with the field.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.avro.schema import Schema, Union
from headgate.serdes.columnar.encode.plan import Writing
from headgate.serdes.columnar.engine import Engine, default_engine
from headgate.serdes.columnar.errors import BatchTooLarge
from headgate.serdes.columnar.kernels import encode_rows
from headgate.serdes.columnar.layout import is_null
from headgate.serdes.columnar.memory import as_arrow, empty
from headgate.serdes.framing import frame
from headgate.serdes.outcome import Reason

BYTES_PER_ROW: Final = 64
"""The first estimate of a payload's size. The block doubles if it is too small."""
OUT_BYTES_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Encoded:
    """For each row: the payload (null if there is a reason) and the reason (0 if encoded)."""

    payloads: pa.Array
    reasons: pa.Array


class ColumnarEncoder:
    """Encodes with one schema. Immutable, so that threads can share it."""

    def __init__(self, schema: Schema, schema_id: int, *, engine: Engine | None = None) -> None:
        self._schema = schema
        self._frame = np.frombuffer(frame(schema_id, b""), np.uint8)
        self._engine = engine or default_engine()

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Encoded:
        """Encode the rows.

        A null row has the reason NULL. Raises `NotEncodable` for columns that do not match the schema.
        """
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.nulls(0, values.type)
        writing = Writing(self._schema, values)
        block, base = writing.packing.laid_out()
        rows = len(values)
        reasons = empty(rows, np.uint8)
        reasons[:] = 0
        if not _takes_null(self._schema):
            reasons[~values.is_valid().to_numpy(zero_copy_only=False)] = Reason.NULL
        offsets = empty(rows + 1, np.int32)
        offsets[0] = 0
        out = empty(rows * BYTES_PER_ROW + encode_rows.ROW_BYTES, np.uint8)
        stack = np.zeros(encode_rows.FRAMES * encode_rows.FRAME, np.int64)
        progress = np.zeros(2, np.int64)
        program = np.array(writing.code, np.int64)
        constants = np.frombuffer(bytes(writing.constants.pool) or b"\0", np.uint8)
        views = (block, block.view(np.int32), block.view(np.int64))
        while self._engine.encode_rows(
            self._frame, program, constants, base, *views, out, offsets, reasons, stack, progress
        ):
            out = _larger(out, int(progress[1]), int(offsets[progress[0]]))
        bad = reasons != 0
        validity = pa.py_buffer(np.packbits(~bad, bitorder="little")) if bad.any() else None
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(out[: offsets[rows]])]
        return Encoded(pa.Array.from_buffers(pa.binary(), rows, buffers), as_arrow(reasons))


def _takes_null(schema: Schema) -> bool:
    return is_null(schema) or (isinstance(schema, Union) and any(is_null(branch) for branch in schema.branches))


def _larger(out: NDArray[np.uint8], needed: int, used: int) -> NDArray[np.uint8]:
    if needed > OUT_BYTES_MAX:
        raise BatchTooLarge(f"the payloads need {needed} bytes or more; Arrow's offsets have 32 bits")
    larger = empty(min(max(2 * len(out), 2 * needed), OUT_BYTES_MAX), np.uint8)
    larger[:used] = out[:used]
    return larger
