"""The error of one part of a request, for example of one topic or partition. The other parts are executed."""

from collections.abc import Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class RecordError:
    """An invalid record, by its position in the batch (KIP-467)."""

    batch_index: int
    message: str


class Refusal(Exception):
    """The error code and the message for the client. `broker.node.error_codes` maps other exceptions to it."""

    def __init__(self, code: ErrorCode, message: str | None = None, record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.record_errors = record_errors

    def without_traceback(self) -> "Refusal":
        """Return a copy without traceback. The traceback would keep the decompressed records in memory."""
        return Refusal(self.code, self.message, self.record_errors)
