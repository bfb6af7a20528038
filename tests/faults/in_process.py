"""Runs the broker without sockets in the test process, so that tests can inject disk faults."""

import contextlib
import queue
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from headgate.broker.engine import Engine, Reply
from headgate.broker.log.region import Region
from headgate.broker.node.opening import open_broker
from headgate.broker.requests.payload import Payload
from headgate.broker.runtime.deferred import Deferred
from headgate.broker.state.settings import BrokerSettings
from tests.wire.entities import (
    API_KEYS,
    Plain,
    decode_response,
    encode_request,
    request_is_flexible,
    response_is_flexible,
)
from tests.wire.raw_client import request_header

ANSWER_SECONDS_MAX = 10.0
TIMERS_SECONDS = 0.001


class Asker(Protocol):
    """Answers requests: an `InProcessBroker`, or a connection to a live broker."""

    def ask(self, api: str, version: int, body: Plain) -> Plain: ...


class InProcessBroker:
    def __init__(self, data: Path, settings: dict[str, str] | None = None) -> None:
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._data = data
        self._settings = BrokerSettings(settings or {})
        self._crashed = False

    def ask(self, api: str, version: int, body: Plain) -> Plain:
        pending = self.begin(api, version, body)
        self.run_until(lambda: pending.is_done, f"{api} was not answered")
        return pending.answer()

    def begin(self, api: str, version: int, body: Plain) -> "Pending":
        """Send a request whose response may be delayed."""
        header = request_header(API_KEYS[api], version, 7, flexible=request_is_flexible(api, version))
        reply = self._engine.execute(memoryview(header + encode_request(api, version, body)), "127.0.0.1", 1)
        pending = Pending(api, version)
        if isinstance(reply, Deferred):
            reply.then(pending.replies.append)
        else:
            pending.replies.append(reply)
        return pending

    def run_until(self, condition: Callable[[], bool], failure: str) -> None:
        """Run timers and callbacks from other threads, as the event loop does."""
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        while not condition():
            self.broker.timers.run_due()
            with contextlib.suppress(queue.Empty):
                self._posted.get(timeout=TIMERS_SECONDS)()
            assert time.monotonic() < deadline, failure

    def crash(self) -> None:
        """Exit without a clean shutdown, as after kill -9."""
        self._crashed = True

    def __enter__(self) -> Self:
        self.broker = open_broker(self._data, self._settings, self._posted.put)
        self._engine = Engine(self.broker)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._crashed:
            self.broker.group_commit.stop()
            self.broker.directory.close(clean=False)
        else:
            self.broker.close()


class Pending:
    """An in-flight request and, later, its response."""

    def __init__(self, api: str, version: int) -> None:
        self._api = api
        self._version = version
        self.replies: list[Reply] = []

    @property
    def is_done(self) -> bool:
        return bool(self.replies)

    def answer(self) -> Plain:
        api, version, reply = self._api, self._version, self.replies[0]
        assert isinstance(reply, bytes | Payload), f"{api} was answered with {reply}"
        frame = b"".join(
            chunk.file.read(chunk.position, chunk.length) if isinstance(chunk, Region) else bytes(chunk)
            for chunk in ([reply] if isinstance(reply, bytes) else reply.chunks)
        )
        assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 7)
        return decode_response(api, version, frame[9 if response_is_flexible(api, version) else 8 :])
