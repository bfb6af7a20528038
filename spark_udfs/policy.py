"""What to do about poison, and about a new version of the schema that appears while a stream runs.

The rules of evolution, in short: the reader's schema is chosen on the driver when the frame is made, and its fields are
the columns until the query ends. Payloads of every version, older or newer, are resolved into it as Avro says: a field
that the writer lacks takes its default, one that the reader lacks is stepped over, numbers are promoted, aliases of the
reader find renamed fields. What cannot be resolved is a row with the reason UNRESOLVABLE, never a wrong value. A newer
version's added fields are therefore not seen before a new reader is chosen; the policy says when that is.
"""

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

RESTART_SENTENCE = "The query ends so that it can start again with the new schema, as on_new_version='RESTART' asks"
"""In the text of `NewVersionError`, and known by it: Spark hands on the text of a failed task, not its exception."""

RESTARTS_MAX = 1000
"""Restarts of one query for new versions: more than any subject has versions in a query's life. A loop has an end."""


class PolicyError(ValueError):
    """A mode that there is not; the text names those that there are."""


class OnPoison(StrEnum):
    """What a row that cannot be decoded becomes."""

    DEAD_LETTER = "DEAD_LETTER"
    """Null, with the reason and the raw bytes beside it."""
    NULL = "NULL"
    """Null, with the reason."""
    FAIL = "FAIL"
    """The task fails, naming the reason, the schema id and the first bytes."""

    @classmethod
    def of(cls, text: str) -> "OnPoison":
        """In any case. Raises `PolicyError`."""
        if text.upper() not in cls.__members__:
            raise PolicyError(f"on_poison is one of {', '.join(cls)}, not {text!r}")
        return cls[text.upper()]


class OnNewVersion(StrEnum):
    """What happens once a payload arrives that was written with a newer version of the subject than any known when the
    reader was chosen. Versions of other subjects in the same topic are not meant."""

    KEEP = "KEEP"
    """It is read into the reader's schema, as the rules above say."""
    FAIL = "FAIL"
    """The task fails with advice, before the payload is decoded; the checkpoint has not moved past it."""
    RESTART = "RESTART"
    """The task fails likewise, and `run_restarting` starts the query again, which chooses the new reader; inside
    `foreachBatch`, `decode_each_batch` chooses it with the next micro-batch, and nothing fails."""

    @classmethod
    def of(cls, text: str) -> "OnNewVersion":
        """In any case. Raises `PolicyError`."""
        if text.upper() not in cls.__members__:
            raise PolicyError(f"on_new_version is one of {', '.join(cls)}, not {text!r}")
        return cls[text.upper()]


class NewVersionError(RuntimeError):
    """A payload of a newer version arrived, and the policy is not to go on."""

    def __init__(self, subject: str, known: int, version: int, writer: str, policy: OnNewVersion) -> None:
        super().__init__(subject, known, version, writer, policy)
        self.subject = subject
        self.known = known
        self.version = version
        self.writer = writer
        self.policy = policy

    def __str__(self) -> str:
        arrived = (
            f"version {self.version} of {self.subject} (schema {self.writer}) arrived; version {self.known} was the "
            "latest when the query began. Nothing was written past the last checkpoint. "
        )
        if self.policy is OnNewVersion.RESTART:
            return f"{arrived}{RESTART_SENTENCE}; run_restarting starts it."
        return (
            f"{arrived}Start the query again to read with the new schema, checking first that what follows can take "
            "its columns; on_new_version='RESTART' with run_restarting does so by itself, on_new_version='KEEP' reads "
            "on with the old schema."
        )


def is_new_version(error: BaseException) -> bool:
    """Whether a query ended for `OnNewVersion.RESTART`."""
    return RESTART_SENTENCE in str(error)


def run_restarting(start: "Callable[[], StreamingQuery]", *, restarts_max: int = RESTARTS_MAX) -> "StreamingQuery":
    """Run a query to its end, starting it again whenever a new version ended it. Returns the last query.

    `start` makes the frame anew, since that is what chooses the reader, and starts it with the same checkpoint, so that
    nothing is lost. Any other failure is raised as it is.
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
    raise RuntimeError(f"{restarts_max} restarts for new versions of a schema; something registers them in a loop")
