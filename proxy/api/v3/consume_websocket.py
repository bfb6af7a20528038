"""WebSocket consume: …/topics/{topic}/records:consume without a group, …/consumer-groups/{group}/records with one.

A message contains one row, or one event with a single key: `open`, `assignment`, `acked`, `refused`, `end`. The query
parameters are those of the HTTP endpoints, but `follow` is true by default. `{"ack":"17"}` acknowledges.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

import orjson
from fastapi import APIRouter
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from headgate.proxy.api.errors import status_of
from headgate.proxy.api.query import flag_query
from headgate.proxy.api.request_body import parse_json
from headgate.proxy.api.v3.group_streams import ending, open_stream, opening, take_acknowledgement
from headgate.proxy.api.v3.read_records import end_note, read_plan, read_spec
from headgate.proxy.consumers.group_stream import GroupStream
from headgate.proxy.errors import BadRequest, ProxyError
from headgate.proxy.reading.memory import Share, TooSlow
from headgate.proxy.reading.stream import RecordStream
from headgate.proxy.services import Services

# RFC 6455, section 7.4.1.
_NORMAL: Final = 1000
_GOING_AWAY: Final = 1001
_REFUSED: Final = 4000
"""Plus the HTTP status: 4404 for an unknown topic."""
MESSAGE_BYTES_MAX: Final = 65_536
"""Acknowledgements are short."""

router: Final = APIRouter()


@router.websocket("/v3/clusters/{cluster_id}/topics/{topic}/records:consume")
async def consume_topic(socket: WebSocket, cluster_id: str, topic: str) -> None:
    await _consume(socket, cluster_id, topic, None)


@router.websocket("/v3/clusters/{cluster_id}/topics/{topic}/partitions/{partition}/records:consume")
async def consume_partition(socket: WebSocket, cluster_id: str, topic: str, partition: str) -> None:
    await _consume(socket, cluster_id, topic, partition)


@router.websocket("/v3/clusters/{cluster_id}/consumer-groups/{group}/records")
async def consume_group(socket: WebSocket, cluster_id: str, group: str) -> None:
    services: Services = socket.app.state.services
    await socket.accept()
    try:
        await services.identity.check(cluster_id)
        services.readers.admit()
        stream = await open_stream(socket, services, group)
    except ProxyError as error:
        await _refuse(socket, error)
        return
    try:
        opened = orjson.dumps({"open": opening(socket, services, cluster_id, stream)})
        await _serve(socket, services, _group_messages(stream, opened), stream.share, stream)
    finally:
        services.group_streams.end(stream)


async def _consume(socket: WebSocket, cluster_id: str, topic: str, partition: str | None) -> None:
    services: Services = socket.app.state.services
    await socket.accept()
    try:
        if partition is not None and not (partition.isascii() and partition.isdigit() and len(partition) < 10):
            raise BadRequest(f"{partition[:40]!r} is not a partition.")
        await services.identity.check(cluster_id)
        services.readers.admit()
        spec = read_spec(socket, services, page=False, may_write=False)
        spec = replace(spec, follow="follow" not in socket.query_params or flag_query(socket, "follow"))
        plan = await read_plan(socket, services, topic, None if partition is None else int(partition), spec)
    except ProxyError as error:
        await _refuse(socket, error)
        return
    stream = RecordStream(services.readers, topic, plan, spec)
    await _serve(socket, services, _topic_messages(stream), stream.share, None)


async def _topic_messages(stream: RecordStream) -> AsyncIterator[bytes]:
    async for batch in stream.batches():
        for row in batch.rows:
            yield row
    yield orjson.dumps({"end": end_note(stream)})


async def _group_messages(stream: GroupStream, opened: bytes) -> AsyncIterator[bytes]:
    yield opened
    async for batch in stream.batches():
        for row in batch.rows:
            yield row
        if batch.note is not None:
            yield orjson.dumps(batch.note)
    yield orjson.dumps({"end": ending(stream)})


async def _serve(
    socket: WebSocket, services: Services, messages: AsyncIterator[bytes], share: Share, stream: GroupStream | None
) -> None:
    """Runs until the messages end or the client disconnects."""
    sending = asyncio.create_task(_send(socket, services, messages, share))
    receiving = asyncio.create_task(_receive(socket, stream))
    try:
        await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, receiving):
            task.cancel()
        await asyncio.wait({sending, receiving})
    if socket.client_state is WebSocketState.CONNECTED and socket.application_state is WebSocketState.CONNECTED:
        code = _GOING_AWAY if services.readers.stopping.is_set() else _NORMAL
        await _ignore_disconnect(socket.close(code))


async def _send(socket: WebSocket, services: Services, messages: AsyncIterator[bytes], share: Share) -> None:
    services.readers.streams += 1
    try:
        async for message in messages:
            async with share.sending():
                await socket.send_text(message.decode())
    except (WebSocketDisconnect, RuntimeError, OSError, TooSlow):
        return  # The client has disconnected or reads too slowly.
    finally:
        services.readers.streams -= 1


async def _receive(socket: WebSocket, stream: GroupStream | None) -> None:
    while True:
        message = await socket.receive()
        if message["type"] != "websocket.receive":
            return
        text = (message.get("text") or "").encode("utf-8", "replace") or message.get("bytes") or b""
        if stream is None:
            continue
        try:
            if len(text) > MESSAGE_BYTES_MAX:
                raise BadRequest("The message is too long.")
            reply = {"acked": await take_acknowledgement(stream, parse_json(text))}
        except ProxyError as error:
            reply = {"refused": {"error_code": status_of(error).error_code, "message": str(error)}}
        await _ignore_disconnect(socket.send_text(orjson.dumps(reply).decode()))


async def _refuse(socket: WebSocket, error: ProxyError) -> None:
    status, code = status_of(error)
    note = {"end": {"reason": "error", "error_code": code, "message": str(error)}}
    await _ignore_disconnect(socket.send_text(orjson.dumps(note).decode()))
    await _ignore_disconnect(socket.close(_REFUSED + status, str(error)[:100]))


async def _ignore_disconnect(sending: Any) -> None:
    try:
        await sending
    except (WebSocketDisconnect, RuntimeError, OSError):
        return
