"""Function sink: calls a Python function for each batch.

`module:function` is imported from the folder of the pipeline file or from Python's path. The driver calls it with the
DataFrame of the batch and its `BatchId`. The `name` of the id is stable when a batch is repeated: a function that
stores it in the same transaction as the rows is exactly once.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from headgate.spark_udfs.pipeline.errors import PipelineError, did_you_mean, shown
from headgate.spark_udfs.pipeline.sinks.sink import Sink, SinkContext
from headgate.spark_udfs.pipeline.sinks.writer import AT_LEAST_ONCE, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId
    from headgate.spark_udfs.pipeline.checks.table_reader import TableReader

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True, slots=True)
class FunctionSink(Sink):
    function: str
    """`module:function`."""

    requires_distinct_columns: ClassVar[bool] = False

    @classmethod
    def from_table(cls, table: "TableReader", name: str, input_: str) -> "FunctionSink":
        function = table.required("function", "module:function")
        if function and _FUNCTION.fullmatch(function) is None:
            table.wrong("function", f"expected module:function, not {shown(function)}")
        return cls(name, input_, function)

    def describe(self) -> tuple[str, str]:
        return f"Python {self.function}", f"{AT_LEAST_ONCE}; the function can detect a repeated batch"

    def open(self, context: SinkContext) -> "FunctionWriter":
        return FunctionWriter(find_function(self, context.pipeline.folder))


class FunctionWriter:
    def __init__(self, function: "Callable[[DataFrame, BatchId], object]") -> None:
        self._function = function

    def check(self, schema: "StructType") -> None:
        """The function accepts any columns."""

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        # The function may read the rows twice or not at all, so they are counted separately.
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
            raise PipelineError(f"{where}: cannot import {module_name}", why=str(error)) from error
        raise PipelineError(
            f"{where}: there is no module {module_name}",
            advice=f"put it next to the pipeline file in {folder}, or on PYTHONPATH",
        ) from error
    except Exception as error:
        raise PipelineError(f"{where}: cannot import {module_name}", why=f"{type(error).__name__}: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            hint = did_you_mean(part, [each for each in dir(found) if callable(getattr(found, each))])
            raise PipelineError(f"{where}: {module_name} has no {part}{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise PipelineError(f"{where} is not a function")
    return found  # type: ignore[no-any-return]  # a user module has no types
