"""Find schema ids in record headers (`__value_schema_id`), for a whole column of headers.

`docs/wire-format.md` describes the format. Most topics have no such header and skip this work.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes.framing import VALUE_HEADER, unframe_record
from headgate.serdes.outcome import Poison, Reason
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas


@dataclass(frozen=True, slots=True)
class HeaderSchemas:
    """The rows with a schema header. `numbers` are those of `WriterSchemas`, or reasons."""

    rows: NDArray[np.int64]
    numbers: list[int | Reason]
    schema_ids: list[int | None]


def header_schemas(headers: pa.Array, writers: WriterSchemas, name: str) -> HeaderSchemas | None:
    """None if no row has the header. `headers` is a list column of structs of key and value."""
    found = _first_of_name(headers, name)
    if found is None:
        return None
    rows, values = found
    distinct = values.dictionary_encode()
    known = [_schema_of(header, name, writers) for header in distinct.dictionary.to_pylist()]
    places = distinct.indices.to_pylist()
    return HeaderSchemas(rows, [known[place][0] for place in places], [known[place][1] for place in places])


def _first_of_name(headers: pa.Array, name: str) -> tuple[NDArray[np.int64], pa.Array] | None:
    """The rows with the header, and its first value. A header without value is ignored, as in `serdes.framing`."""
    entries = headers.values
    keys = entries.field(0).dictionary_encode()
    names = keys.dictionary.to_pylist()
    if name not in names:
        return None
    places = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    hits = np.flatnonzero(places == names.index(name))
    offsets = headers.offsets.to_numpy(zero_copy_only=False)
    hits = hits[(hits >= offsets[0]) & (hits < offsets[-1])]
    rows, first = np.unique(np.searchsorted(offsets, hits, "right") - 1, return_index=True)
    values = entries.field(1).take(pa.array(hits[first], pa.int64()))
    keep = (values.is_valid().to_numpy(zero_copy_only=False)) & (
        headers.is_valid().to_numpy(zero_copy_only=False)[rows] if headers.null_count else True
    )
    if not keep.any():
        return None
    return rows[keep].astype(np.int64), values.filter(pa.array(keep)).cast(pa.binary())


def _schema_of(header: bytes, name: str, writers: WriterSchemas) -> tuple[int | Reason, int | None]:
    frame = unframe_record(b"", [(name, header)], name != VALUE_HEADER)
    if isinstance(frame, Poison):
        return frame.reason, None
    return writers.number_of_frame(frame), frame.schema_id
