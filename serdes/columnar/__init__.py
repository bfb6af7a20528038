"""A batch of framed Avro to Arrow columns and back, and Kafka's record batches to Arrow columns.

Needs the `spark` extra (pyarrow and numpy; Numba for speed, not for the results): `serdes` itself does not import it.
"""

from headgate.serdes.columnar.decode.decoder import Batch, ColumnarDecoder
from headgate.serdes.columnar.decode.projection import project
from headgate.serdes.columnar.decode.schema_source import FixedSchemas, SchemaSource
from headgate.serdes.columnar.encode.encoder import ColumnarEncoder, Encoded
from headgate.serdes.columnar.engine import Compiled, Engine, Plain, default_engine
from headgate.serdes.columnar.errors import (
    BatchTooLarge,
    ColumnarError,
    NotBinary,
    NotEncodable,
    SchemaTooLarge,
    UnknownField,
)
from headgate.serdes.columnar.records.batches import (
    AbortedTransaction,
    BatchFault,
    Records,
    Scanned,
    read_batches,
    scan_batches,
)
from headgate.serdes.columnar.records.record_rows import RecordRows
from headgate.serdes.columnar.spans import Spans

__all__ = [
    "AbortedTransaction",
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
