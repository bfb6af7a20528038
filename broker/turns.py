"""Long work in short turns, so that one request does not hold up everyone else.

A request may create ten thousand partitions or change the configs of as many topics, each on disk before the answer.
Its handler is a generator that yields wherever others may come between; what it returns is the answer.
"""

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING, TypeAlias

from broker.deferred import Deferred
from broker.protocol.entities import Answer
from broker.protocol.payload import Disconnect

if TYPE_CHECKING:
    from broker.broker import Broker

logger = logging.getLogger("headgate.broker.turns")

# Long enough that the work of ordinary requests is done in one turn, short enough that nobody notices the wait.
turn_ms_max = 50

Work: TypeAlias = Generator[None, None, Answer]


def in_turns(broker: "Broker", work: Work) -> Answer | Deferred[Answer | Disconnect]:
    """The answer when the first turn is enough, else the promise of it."""
    answer = _turn(broker, work)
    if answer is not None:
        return answer
    promise: Deferred[Answer | Disconnect] = Deferred()

    def go_on() -> None:
        try:
            later = _turn(broker, work)
        except Exception:
            logger.exception("a request failed after its first turn")
            promise.complete(Disconnect("the request failed; see the traceback above"))
            return
        if later is None:
            broker.timers.after(0, go_on)
        else:
            promise.complete(later)

    broker.timers.after(0, go_on)
    return promise


def _turn(broker: "Broker", work: Work) -> Answer | None:
    """Go on with the work until it is done or the turn is over."""
    until_ms = broker.clock.monotonic_ms() + turn_ms_max
    while True:
        try:
            next(work)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        if broker.clock.monotonic_ms() >= until_ms:
            return None
