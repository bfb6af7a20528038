"""Decode payloads of several subjects to one struct column, with one field per subject.

In each good row, one field is set. Rows are grouped by subject, decoded by the decoder of the subject, and put back in
their order.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyarrow import lib as pa

from headgate.serdes import Reason
from headgate.serdes.columnar import BatchTooLarge, Spans
from headgate.serdes.columnar.memory import as_arrow, is_valid
from headgate.spark_udfs.executor.decoding import Columns, Decoding, decoder_of, poison_rows_of
from headgate.spark_udfs.executor.type_router import TypeRouter
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas
from headgate.spark_udfs.spec.reader import Reader, TypedReader

CELL_BYTES = 8
"""Size of a null in a column, as in `serdes.avro.column_size`."""


class TypeColumns:
    def __init__(self, reader: TypedReader, spec: Decoding) -> None:
        self._subjects = reader.subjects
        self._decoders = [decoder_of(replace(spec, reader=one)) for one in reader.readers]

        def writers(known: Reader) -> WriterSchemas:
            return WriterSchemas(known, spec.registry, on_registry_down=spec.on_registry_down)

        self._router = TypeRouter(reader, writers, is_key=spec.is_key)
        fields = [pa.field(name, one.type) for name, one in zip(self._subjects, self._decoders, strict=True)]
        self.type = pa.struct(fields)
        # The columns of the other subjects take space in every row.
        self._batch_bytes_max = spec.batch_bytes_max
        self._rows_max = max(spec.batch_bytes_max // (_columns(self.type) * CELL_BYTES), 1)

    def explain(self, payload: bytes | None, headers: list[tuple[str, bytes | None]]) -> str:
        place = self._router.place(payload, headers)
        if place is Reason.UNRESOLVABLE:
            return f"the schema of the payload belongs to none of the subjects {', '.join(self._subjects)}"
        return "" if isinstance(place, Reason) else self._decoders[place].explain(payload, headers)

    def decode(self, payloads: pa.Array | Spans, headers: pa.Array | None = None) -> Columns:
        if len(payloads) > self._rows_max:
            payloads = payloads.slice(0, self._rows_max)
            headers = None if headers is None else headers.slice(0, self._rows_max)
        places, schema_ids = self._router.route(payloads, headers)
        first = int(places[0]) if len(places) else 0
        if first >= 0 and (places == first).all():
            only = self._decoders[first].decode(payloads, headers)
            return self._columns({first: only.values}, only.reasons, only.schema_ids)
        return self._decode_mixed(payloads, headers, places, schema_ids)

    def _decode_mixed(
        self,
        payloads: pa.Array | Spans,
        headers: pa.Array | None,
        places: NDArray[np.int64],
        schema_ids: NDArray[np.int64],
    ) -> Columns:
        parts: list[Columns] = []
        groups: list[NDArray[np.int64]] = []
        values: dict[int, pa.Array] = {}
        size = 0
        for place in np.unique(places).tolist():
            rows = np.flatnonzero(places == place)
            groups.append(rows)
            if place < 0:
                reasons = pa.array([Reason(-place).name] * len(rows), pa.string())
                ids = schema_ids[rows]
                parts.append(Columns(pa.nulls(len(rows)), reasons, as_arrow(ids, ids < 0)))
                continue
            taken = None if headers is None else headers.take(as_arrow(rows))
            part = self._decoders[place].decode(_taken(payloads, rows), taken)
            size += part.values.nbytes
            if len(part.reasons) < len(rows) or (size > self._batch_bytes_max and len(places) > 1):
                raise BatchTooLarge("the rows of several subjects together fill more than one batch")
            parts.append(part)
            index = np.zeros(len(places), np.int64)
            index[rows] = np.arange(len(rows))
            values[place] = part.values.take(as_arrow(index, places != place))
        order = as_arrow(np.argsort(np.concatenate(groups), kind="stable"))
        return self._columns(
            values,
            pa.concat_arrays([part.reasons for part in parts]).take(order),
            pa.concat_arrays([part.schema_ids for part in parts]).take(order),
        )

    def _columns(self, values: dict[int, pa.Array], reasons: pa.Array, schema_ids: pa.Array) -> Columns:
        rows = len(reasons)
        fields = [values[at] if at in values else pa.nulls(rows, one.type) for at, one in enumerate(self._decoders)]
        is_null = np.ones(rows, bool)
        for field in values.values():
            is_null &= ~is_valid(field)
        if is_null.sum() > len(poison_rows_of(reasons)):
            # The value of a nullable schema can be null. Its row would belong to no subject.
            given = zip(reasons.to_pylist(), is_null.tolist(), strict=True)
            reasons = pa.array([reason or (Reason.NULL.name if null else None) for reason, null in given], pa.string())
        validity = pa.py_buffer(np.packbits(~is_null, bitorder="little")) if is_null.any() else None
        struct = pa.Array.from_buffers(self.type, rows, [validity], children=fields)
        return Columns(struct, reasons, schema_ids)


def _taken(payloads: pa.Array | Spans, rows: NDArray[np.int64]) -> pa.Array | Spans:
    if not isinstance(payloads, Spans):
        return payloads.take(as_arrow(rows))
    present = payloads.present[rows] if len(payloads.present) else payloads.present
    return Spans(payloads.data, payloads.starts[rows], payloads.ends[rows], present)


def _columns(kind: pa.DataType) -> int:
    """The number of columns, including nested ones."""
    return 1 + sum(_columns(kind.field(at).type) for at in range(kind.num_fields))
