"""The interface of a writer: it writes the micro-batches of one sink."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

EXACTLY_ONCE = "exactly once"
AT_LEAST_ONCE = "at least once"

REFUSED_ROWS_MAX = 100_000
"""Rows of one batch that a sink may refuse, because they pass through the driver. More of them fail the batch."""


@dataclass(frozen=True, slots=True)
class Written:
    """The result of one batch."""

    rows: int
    refused: int = 0
    """Rows that the sink cannot write. They are dead letters, or dropped."""
    repeated: bool = False
    """An earlier attempt has written the batch, so nothing was written."""


class RefusedRows(Protocol):
    """Handles rows that a sink cannot write, each as JSON with the reason. Called before the batch is committed."""

    def __call__(self, rows: "list[tuple[str, str]]", batch: "BatchId") -> None: ...


class Writer(Protocol):
    def check(self, schema: "StructType") -> None:
        """Check before the pipeline starts that rows of these columns can be written. Raises `PipelineError`."""
        ...

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        """Write a batch. After an exception, the next start repeats the batch."""
        ...
