"""The function of `orders.toml`. Spark calls it with the rows and the id of each batch. A retry has the same id."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.spark_udfs.pipeline.checkpoints import BatchId


def announce(rows: "DataFrame", batch: "BatchId") -> None:
    """Writes one file per batch. A retry replaces the file, so no message is duplicated."""
    folder = Path(os.environ.get("OUT", "out"), "mail")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{row.full_name} has ordered for {row.amount}\n" for row in rows.toLocalIterator()]
    (folder / f"{batch.name}.txt").write_text("".join(lines), encoding="utf-8")
