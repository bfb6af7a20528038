"""A connection to a broker whose fetched records are received where they will be read, without a copy in between.

aiokafka opens it (TLS, SASL, versions) and speaks the protocol. Its own way of receiving copies every byte three times
into memory that the operating system has to map anew each time, which costs more than decoding some of the rows.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import numpy as np
from aiokafka import errors as kafka
from aiokafka.conn import AIOKafkaConnection, CloseReason

from headgate.spark_udfs.source.options import ConnectionOptions

SIZE_BYTES = 4
"""Before every answer: how many bytes it has, as a number with a sign."""
ANSWER_BYTES_MAX = 2**31 - 1
SMALL_BYTES = 4096
"""Fields up to this size are copied out of an answer: names and numbers are, records are not."""


class Block:
    """Memory for one answer after another: what lay in it is gone when the next one comes. It grows, never shrinks."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def room(self, size: int) -> memoryview:
        if len(self._memory) < size:
            self._memory = np.empty(size, np.uint8)
        return self._memory.data[:size]

    def leave(self) -> None:
        """To an answer that was given up and may be coming still; the next one gets memory that it cannot reach."""
        self._memory = np.empty(0, np.uint8)


class FetchConnection(AIOKafkaConnection):
    """`connect` first; then `fetch` as often as wanted, also before the last one is answered."""

    def __init__(self, host: str, port: int, **arguments: Any) -> None:
        super().__init__(host, port, **arguments)  # type: ignore[no-untyped-call]
        self._blocks: dict[int | None, Block] = {}
        """By the number of the request whose answer they wait for."""

    @property
    def is_open(self) -> bool:
        return bool(self.connected())  # type: ignore[no-untyped-call]

    def fetch(self, request: Any, block: Block) -> Awaitable[Any]:
        """The answer, whose records lie in the block. Raises as aiokafka does, and `TimeoutError`."""
        answer = self.send(request)  # type: ignore[no-untyped-call]
        self._blocks[self._correlation_id] = block
        return cast(Awaitable[Any], answer)

    def room(self, size: int) -> memoryview:
        """Where the answer that comes now is to be received."""
        if not 0 < size <= ANSWER_BYTES_MAX:
            raise kafka.KafkaConnectionError(f"{self} sent an answer of {size} bytes")
        waiting = self._requests[0][0] if self._requests else 0
        return self._blocks.get(waiting, Block()).room(size)

    def received(self, frame: memoryview) -> None:
        number, request, waiting = self._requests[0]
        if self._blocks.pop(number, None) is None:
            self._handle_frame(bytes(frame))  # type: ignore[no-untyped-call]
            return
        fields = _Fields(frame)
        if request.parse_response_header(fields).correlation_id != number:
            raise kafka.CorrelationIdError(f"{self} answered another request than number {number}")
        if not waiting.done():
            waiting.set_result(request.RESPONSE_TYPE.decode(fields))
        self._requests.popleft()

    def end(self, reason: CloseReason | None = None, error: Exception | None = None) -> None:
        """What was asked and is not answered yet fails."""
        self.close(reason=reason, exc=error)  # type: ignore[no-untyped-call]

    def _create_reader_task(self) -> "asyncio.Future[None]":
        """What aiokafka calls to begin receiving."""
        assert self._protocol is not None, "it was made just before"
        assert self._writer is not None, "it was made just before"
        receiver = _Receiver(self, self._protocol)
        self._writer.transport.set_protocol(receiver)
        return receiver.ended


async def connected_to(host: str, port: int, options: ConnectionOptions) -> FetchConnection:
    """Raises as aiokafka does, and `OSError`."""
    connection = FetchConnection(
        host,
        port,
        client_id=options.client_id,
        request_timeout_ms=options.request_timeout_ms,
        **options.security.client_arguments(),
    )
    await connection.connect()  # type: ignore[no-untyped-call]
    return connection


class _Receiver(asyncio.BufferedProtocol):
    """Cuts what comes into answers. Everything else stays the matter of aiokafka's own protocol."""

    def __init__(self, connection: FetchConnection, stream: asyncio.StreamReaderProtocol) -> None:
        self._connection = connection
        self._stream = stream
        self._size = memoryview(bytearray(SIZE_BYTES))
        self._target = self._size
        self._filled = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._target[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled < len(self._target):
            return
        target, self._filled = self._target, 0
        try:
            if target is self._size:
                self._target = self._connection.room(int.from_bytes(target))
            else:
                self._target = self._size
                self._connection.received(target)
        except Exception as error:
            # An answer that is none: nothing that follows can be made sense of.
            self._connection.end(CloseReason.OUT_OF_SYNC, error)

    def pause_writing(self) -> None:
        self._stream.pause_writing()

    def resume_writing(self) -> None:
        self._stream.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._stream.connection_lost(error)
        self._connection.end(CloseReason.CONNECTION_BROKEN, error)


class _Fields:
    """What aiokafka reads the fields of an answer from."""

    def __init__(self, frame: memoryview) -> None:
        self._frame = frame
        self._at = 0

    def read(self, size: int) -> bytes | memoryview:
        field = self._frame[self._at : self._at + size]
        self._at += len(field)
        return bytes(field) if size <= SMALL_BYTES else field
