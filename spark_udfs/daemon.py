"""Spark's Python daemon with the decoder preloaded. Workers are forked from it and need not load the decoder.

    spark.python.daemon.module  headgate.spark_udfs.daemon

A fresh worker takes a second of CPU time to load Arrow and the compiled decoder. Spark starts one per core, and a new
one after every failed task. Otherwise this is PySpark's daemon. It starts no thread; the threads of the libraries
(OpenBLAS, jemalloc) are fork-safe. If the decoder is not compiled yet, the workers compile it.
"""

import importlib
import sys
from contextlib import suppress

# Other modules import these lazily. Here they are loaded before the fork, once for all workers.
import httpx  # noqa: F401
from pyarrow import lib as pa

import headgate.serdes.json_body
import headgate.serdes.protobuf.codec
from headgate.serdes.columnar import read_batches
from headgate.serdes.columnar.native.library import LIBRARY
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.executor.worker_memory import freeze_loaded_objects, keep_freed_buffers
from headgate.spark_udfs.spec.reader import Reader, SchemaText
from headgate.spark_udfs.spec.registry_options import RegistryOptions

# PySpark 3.5 has no data sources.
with suppress(ModuleNotFoundError):
    import headgate.spark_udfs.source.reading  # noqa: F401

_SMALLEST = SchemaText("AVRO", '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}')


def warm() -> None:
    """Decode one payload, so that all modules on the way are loaded."""
    decoding = Decoding(Reader(_SMALLEST, writers=((1, _SMALLEST),)), RegistryOptions())
    payloads = pa.array([b"\0\0\0\0\1\2", b""], pa.binary())
    with LIBRARY.paused():
        read_batches(b"", 0)
        decoding.outcome(decoding.decode(payloads), payloads)


def load_worker() -> None:
    """Import the worker module that Spark passes. PySpark's daemon imports it after each fork."""
    if len(sys.argv) > 1 and sys.argv[1].startswith("pyspark"):
        importlib.import_module(sys.argv[1])


if __name__ == "__main__":
    from pyspark.daemon import manager

    keep_freed_buffers()
    warm()
    load_worker()
    freeze_loaded_objects()
    manager()
