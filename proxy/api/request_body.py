"""Request bodies: read with limits, and parsed as JSON without loss of digits."""

import json
from typing import Any, Final, NoReturn

import orjson

from headgate.proxy.errors import BadRequest, BodyTimedOut, BodyTooLarge
from headgate.proxy.formats import ExactFloat
from headgate.web import request_body
from headgate.web.asgi import Receive

# A number of up to 15 digits is the same after it has been a double; a longer one, or a large exponent, may not be.
_LONG_NUMBERS: Final = (b"0" * 16, b"0e000", b"0e-000")
# Digits and the point, exponents and signs each look alike after it: three plain searches, ten times as fast as a
# pattern.
_ALIKE: Final = bytes(
    ord("0") if chr(byte) in "0123456789." else ord("e") if chr(byte) in "eE" else ord("-") if chr(byte) in "+-" else 32
    for byte in range(256)
)
# Python's own limit against quadratic conversion is 4300 digits.
_DIGITS_MAX: Final = 4000


async def read_body(receive: Receive, bytes_max: int, idle_seconds_max: float) -> bytes:
    """Raises BodyTooLarge, BodyTimedOut, and BadRequest if the client disconnects."""
    try:
        return await request_body.read_body(receive, bytes_max, idle_seconds_max)
    except request_body.BodyTooLarge:
        raise BodyTooLarge(f"The request body is larger than the limit of {bytes_max} bytes.") from None
    except request_body.BodyTimedOut:
        raise BodyTimedOut(f"The rest of the body did not arrive within {idle_seconds_max:g} seconds.") from None
    except request_body.ClientDisconnected:
        raise BadRequest("The client closed the connection before the end of the request body.") from None


def may_lose_digits(text: bytes) -> bool:
    """Whether a number in it is too long for 64 bits, or something looks like one."""
    alike = text.translate(_ALIKE)
    return any(number in alike for number in _LONG_NUMBERS)


def parse_json(body: bytes) -> Any:
    """orjson stops at a depth of 1024 by itself, and refuses what is not JSON with line and column.

    Where a number is too long for its 64 bits, Python's own parser reads the text. Raises BadRequest.
    """
    try:
        if not may_lose_digits(body):
            return orjson.loads(body)
        return _parse_exactly(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON: {error}") from error


def _parse_exactly(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_int=_whole, parse_float=ExactFloat, parse_constant=_no_constant)
    except RecursionError:
        raise BadRequest("The body is not JSON: nested too deeply.") from None
    except ValueError as error:
        raise BadRequest(f"The body is not JSON: {error}") from error


def _whole(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
