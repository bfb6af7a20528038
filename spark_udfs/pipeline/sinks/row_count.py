"""Counts rows while they are written, instead of reading them once more."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def counted(rows: "DataFrame") -> "tuple[DataFrame, Callable[[], int]]":
    """The same rows, and their number once an action has gone over them."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation = Observation()
    observed = rows.observe(observation, count(lit(1)).alias("rows"))
    return observed, lambda: int(observation.get["rows"] or 0)
