"""Decode Avro payloads to Spark columns with `serdes.columnar`, without Python code per row."""

import numpy as np
from pyarrow import lib as pa

from headgate.serdes import Poison, Reason
from headgate.serdes.avro import Schema, parse
from headgate.serdes.avro.column_size import ColumnLimits
from headgate.serdes.columnar import BatchTooLarge, ColumnarDecoder, Spans, project
from headgate.serdes.framing import header_name
from headgate.spark_udfs.executor.decoding import Columns, Decoding, reason_names
from headgate.spark_udfs.executor.row_reading import Headers, RowReader
from headgate.spark_udfs.executor.schema_id_headers import HeaderSchemas, header_schemas
from headgate.spark_udfs.executor.spark_types import spark_arrow_type, to_spark
from headgate.spark_udfs.executor.writer_schemas import WriterSchemas
from headgate.spark_udfs.spec.reader import Reader


def reader_schema(reader: Reader) -> Schema:
    """The projected reader schema. Raises `InvalidSchema` or `UnknownField`."""
    schema = parse(reader.schema.text, dict(reader.schema.references))
    return schema if reader.fields is None else project(schema, reader.fields)


class AvroColumns:
    def __init__(self, reader: Reader, spec: Decoding) -> None:
        schema = reader_schema(reader)
        self._is_key = spec.is_key
        self._writers = WriterSchemas(reader, spec.registry, spec.on_new_version, spec.on_registry_down)
        self._decoder = ColumnarDecoder(
            schema,
            self._writers,
            recursion_max=spec.recursion_max,
            row_bytes_max=spec.row_bytes_max,
            batch_bytes_max=spec.batch_bytes_max,
        )
        self._rows = RowReader(reader, self._writers, schema, ColumnLimits(spec.row_bytes_max, spec.recursion_max))
        self.type = spark_arrow_type(self._decoder.type)

    def explain(self, payload: bytes | None, headers: Headers) -> str:
        outcome = self._rows.read(payload, headers, is_key=self._is_key)
        # The row reader does not know the depth at which columns of a recursive record end. Then there is no message.
        return outcome.detail if isinstance(outcome, Poison) else ""

    def decode(self, payloads: pa.Array | Spans, headers: pa.Array | None = None) -> Columns:
        in_headers = None if headers is None else header_schemas(headers, self._writers, header_name(self._is_key))
        if in_headers is None:
            batch = self._decoder.decode(payloads)
            return self._columns(batch.values, batch.reasons, batch.schema_ids)
        return self._decode_mixed(payloads, in_headers)

    def _decode_mixed(self, payloads: pa.Array, in_headers: HeaderSchemas) -> Columns:
        """Decode rows with a schema id in a header, rows with a bad header, and framed rows, and merge the results."""
        named = [at for at, number in enumerate(in_headers.numbers) if not isinstance(number, Reason)]
        faulty = [at for at, number in enumerate(in_headers.numbers) if isinstance(number, Reason)]
        without = np.setdiff1d(np.arange(len(payloads)), in_headers.rows)
        bodies = self._decoder.decode_bodies(
            payloads.take(pa.array(in_headers.rows[named])),
            pa.array([in_headers.numbers[at] for at in named], pa.int64()),
        )
        framed = self._decoder.decode(payloads.take(pa.array(without)))
        if len(bodies.reasons) < len(named) or len(framed.reasons) < len(without):
            raise BatchTooLarge("rows with and without header schemas together fill more than one batch")
        if len(payloads) == 1 and not faulty:
            # A single row can be large, so do not copy it.
            only = bodies if named else framed
            return self._columns(only.values, only.reasons, pa.array(in_headers.schema_ids or [None], pa.int64()))
        is_there = payloads.is_valid().to_numpy(zero_copy_only=False)[in_headers.rows[faulty]]
        # A null payload is NULL, regardless of its header.
        reasons = [in_headers.numbers[at] if there else Reason.NULL for at, there in zip(faulty, is_there, strict=True)]
        schema_ids = [in_headers.schema_ids[at] for at in (*named, *faulty)]
        together = self._columns(
            pa.concat_arrays([bodies.values, pa.nulls(len(faulty), self._decoder.type), framed.values]),
            pa.concat_arrays([bodies.reasons, pa.array(reasons, pa.uint8()), framed.reasons]),
            pa.concat_arrays([pa.array(schema_ids, pa.int64()), framed.schema_ids]),
        )
        places = np.concatenate([in_headers.rows[named], in_headers.rows[faulty], without])
        order = pa.array(np.argsort(places, kind="stable"))
        return Columns(together.values.take(order), together.reasons.take(order), together.schema_ids.take(order))

    def _columns(self, values: pa.Array, reasons: pa.Array, schema_ids: pa.Array) -> Columns:
        codes = np.frombuffer(reasons.buffers()[1], np.uint8)[reasons.offset : reasons.offset + len(reasons)]
        names = reason_names().take(reasons) if codes.any() else pa.nulls(len(reasons), pa.string())
        return Columns(to_spark(values, self.type), names, schema_ids)
