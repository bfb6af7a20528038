"""Your own Python function per batch: `module:function`, found beside the pipeline's file or on Python's path.

It is called on the driver with the batch's DataFrame and its `BatchId`, whose `name` is the same when a batch is done
again: a function that keeps it in the transaction of its own writes is exactly once.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headgate.spark_udfs.pipeline.errors import PipelineError, did_you_mean
from headgate.spark_udfs.pipeline.model import FunctionSink
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId


class FunctionWriter:
    guarantee = AT_LEAST_ONCE

    def __init__(self, sink: FunctionSink, folder: str) -> None:
        self._sink = sink
        self._function = find_function(sink, folder)

    def check(self, schema: "StructType") -> None:
        """It takes any columns."""

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        # A function may read the rows twice, or none of them: the count is of a pass of our own.
        kept = rows.persist()
        try:
            count = kept.count()
            if count:
                self._function(kept, batch)
        finally:
            kept.unpersist()
        return Written(count)


def find_function(sink: FunctionSink, folder: str) -> Callable[[Any, Any], object]:
    """Raises `PipelineError`."""
    module_name, _, name = sink.function.partition(":")
    where = f"sink {sink.name}: function {sink.function}"
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise PipelineError(f"{where}: {module_name} cannot be imported", why=str(error)) from error
        raise PipelineError(
            f"{where}: there is no module {module_name}",
            advice=f"put it beside the pipeline's file in {folder}, or on PYTHONPATH",
        ) from error
    except Exception as error:
        raise PipelineError(
            f"{where}: {module_name} cannot be imported", why=f"{type(error).__name__}: {error}"
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, [each for each in dir(found) if callable(getattr(found, each))])
            raise PipelineError(f"{where}: {module_name} has no {part}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise PipelineError(f"{where} is not a function")
    return found  # type: ignore[no-any-return]  # what a user's module holds has no type here
