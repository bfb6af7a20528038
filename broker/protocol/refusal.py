"""A part of a request that is refused: the error code and the text for the client. The other parts go on."""

from kio.schema.errors import ErrorCode


class Refusal(Exception):
    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
