"""Decode inside `foreachBatch`: each micro-batch is read once and split into good rows and dead letters.

A new schema version needs no restart here: with RESTART, each micro-batch chooses the reader schema again, and the
handler gets the new columns.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from headgate.serdes import SchemaDefinition
from headgate.spark_udfs.extra import need_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from headgate.spark_udfs.driver.planning import Registry, Subjects


def decode_each_batch(
    handle: "Callable[[DataFrame, DataFrame, int], None]",
    subject: "Subjects",
    *,
    column: str = "value",
    registry: "Registry" = None,
    fields: Sequence[str] | None = None,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    on_new_version: str = "KEEP",
    on_registry_down: str = "WAIT",
) -> "Callable[[DataFrame, int], None]":
    """A function for `writeStream.foreachBatch(…)` that calls `handle(good, poison, batch_id)` for each micro-batch.

    The decoded rows are cached while `handle` runs, so they are decoded once. With RESTART, the reader schema stays
    unchanged while the registry does not respond.
    """
    need_spark()
    from headgate.spark_udfs.driver.planning import choice_of, plan_decoding, with_reader
    from headgate.spark_udfs.driver.reader_choice import RegistryNotReady
    from headgate.spark_udfs.frame import apply_decoding, part
    from headgate.spark_udfs.spec.policy import OnNewVersion

    choice = choice_of(subject, version, schema_id, schema, fields)
    policy = OnNewVersion.of(on_new_version)
    # The reader schema is refreshed before each batch, so executors need not check for new versions.
    executor_policy = OnNewVersion.KEEP if policy is OnNewVersion.RESTART else policy
    decoding = plan_decoding(
        choice, registry, column=column, on_new_version=executor_policy, on_registry_down=on_registry_down
    )

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
