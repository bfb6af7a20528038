"""Chooses the bootstrap address to connect to: the first that responds, however many of the others are silent."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

Address = TypeVar("Address")

# How long an address may take before the next one is tried in parallel. `/health` waits 3 s in all.
next_address_seconds: Final = 0.5


async def first_responding(
    addresses: Sequence[Address],
    connect: Callable[[Address], Awaitable[None]],
    next_seconds: float = next_address_seconds,
) -> Address:
    """The first address for which `connect` returns. Raises the last exception if it raises for all of them.

    A staggered race, as in RFC 8305 (Happy Eyeballs). A failed address starts the next attempt at once.
    """
    attempts: dict[asyncio.Future[None], Address] = {}
    waiting = list(addresses)
    failure: BaseException = ValueError("no addresses")
    try:
        while waiting or attempts:
            if waiting:
                address = waiting.pop(0)
                attempts[asyncio.ensure_future(connect(address))] = address
            timeout = next_seconds if waiting else None
            done, _ = await asyncio.wait(attempts, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for attempt in done:
                address = attempts.pop(attempt)
                error = attempt.exception()
                if error is None:
                    return address
                failure = error
    finally:
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
    raise failure
