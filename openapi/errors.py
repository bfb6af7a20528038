"""The body of every error that our HTTP APIs answer: a code that programs read and a sentence for people."""

import orjson


def error_body(code: int, message: str) -> bytes:
    """`code` is the HTTP status, or the status and two digits that tell faults of one status apart."""
    return orjson.dumps({"error_code": code, "message": message}, default=str)
