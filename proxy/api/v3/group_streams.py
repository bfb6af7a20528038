"""GET /v3/clusters/{id}/consumer-groups/{group}/records: stream of a consumer group; POST …/streams/{stream}/acks.

An extension of Confluent's v3 API. `Accept` selects lines (application/x-ndjson) or server-sent events. Parameters:
`topics=a,b`, `auto_offset_reset`, `isolation_level`, `group_instance_id`, `max_unacked`, and the formats, filter, limit
and on_poison of stateless reads. `proxy.api.v3.consume_websocket` sends the same messages over a WebSocket.

The first message, `open`, contains the URL for acknowledgements. `assignment` reports rebalances, `end` the reason of
the end.
"""

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import quote

import orjson
from fastapi import APIRouter
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from headgate.openapi.media_types import EVENT_STREAM, JSON, NDJSON, negotiate
from headgate.proxy.api.addresses import base_url
from headgate.proxy.api.errors import status_of
from headgate.proxy.api.query import int_query, one_of_query, text_query
from headgate.proxy.api.request_body import parse_json, read_body
from headgate.proxy.api.stream_response import StreamResponse
from headgate.proxy.api.v3.read_records import read_spec
from headgate.proxy.consumers.group_stream import UNACKNOWLEDGED, UNACKNOWLEDGED_MAX, GroupStream
from headgate.proxy.consumers.membership import MemberSettings
from headgate.proxy.errors import BadRequest, NotAcceptable, Unprocessable
from headgate.proxy.services import Services

TOPICS_MAX: Final = 1_000
_TOPIC: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

router: Final = APIRouter()


@router.get("/v3/clusters/{cluster_id}/consumer-groups/{group}/records")
async def read_group(cluster_id: str, group: str, request: Request) -> Response:
    services: Services = request.app.state.services
    media_type = negotiate(request.headers.get("accept", ""), (NDJSON, EVENT_STREAM))
    if media_type is None:
        raise NotAcceptable
    await services.identity.check(cluster_id)
    services.readers.admit()
    stream = await open_stream(request, services, group)
    opened = opening(request, services, cluster_id, stream)
    body = _events(stream, opened) if media_type == EVENT_STREAM else _lines(stream, opened)
    return StreamResponse(
        services.readers.counted(_closing(services, stream, body)),
        stream.share,
        media_type=media_type,
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


@router.post("/v3/clusters/{cluster_id}/consumer-groups/{group}/streams/{stream_id}/acks")
async def acknowledge(cluster_id: str, group: str, stream_id: str, request: Request) -> Response:
    services: Services = request.app.state.services
    await services.identity.check(cluster_id)
    stream = services.group_streams.find(group, stream_id)
    body = parse_json(
        await read_body(
            request.receive,
            services.settings.request_body_bytes_max,
            services.settings.request_body_timeout_ms / 1000,
        )
    )
    return Response(orjson.dumps(await take_acknowledgement(stream, body)), media_type=JSON)


async def take_acknowledgement(stream: GroupStream, body: Any) -> dict[str, Any]:
    """`{"ack":"17"}` or `{"acks":[…]}`. The highest token acknowledges all rows up to it. Raises Unprocessable."""
    given = (
        [body["ack"]]
        if isinstance(body, dict) and "ack" in body
        else body.get("acks")
        if isinstance(body, dict)
        else None
    )
    if not isinstance(given, list) or not given:
        raise Unprocessable('The body must be {"ack": "TOKEN"} or {"acks": ["TOKEN", …]}.')
    tokens: list[int] = []
    for token in given:
        text = str(token) if isinstance(token, int) and not isinstance(token, bool) else token
        if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19):
            raise Unprocessable("A token must be the value of ack in a row.")
        tokens.append(int(text))
    count = await stream.acknowledge(max(tokens))
    return {"ack": str(max(tokens)), "acknowledged": count, "unacknowledged": stream.unacknowledged}


async def open_stream(request: HTTPConnection, services: Services, group: str) -> GroupStream:
    """Raises BadRequest, TopicNotFound, TooManyRequests."""
    spec = read_spec(request, services, page=False, may_write=True)
    reset = one_of_query(request, "auto_offset_reset", ("earliest", "latest", "none"))
    level = one_of_query(request, "isolation_level", ("read_uncommitted", "read_committed"))
    most = int_query(request, "max_unacked", minimum=1, maximum=UNACKNOWLEDGED_MAX) or UNACKNOWLEDGED
    topics = sorted({name for text in request.query_params.getlist("topics") for name in text.split(",") if name})
    if not topics or len(topics) > TOPICS_MAX:
        raise BadRequest(f"topics must contain 1 to {TOPICS_MAX} topic names, separated by commas.")
    for topic in topics:
        if len(topic) > 249 or not _TOPIC.issuperset(topic):
            raise BadRequest(f"{topic[:80]!r} is not a valid topic name.")
        await services.cluster.partitions(topic)
    member = MemberSettings(
        group, reset or "earliest", level or "read_uncommitted", text_query(request, "group_instance_id")
    )
    return services.group_streams.open(group, topics, member, spec, most)


def opening(request: HTTPConnection, services: Services, cluster_id: str, stream: GroupStream) -> dict[str, Any]:
    here = base_url(request, services.settings.advertised_url)
    path = f"/v3/clusters/{quote(cluster_id, safe='')}/consumer-groups/{quote(stream.group, safe='')}"
    return {
        "stream_id": stream.identity,
        "acks": f"{here}{path}/streams/{stream.identity}/acks",
        "group_id": stream.group,
        "topics": stream.topics,
    }


def ending(stream: GroupStream) -> dict[str, Any]:
    note: dict[str, Any] = {"reason": stream.reason, "unacknowledged": stream.unacknowledged}
    if stream.error is not None:
        note |= {"error_code": status_of(stream.error).error_code, "message": str(stream.error)}
    return note


async def _closing(services: Services, stream: GroupStream, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for piece in body:
            yield piece
    finally:
        services.group_streams.end(stream)


async def _lines(stream: GroupStream, opened: dict[str, Any]) -> AsyncIterator[bytes]:
    yield orjson.dumps({"open": opened}) + b"\n"
    async for batch in stream.batches():
        note = b"" if batch.note is None else orjson.dumps(batch.note)
        yield b"\n".join(batch.rows) + note + b"\n"
    yield orjson.dumps({"end": ending(stream)}) + b"\n"


async def _events(stream: GroupStream, opened: dict[str, Any]) -> AsyncIterator[bytes]:
    yield b"event: open\ndata: %b\n\n" % orjson.dumps(opened)
    async for batch in stream.batches():
        pieces = [b"id: %d\ndata: %b\n\n" % (token, row) for token, row in zip(batch.tokens, batch.rows, strict=True)]
        if batch.note is not None:
            pieces += [
                b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(told)) for name, told in batch.note.items()
            ]
        yield b"".join(pieces) or b": heartbeat\n\n"
    yield b"event: end\ndata: %b\n\n" % orjson.dumps(ending(stream))
