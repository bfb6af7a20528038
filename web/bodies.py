"""Request bodies that stop arriving."""

import asyncio
from collections.abc import Callable

from headgate.web.asgi import Message, Receive


def timed(receive: Receive, silence_seconds: float, timed_out: Callable[[], Exception]) -> Receive:
    """`receive` that raises `timed_out()` if no part of the body arrives for `silence_seconds`.

    After the end of the body it waits without a limit: for the client to disconnect.
    """
    is_complete = False

    async def received() -> Message:
        nonlocal is_complete
        if is_complete:
            return await receive()
        try:
            async with asyncio.timeout(silence_seconds):
                message = await receive()
        except TimeoutError:
            raise timed_out() from None
        is_complete = not message.get("more_body", False)
        return message

    return received
