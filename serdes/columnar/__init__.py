"""Columnar decoding: batches of framed Avro to Arrow columns and back, and Kafka record batches to Arrow columns.

Requires the `spark` extra (pyarrow and numpy; Numba is optional and makes it faster). `serdes` does not import it.
"""

from headgate.serdes.columnar.decode.decoder import Batch, ColumnarDecoder
from headgate.serdes.columnar.decode.projection import project
from headgate.serdes.columnar.decode.schema_source import FixedSchemas, SchemaSource
from headgate.serdes.columnar.encode.encoder import ColumnarEncoder, Encoded
from headgate.serdes.columnar.engine import Adaptive, Compiled, Engine, Plain, default_engine
from headgate.serdes.columnar.errors import (
    BatchTooLarge,
    ColumnarError,
    NotBinary,
    NotEncodable,
    SchemaTooLarge,
    UnknownField,
)
from headgate.serdes.columnar.records.batches import BatchFault, Records, Scanned, read_batches, scan_batches
from headgate.serdes.columnar.records.record_rows import RecordRows
from headgate.serdes.columnar.spans import Spans
from headgate.wire.transactions import AbortedTransaction

__all__ = [
    "AbortedTransaction",
    "Adaptive",
    "Batch",
    "BatchFault",
    "BatchTooLarge",
    "ColumnarDecoder",
    "ColumnarEncoder",
    "ColumnarError",
    "Compiled",
    "Encoded",
    "Engine",
    "FixedSchemas",
    "NotBinary",
    "NotEncodable",
    "Plain",
    "RecordRows",
    "Records",
    "Scanned",
    "SchemaSource",
    "SchemaTooLarge",
    "Spans",
    "UnknownField",
    "default_engine",
    "project",
    "read_batches",
    "scan_batches",
]
