"""Decoding inside `foreachBatch`: each micro-batch parted into good rows and dead letters, read once.

Here a new version of the schema needs no restart: with RESTART the reader is chosen anew for every micro-batch, and the
function that gets the rows sees the new columns from the next one on.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.extra import need_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.spark_udfs.driver.planning import Registry


def decode_each_batch(
    handle: "Callable[[DataFrame, DataFrame, int], None]",
    subject: str,
    *,
    column: str = "value",
    registry: "Registry" = None,
    fields: Sequence[str] | None = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    on_new_version: str = "KEEP",
) -> "Callable[[DataFrame, int], None]":
    """For `writeStream.foreachBatch(…)`: calls `handle(good, poison, batch_id)` for each micro-batch.

    The decoded rows are kept in Spark's cache while `handle` runs, so that good rows and dead letters cost one
    decoding. With RESTART and a registry that does not answer, the reader stays what it was.
    """
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding, with_reader
    from headgate.spark_udfs.driver.reader_choice import RegistryNotReady
    from headgate.spark_udfs.frame import apply_decoding, part
    from headgate.spark_udfs.spec.policy import OnNewVersion

    choice = choice_of(subject, version, schema_id, schema, fields)
    policy = OnNewVersion.of(on_new_version)
    # The executors need not watch for what is looked up here before each batch.
    watched = OnNewVersion.KEEP if policy is OnNewVersion.RESTART else policy
    decoding = plan_decoding(choice, registry, column=column, on_new_version=watched)

    def each(batch: "DataFrame", batch_id: int) -> None:
        nonlocal decoding
        if policy is OnNewVersion.RESTART:
            with suppress(RegistryNotReady):
                decoding = with_reader(decoding, choice)
        decoded = apply_decoding(batch, decoding, column=column, details=True).persist()
        try:
            handle(*part(decoded), batch_id)
        finally:
            decoded.unpersist()

    return each
