"""Rate limit per client address: one token bucket for requests and one for bytes."""

import time
from collections import OrderedDict
from math import ceil
from typing import Final

from headgate.proxy.errors import TooManyRequests
from headgate.proxy.settings import ProxySettings
from headgate.web.asgi import Receive, Scope

CLIENTS_MAX: Final = 10_000
"""Clients with a bucket. The least recently active one is evicted: its bucket is full anyway."""


class _Bucket:
    __slots__ = ("at", "bytes", "requests")

    def __init__(self, at: float, requests: float, size: float) -> None:
        self.at = at
        self.requests = requests
        self.bytes = size


class RateLimit:
    """Disabled unless a limit is set."""

    def __init__(self, settings: ProxySettings) -> None:
        self._requests = settings.rate_limit_requests_per_second
        self._bytes = settings.rate_limit_bytes_per_second
        self._burst = max(settings.rate_limit_burst_seconds, 1)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self.is_on = bool(self._requests or self._bytes)

    def take(self, client: str, requests: int = 1, size: int = 0) -> None:
        """Raises TooManyRequests."""
        now = time.monotonic()
        bucket = self._buckets.get(client)
        if bucket is None:
            bucket = self._buckets[client] = _Bucket(now, self._requests * self._burst, self._bytes * self._burst)
            if len(self._buckets) > CLIENTS_MAX:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(client)
        passed = now - bucket.at
        bucket.at = now
        bucket.requests = min(bucket.requests + passed * self._requests, self._requests * self._burst)
        bucket.bytes = min(bucket.bytes + passed * self._bytes, self._bytes * self._burst)
        if self._requests and bucket.requests < requests:
            raise self._refused((requests - bucket.requests) / self._requests)
        # The size of a body is known only after it was read, so the bucket may become negative once.
        if self._bytes and bucket.bytes <= 0:
            raise self._refused(-bucket.bytes / self._bytes)
        bucket.requests -= requests
        bucket.bytes -= size

    def counting(self, receive: Receive, client: str) -> Receive:
        """`receive` that takes the body's bytes from the bucket. It never interrupts a body."""

        async def counted() -> object:
            message = await receive()
            bucket = self._buckets.get(client)
            if bucket is not None:
                bucket.bytes -= len(message.get("body", b""))
            return message

        return counted  # type: ignore[return-value]  # the messages pass through

    @staticmethod
    def _refused(seconds: float) -> TooManyRequests:
        wait = max(1, ceil(seconds))
        return TooManyRequests(f"Too many requests from this client. Retry in {wait} s.", wait)


def client_of(scope: Scope) -> str:
    """The address of the peer. Behind a reverse proxy all clients have its address, so limit rates there."""
    client = scope.get("client")
    return str(client[0]) if client else ""
