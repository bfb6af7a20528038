"""Executes one request: reads the header, calls the handler, builds the response frame. No I/O.

As in Kafka, an unknown API or a malformed request closes the connection. The server logs the reason.
"""

import logging
import struct
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader
from kio.serial.errors import DecodeError

from headgate.broker.dispatch.fetch_fast_path import FetchFastPath
from headgate.broker.dispatch.handler_table import API_VERSIONS, HANDLERS, Handler
from headgate.broker.dispatch.produce_fast_path import ProduceFastPath
from headgate.broker.node.broker import Broker
from headgate.broker.protocol.entities import (
    MalformedRequest,
    read_request,
    response_header_is_flexible,
    response_writer,
)
from headgate.broker.protocol.outcomes import Answer, Disconnect, NoReply
from headgate.broker.protocol.request_guard import guarded
from headgate.broker.protocol.request_shapes import RequestContext
from headgate.broker.requests.payload import Payload
from headgate.broker.runtime.deferred import Deferred

logger = logging.getLogger("headgate.broker.engine")

_PREFIX = struct.Struct(">hhi")
_SIZE_AND_CORRELATION = struct.Struct(">ii")
_PRODUCE = 0
_FETCH = 1
_API_VERSIONS = 18

Outcome: TypeAlias = Answer | bytes | Payload | NoReply | Disconnect
"""The result of a handler: the fields of the response, or its encoded body."""

Reply = bytes | Payload | NoReply | Disconnect
"""A complete frame for the socket, no response, or the end of the connection."""


class _Route(NamedTuple):
    handler: Handler
    read_header: Callable[[bytes | memoryview, int], tuple[Any, int]]
    header_tail: bytes


class Engine:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.cold_reads = broker.cold_reads
        """Threads that read records that are not in the page cache."""
        self._produce_fast_path = ProduceFastPath(broker)
        self._fetch_fast_path = FetchFastPath(broker)
        self._routes: dict[tuple[int, int], _Route] = {}

    def execute(self, frame: memoryview, client_host: str, connection_id: int) -> Reply | Deferred[Reply]:
        """Execute one request. `frame` is valid only during the call."""
        if len(frame) < _PREFIX.size:
            return Disconnect(f"a frame of {len(frame)} bytes is no request")
        api_key, version, correlation_id = _PREFIX.unpack_from(frame)
        route = self._routes.get((api_key, version)) or self._find_route(api_key, version)
        if route is None:
            return self._unsupported(api_key, version, correlation_id)
        if api_key <= _FETCH:
            fast_path = self._fetch_fast_path if api_key == _FETCH else self._produce_fast_path
            try:
                fast = fast_path.answer(frame, version, connection_id)
            except Exception:
                return _defect(api_key, version)
            if isinstance(fast, bytes):
                # Most frequent case: `_framed`, inlined.
                tail = route.header_tail
                return _SIZE_AND_CORRELATION.pack(4 + len(tail) + len(fast), correlation_id) + tail + fast
            if isinstance(fast, Payload):
                return _framed(fast, api_key, version, correlation_id, route)
            if fast is not None:
                return _answered(fast, api_key, version, correlation_id, route)
        try:
            safe_frame = guarded(api_key, version, frame)
            header, position = route.read_header(safe_frame, 0)
            request = read_request(api_key, version, safe_frame, position)
        except (MalformedRequest, DecodeError, ValueError) as error:
            return Disconnect(f"malformed request: API {api_key} version {version}: {error}")
        context = RequestContext(version, header.client_id, client_host, API_VERSIONS)
        try:
            outcome = route.handler.handle(self._broker, context, request)
            if isinstance(outcome, Generator):
                outcome = self._broker.slices.run(outcome, is_exclusive=route.handler.is_exclusive)
            if api_key == _PRODUCE:
                self._produce_fast_path.learn(frame, version, request)
            elif api_key == _FETCH:
                self._fetch_fast_path.learn(frame, version, connection_id, request)
        except Exception:
            return _defect(api_key, version)
        return _answered(outcome, api_key, version, correlation_id, route)

    def _find_route(self, api_key: int, version: int) -> _Route | None:
        handler = HANDLERS.get(api_key)
        if handler is None or version not in handler.versions:
            return None
        header_schema = load_request_schema(api_key, version).__header_schema__
        tail = b"\x00" if response_header_is_flexible(api_key, version) else b""
        route = _Route(handler, entity_reader(header_schema), tail)
        self._routes[api_key, version] = route
        return route

    def _unsupported(self, api_key: int, version: int, correlation_id: int) -> Reply:
        if api_key != _API_VERSIONS:
            known = HANDLERS.get(api_key)
            if known is None:
                return Disconnect(f"API {api_key} is not supported")
            return Disconnect(
                f"API {api_key} is supported from version {known.versions[0]} to {known.versions[-1]}, not {version}"
            )
        answer: Answer = {
            "error_code": ErrorCode.unsupported_version,
            "api_keys": [entry._asdict() for entry in API_VERSIONS if entry.api_key == _API_VERSIONS],
        }
        body = response_writer(_API_VERSIONS, 0)(answer)
        return _SIZE_AND_CORRELATION.pack(4 + len(body), correlation_id) + body


def _answered(
    outcome: Outcome | Deferred[Outcome] | Deferred[bytes],
    api_key: int,
    version: int,
    correlation_id: int,
    route: _Route,
) -> Reply | Deferred[Reply]:
    if not isinstance(outcome, Deferred):
        return _reply(outcome, api_key, version, correlation_id, route)
    if outcome.done:
        ready: list[Reply] = []
        outcome.then(lambda result: ready.append(_reply(result, api_key, version, correlation_id, route)))
        return ready[0]
    reply: Deferred[Reply] = Deferred()
    reply.on_abandon = outcome.abandon
    reply.blocks_connection = outcome.blocks_connection
    outcome.then(lambda result: reply.complete(_reply(result, api_key, version, correlation_id, route)))
    return reply


def _reply(outcome: Outcome, api_key: int, version: int, correlation_id: int, route: _Route) -> Reply:
    """Frame the outcome. An encoding error becomes a Disconnect, so that the caller of `complete` does not see it."""
    try:
        return _framed(outcome, api_key, version, correlation_id, route)
    except Exception:
        return _defect(api_key, version)


def _defect(api_key: int, version: int) -> Disconnect:
    logger.exception("API %d version %d failed", api_key, version)
    return Disconnect(f"API {api_key} version {version} failed; see the traceback above")


def _framed(outcome: Outcome, api_key: int, version: int, correlation_id: int, route: _Route) -> Reply:
    tail = route.header_tail
    if isinstance(outcome, bytes):
        size = 4 + len(tail) + len(outcome)
        return _SIZE_AND_CORRELATION.pack(size, correlation_id) + tail + outcome
    if isinstance(outcome, NoReply | Disconnect):
        return outcome
    if isinstance(outcome, Payload):
        size = 4 + len(tail) + outcome.length
        head = _SIZE_AND_CORRELATION.pack(size, correlation_id) + tail
        chunks = outcome.chunks
        first = chunks[0]
        if isinstance(first, bytes):
            return Payload((head + first, *chunks[1:]), size + 4)
        return Payload((head, *chunks), size + 4)
    return _framed(response_writer(api_key, version)(outcome), api_key, version, correlation_id, route)
