"""Policies for poison payloads, new schema versions that appear while a stream runs, and registry outages.

Schema evolution in short:

- The driver chooses the reader schema when it creates the DataFrame. Its fields are the columns until the query ends.
- Payloads of every version, older or newer, are resolved into the reader schema by Avro's resolution rules.
- A payload that cannot be resolved becomes a row with the reason UNRESOLVABLE, never a wrong value.
- Fields that a newer version adds are therefore missing until a new reader schema is chosen. `OnNewVersion` says when.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

Mode = TypeVar("Mode", bound=StrEnum)

RESTART_SENTENCE = "The query ends so that it can restart with the new schema, as on_new_version='RESTART' requests"
"""Part of the text of `NewVersionError`. Spark reports the text of a failed task, not its exception class."""


class PolicyError(ValueError):
    """Unknown mode. The message lists the allowed modes."""


class OnPoison(StrEnum):
    """The result of a row that cannot be decoded."""

    DEAD_LETTER = "DEAD_LETTER"
    """A null value with the reason and the raw bytes. In a pipeline: a row in the dead letters."""
    NULL = "NULL"
    """A null value with the reason. Columns only."""
    DROP = "DROP"
    """No row. Pipelines only; the metrics count it."""
    FAIL = "FAIL"
    """The task fails. The error contains the reason, the schema id and the first bytes."""

    @classmethod
    def for_columns(cls, text: str) -> "OnPoison":
        """Parse a mode of the column functions; upper and lower case are equal. Raises `PolicyError`."""
        return _parse("on_poison", text, (cls.DEAD_LETTER, cls.NULL, cls.FAIL))


class OnNewVersion(StrEnum):
    """The reaction to a payload of a newer version of the subject than any known when the reader was chosen.

    Versions of other subjects in the same topic do not count.
    """

    KEEP = "KEEP"
    """Resolve the payload into the reader schema."""
    FAIL = "FAIL"
    """Fail the task before the payload is decoded. The checkpoint does not move past it."""
    RESTART = "RESTART"
    """Fail the task likewise; `run_restarting` starts the query again, which chooses the new reader schema. Inside
    `foreachBatch`, `decode_each_batch` chooses it for the next micro-batch, and nothing fails."""

    @classmethod
    def of(cls, text: str) -> "OnNewVersion":
        """Parse a mode; upper and lower case are equal. Raises `PolicyError`."""
        return _parse("on_new_version", text, cls)


class OnRegistryDown(StrEnum):
    """The reaction to a payload with an unknown schema id while the registry does not respond."""

    WAIT = "WAIT"
    """Wait for the registry, with backoff, up to `registry.wait.ms`. Then continue as DEAD_LETTER."""
    FAIL = "FAIL"
    """Fail the task. The checkpoint does not move past the payload."""
    DEAD_LETTER = "DEAD_LETTER"
    """The payload is poison with the reason REGISTRY_UNAVAILABLE."""

    @classmethod
    def of(cls, text: str) -> "OnRegistryDown":
        """Parse a mode; upper and lower case are equal. Raises `PolicyError`."""
        return _parse("on_registry_down", text, cls)


class RegistryDownError(RuntimeError):
    """The registry did not return a schema, and the policy is FAIL."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return (
            f"The schema registry did not return a schema: {self.error}. Nothing was written past the last checkpoint. "
            "Restart the query when the registry is available. on_registry_down='WAIT' waits for it instead; "
            "on_registry_down='DEAD_LETTER' continues and makes the payloads dead letters."
        )


class NewVersionError(RuntimeError):
    """A payload of a newer version arrived, and the policy is FAIL or RESTART."""

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
            "latest when the query started. Nothing was written past the last checkpoint. "
        )
        if self.policy is OnNewVersion.RESTART:
            return f"{arrived}{RESTART_SENTENCE}; run_restarting restarts it."
        return (
            f"{arrived}Check that the sinks accept the new columns, then restart the query to read with the new "
            "schema. on_new_version='RESTART' with run_restarting restarts automatically; on_new_version='KEEP' "
            "continues with the old schema."
        )


def _parse(option: str, text: str, allowed: Iterable[Mode]) -> Mode:
    modes = {str(mode): mode for mode in allowed}
    if text.upper() not in modes:
        raise PolicyError(f"{option} must be one of {', '.join(modes)}, not {text!r}")
    return modes[text.upper()]
