"""What every sink is to the queries that feed it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from headgate.spark_udfs.pipeline.checkpoints import BatchId

EXACTLY_ONCE = "exactly once"
AT_LEAST_ONCE = "at least once"

REFUSED_AT_ONCE_MAX = 100_000
"""Rows of one batch that a sink may refuse: they pass through the driver. A sink that refuses more is the wrong one."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a batch."""

    rows: int
    refused: int = 0
    """Rows that the sink cannot hold, which are with the dead letters or dropped."""
    repeated: bool = False
    """It had been written before, so nothing was done."""


class RefusedRows(Protocol):
    """Takes rows that a sink cannot hold, each as JSON with the reason. Called before the batch is committed."""

    def __call__(self, rows: "list[tuple[str, str]]", batch: "BatchId") -> None: ...


class Writer(Protocol):
    guarantee: str
    """What a batch that is done again leaves behind: EXACTLY_ONCE or AT_LEAST_ONCE."""

    def check(self, schema: "StructType") -> None:
        """Before anything starts: can it work, with these columns? Raises `PipelineError`."""
        ...

    def write(self, rows: "DataFrame", batch: "BatchId") -> Written:
        """Raises `PipelineError` or what Spark raises; the batch is done again at the next start."""
        ...
