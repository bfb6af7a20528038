"""Selects the first bootstrap address that responds. Unresponsive addresses do not block the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

Address = TypeVar("Address")

# How long to wait for an address before trying the next one in parallel. `/health` waits 3 s in total.
next_address_seconds: Final = 0.5


async def first_responding(
    addresses: Sequence[Address],
    connect: Callable[[Address], Awaitable[None]],
    next_seconds: float = next_address_seconds,
) -> Address:
    """Returns the first address for which `connect` succeeds. Raises the last exception if all addresses fail.

    Starts the attempts one after the other, as in RFC 8305 (Happy Eyeballs). A failed attempt starts the next one at
    once.
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
