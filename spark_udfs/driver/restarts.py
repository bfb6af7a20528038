"""Restart a streaming query when a new schema version ends it (`OnNewVersion.RESTART`)."""

from typing import TYPE_CHECKING

from headgate.spark_udfs.spec.policy import RESTART_SENTENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

RESTARTS_MAX = 1000
"""Restarts of one query: more than any subject gets versions during a query. It ends an endless loop."""


def is_new_version(error: BaseException) -> bool:
    """Whether a query ended because of `OnNewVersion.RESTART`."""
    return RESTART_SENTENCE in str(error)


def run_restarting(start: "Callable[[], StreamingQuery]", *, restarts_max: int = RESTARTS_MAX) -> "StreamingQuery":
    """Run a query until it ends, and restart it whenever a new version ended it. Returns the last query.

    `start` must create the DataFrame again, because that chooses the reader schema, and must use the same checkpoint,
    so that no record is lost. Any other failure is raised unchanged.
    """
    for _ in range(restarts_max):
        query = start()
        try:
            query.awaitTermination()
        except Exception as error:
            if not is_new_version(error):
                raise
        else:
            return query
    raise RuntimeError(f"{restarts_max} restarts for new schema versions; a producer seems to register them in a loop")
