"""WebSocket consume: …/topics/{topic}/records:consume without a group, …/consumer-groups/{group}/records with one.

A message holds one row, or a note that its only key names: `open`, `assignment`, `acked`, `refused`, `end`. Parameters
are those of the HTTP forms; the stateless form follows unless `follow=false`. `{"ack":"17"}` acknowledges.
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
from headgate.proxy.api.v3.records_read import end_note, read_plan, read_spec
from headgate.proxy.consumers.group_stream import GroupStream
from headgate.proxy.errors import BadRequest, ProxyError
from headgate.proxy.reading.memory import Share, TooSlow
from headgate.proxy.reading.stream import RecordStream
from headgate.proxy.services import Services

# RFC 6455, section 7.4.1.
_NORMAL: Final = 1000
_GOING_AWAY: Final = 1001
_REFUSED: Final = 4000
"""Plus the HTTP status: 4404 for a topic that is not there."""
MESSAGE_BYTES_MAX: Final = 65_536
"""An acknowledgement is short."""

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
        spec = read_spec(socket, services, page=False)
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
    """Until the messages, or the client, have ended."""
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
        await _quietly(socket.close(code))


async def _send(socket: WebSocket, services: Services, messages: AsyncIterator[bytes], share: Share) -> None:
    services.readers.streams += 1
    try:
        async for message in messages:
            async with share.sending():
                await socket.send_text(message.decode())
    except (WebSocketDisconnect, RuntimeError, OSError, TooSlow):
        return  # the client has gone, or reads too slowly
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
            answer = {"acked": await take_acknowledgement(stream, parse_json(text))}
        except ProxyError as error:
            answer = {"refused": {"error_code": status_of(error).error_code, "message": str(error)}}
        await _quietly(socket.send_text(orjson.dumps(answer).decode()))


async def _refuse(socket: WebSocket, error: ProxyError) -> None:
    fault = status_of(error)
    note = {"end": {"reason": "error", "error_code": fault.error_code, "message": str(error)}}
    await _quietly(socket.send_text(orjson.dumps(note).decode()))
    await _quietly(socket.close(_REFUSED + fault.status, str(error)[:100]))


async def _quietly(sending: Any) -> None:
    try:
        await sending
    except (WebSocketDisconnect, RuntimeError, OSError):
        return
