"""Avro payloads to Spark's columns through `serdes.columnar`: no Python per row."""

import numpy as np
from pyarrow import lib as pa

from headgate.serdes import Poison, Reason
from headgate.serdes.avro import Schema, parse
from headgate.serdes.columnar import ColumnarDecoder, Spans, project
from headgate.spark_udfs.executor.decoding import Columns, Decoding, reason_names
from headgate.spark_udfs.executor.row_reading import Headers, RowReading
from headgate.spark_udfs.executor.schema_id_headers import HeaderSchemas, header_schemas
from headgate.spark_udfs.executor.spark_types import spark_arrow_type, to_spark
from headgate.spark_udfs.executor.writer_schemas import Writers
from headgate.spark_udfs.spec.reader import Reader


def reader_schema(reader: Reader) -> Schema:
    """The Avro schema of the columns. Raises `InvalidSchema` or `UnknownField`."""
    schema = parse(reader.schema.text, dict(reader.schema.references))
    return schema if reader.fields is None else project(schema, reader.fields)


class AvroColumns:
    def __init__(self, spec: Decoding) -> None:
        schema = reader_schema(spec.reader)
        self._writers = Writers(spec.reader, spec.registry, spec.on_new_version)
        self._decoder = ColumnarDecoder(schema, self._writers, recursion_max=spec.recursion_max)
        self._rows = RowReading(spec.reader, self._writers, schema)
        self.type = spark_arrow_type(self._decoder.type)

    def explain(self, payload: bytes | None, headers: Headers) -> str:
        outcome = self._rows.read(payload, headers)
        # The columns have bounds that a row by itself does not have; then there is nothing to quote.
        return outcome.detail if isinstance(outcome, Poison) else ""

    def decode(self, payloads: pa.Array | Spans, headers: pa.Array | None = None) -> Columns:
        form = None if headers is None else header_schemas(headers, self._writers)
        if form is None:
            batch = self._decoder.decode(payloads)
            return self._columns(batch.values, batch.reasons, batch.schema_ids)
        return self._mixed(payloads, form)

    def _mixed(self, payloads: pa.Array, form: HeaderSchemas) -> Columns:
        """Rows that name a schema in a header, rows whose header is bad, and rows without: each its own way."""
        named = [at for at, number in enumerate(form.numbers) if not isinstance(number, Reason)]
        faulty = [at for at, number in enumerate(form.numbers) if isinstance(number, Reason)]
        without = np.setdiff1d(np.arange(len(payloads)), form.rows)
        bodies = self._decoder.decode_bodies(
            payloads.take(pa.array(form.rows[named])), pa.array([form.numbers[at] for at in named], pa.int64())
        )
        framed = self._decoder.decode(payloads.take(pa.array(without)))
        is_there = payloads.is_valid().to_numpy(zero_copy_only=False)[form.rows[faulty]]
        # That there is no payload at all comes before what its header says.
        reasons = [form.numbers[at] if there else Reason.NULL for at, there in zip(faulty, is_there, strict=True)]
        schema_ids = [form.schema_ids[at] for at in (*named, *faulty)]
        together = self._columns(
            pa.concat_arrays([bodies.values, pa.nulls(len(faulty), self._decoder.type), framed.values]),
            pa.concat_arrays([bodies.reasons, pa.array(reasons, pa.uint8()), framed.reasons]),
            pa.concat_arrays([pa.array(schema_ids, pa.int64()), framed.schema_ids]),
        )
        places = np.concatenate([form.rows[named], form.rows[faulty], without])
        order = pa.array(np.argsort(places, kind="stable"))
        return Columns(together.values.take(order), together.reasons.take(order), together.schema_ids.take(order))

    def _columns(self, values: pa.Array, reasons: pa.Array, schema_ids: pa.Array) -> Columns:
        codes = reasons.to_numpy(zero_copy_only=False)
        names = reason_names().take(reasons) if codes.any() else pa.nulls(len(reasons), pa.string())
        return Columns(to_spark(values, self.type), names, schema_ids)
