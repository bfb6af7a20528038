"""Memory limit for request bodies of all requests together."""

from typing import Final

from headgate.proxy.api.request_headers import RequestHeaders
from headgate.proxy.errors import BodyTooLarge, TooManyRequests

SMALL_BODY_BYTES_MAX: Final = 64 * 1024
"""Bodies up to this size are always accepted. The number of connections limits their total."""


class BodyMemory:
    def __init__(self, body_bytes_max: int, total_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._total_bytes_max = total_bytes_max
        self._reserved_bytes = 0

    def reserve(self, headers: RequestHeaders) -> int:
        """Reserves the Content-Length, or the largest body if the length is unknown. The caller must release it.

        Raises BodyTooLarge, TooManyRequests.
        """
        wanted = self._body_bytes_max
        if headers.content_length and len(headers.content_length) < 20 and not headers.content_encoding:
            wanted = int(headers.content_length)
        if wanted > self._body_bytes_max:
            raise BodyTooLarge(f"The request body has {wanted} bytes. The limit is {self._body_bytes_max} bytes.")
        if wanted > SMALL_BODY_BYTES_MAX and self._reserved_bytes + wanted > self._total_bytes_max:
            raise TooManyRequests("Too many large requests at the same time. Retry in a second.")
        self._reserved_bytes += wanted
        return wanted

    def release(self, reserved: int) -> None:
        self._reserved_bytes -= reserved
