"""Count rows while they are written, without a second pass."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def observe_count(rows: "DataFrame") -> "tuple[DataFrame, Callable[[], int]]":
    """The same rows, and a function that returns their number after an action."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation = Observation()
    observed = rows.observe(observation, count(lit(1)).alias("rows"))
    return observed, lambda: int(observation.get["rows"] or 0)
