"""Spark's Python daemon with the decoder loaded: workers are forked from it ready, instead of loading it each.

    spark.python.daemon.module  headgate.spark_udfs.daemon

A fresh worker takes seconds of processor time to load Arrow, Numba and the compiled decoder; Spark starts one for every
core, and a new one after every task that failed. All the daemon does otherwise is PySpark's own. It makes no
thread; those of the libraries (OpenBLAS, jemalloc) are prepared for a fork.
"""

import importlib
import sys

# Other modules load these when they first need them; here they are loaded before the fork, once for all workers.
import httpx  # noqa: F401
from pyarrow import lib as pa

import headgate.serdes.json_body
import headgate.serdes.protobuf.codec
import headgate.spark_udfs.source.reading  # noqa: F401
from headgate.serdes.columnar import read_batches
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.executor.worker_memory import freeze_loaded_objects, keep_freed_buffers
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions

_SMALLEST = SchemaText("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}')


def warm() -> None:
    """Read no record and decode one payload, so that everything on the way is loaded."""
    read_batches(b"", 0)
    decoding = Decoding(Reader(_SMALLEST, writers=((1, _SMALLEST),)), RegistryOptions())
    payloads = pa.array([b"\0\0\0\0\1\2", b""], pa.binary())
    decoding.outcome(decoding.decode(payloads), payloads)


def load_worker() -> None:
    """What Spark names as the worker's module, as PySpark's daemon does after each fork."""
    if len(sys.argv) > 1 and sys.argv[1].startswith("pyspark"):
        importlib.import_module(sys.argv[1])


if __name__ == "__main__":
    from pyspark.daemon import manager

    keep_freed_buffers()
    warm()
    load_worker()
    freeze_loaded_objects()
    manager()
