"""GET /v3/clusters/{id}/topics/{topic}/records and …/partitions/{partition}/records: stateless reads.

An extension of Confluent's v3 API. `POST …/records:read` is the same read. Only POST may write dead letters.

| Accept | response |
|---|---|
| application/json | one page with a link to the next one |
| application/x-ndjson | one line per record |
| text/event-stream | server-sent events; their ids are positions, and `Last-Event-ID` resumes |

| parameters | meaning |
|---|---|
| `from=earliest|latest|-20`, `offset`, `timestamp`, `positions=0:15,1:20` | start |
| `limit`, `max_bytes`, `timeout` (ms to wait for records), `follow=true` (no end) | amount |
| `key_format`, `value_format` (default: auto), `filter`, `isolation_level`, `on_poison`, `logical` | content |
"""

from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from headgate.kafka_client.fetch import Isolation
from headgate.openapi.media_types import EVENT_STREAM, JSON, NDJSON, negotiate
from headgate.proxy.api.addresses import base_url
from headgate.proxy.api.errors import status_of
from headgate.proxy.api.page_response import PageResponse
from headgate.proxy.api.query import flag_query, int_query, native_logical, one_of_query, text_query
from headgate.proxy.api.record_fields import timestamp_ms
from headgate.proxy.api.stream_response import StreamResponse
from headgate.proxy.errors import BadRequest, NotAcceptable
from headgate.proxy.reading.cluster import offsets_text
from headgate.proxy.reading.filters import compile_filter
from headgate.proxy.reading.formats import Formats, ReadFormat
from headgate.proxy.reading.plan import Plan, Start, make_plan, read_positions
from headgate.proxy.reading.poison import PoisonPolicy
from headgate.proxy.reading.stream import ReadSpec, RecordStream
from headgate.proxy.services import Services

PAGE_ROWS: Final = 1_000
PAGE_ROWS_MAX: Final = 100_000
PAGE_BYTES: Final = 4 * 1024 * 1024
SCAN_SECONDS_MAX: Final = 10.0
"""How long one page searches for rows that match a filter. The next page continues."""
PIECE_BYTES: Final = 256 * 1024
"""Size of one write. Unread data of a client stays in the socket buffer."""
RETRY_MS: Final = 1000
"""Delay before a browser reconnects."""

router: Final = APIRouter()


@router.get("/v3/clusters/{cluster_id}/topics/{topic}/records")
@router.post("/v3/clusters/{cluster_id}/topics/{topic}/records:read")
async def read_topic(cluster_id: str, topic: str, request: Request) -> Response:
    return await _read(request, cluster_id, topic, None)


@router.get("/v3/clusters/{cluster_id}/topics/{topic}/partitions/{partition}/records")
@router.post("/v3/clusters/{cluster_id}/topics/{topic}/partitions/{partition}/records:read")
async def read_partition(cluster_id: str, topic: str, partition: str, request: Request) -> Response:
    if not (partition.isascii() and partition.isdigit() and len(partition) < 10):
        raise BadRequest(f"{partition[:40]!r} is not a partition.")
    return await _read(request, cluster_id, topic, int(partition))


async def _read(request: Request, cluster_id: str, topic: str, partition: int | None) -> Response:
    services: Services = request.app.state.services
    media_type = negotiate(request.headers.get("accept", ""), (JSON, NDJSON, EVENT_STREAM))
    if media_type is None:
        raise NotAcceptable
    spec = read_spec(request, services, page=media_type == JSON, may_write=request.method == "POST")
    await services.identity.check(cluster_id)
    plan = await read_plan(request, services, topic, partition, spec)
    stream = RecordStream(services.readers, topic, plan, spec)
    if media_type == JSON:
        try:
            return await _page(request, services, stream)
        except BaseException:
            stream.share.resize(0)
            raise
    services.readers.admit()
    body = _events(stream) if media_type == EVENT_STREAM else _lines(stream)
    return StreamResponse(
        services.readers.counted(body),
        stream.share,
        media_type=media_type,
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


def read_spec(request: HTTPConnection, services: Services, *, page: bool, may_write: bool) -> ReadSpec:
    """`may_write`: whether the request may write dead letters. Raises BadRequest."""
    settings = services.settings
    limit = int_query(request, "limit", minimum=1)
    bytes_max = int_query(request, "max_bytes", minimum=1)
    timeout_ms = int_query(request, "timeout", maximum=settings.consumer_request_timeout_max_ms) or 0
    follow = flag_query(request, "follow")
    if page:
        if follow:
            raise BadRequest(f"follow=true needs Accept: {NDJSON} or {EVENT_STREAM}.")
        limit = min(limit or PAGE_ROWS, PAGE_ROWS_MAX)
        bytes_max = min(bytes_max or PAGE_BYTES, settings.consumer_request_max_bytes)
    level = one_of_query(request, "isolation_level", ("read_uncommitted", "read_committed"))
    return ReadSpec(
        formats=Formats(
            _format(request, "key_format"),
            _format(request, "value_format"),
            native_logical(request.query_params, request.headers, settings.logical_types),
        ),
        follow=follow,
        limit=limit,
        bytes_max=bytes_max,
        wait_seconds=timeout_ms / 1000,
        scan_seconds=max(SCAN_SECONDS_MAX, timeout_ms / 1000) if page else None,
        predicate=compile_filter(request.query_params.getlist("filter")),
        poison=PoisonPolicy.read(
            text_query(request, "on_poison"), text_query(request, "dead_letter_topic"), settings, may_write=may_write
        ),
        isolation=Isolation.READ_COMMITTED if level == "read_committed" else Isolation.READ_UNCOMMITTED,
        heartbeat_seconds=settings.stream_heartbeat_ms / 1000,
        page=page,
    )


async def read_plan(
    request: HTTPConnection, services: Services, topic: str, partition: int | None, spec: ReadSpec
) -> Plan:
    """Raises BadRequest, TopicNotFound, PartitionNotFound, BrokerUnavailable."""
    start = _start(request, spec.follow)
    if partition is None:
        partitions = await services.cluster.partitions(topic)
    else:
        await services.cluster.check_partition(topic, partition)
        partitions = [partition]
    return await make_plan(services.cluster, topic, partitions, start, spec.isolation)


def _format(request: HTTPConnection, name: str) -> ReadFormat:
    text = request.query_params.get(name, request.query_params.get("format"))
    if text is None:
        return ReadFormat.AUTO
    found = ReadFormat.named(text)
    if found is None:
        raise BadRequest(f"{name} must be one of {', '.join(ReadFormat)}, not {text[:40]!r}.")
    return found


def _start(request: HTTPConnection, follow: bool) -> Start:
    """Last-Event-ID has priority: a browser that reconnects repeats the original URL."""
    resumed = request.headers.get("last-event-id")
    if resumed:
        return Start(positions=read_positions(resumed, "Last-Event-ID"))
    named = [name for name in ("positions", "offset", "timestamp", "from") if name in request.query_params]
    if len(named) > 1:
        raise BadRequest(f"Use only one of {' and '.join(named)}.")
    positions = text_query(request, "positions")
    if positions is not None:
        return Start(positions=read_positions(positions, "positions"))
    if (offset := int_query(request, "offset")) is not None:
        return Start(offset=offset)
    if (moment := text_query(request, "timestamp")) is not None:
        return Start(timestamp_ms=timestamp_ms(int(moment) if moment.isdigit() else moment, "timestamp"))
    word = text_query(request, "from") or ("latest" if follow else "earliest")
    if word == "earliest":
        return Start()
    if word == "latest":
        return Start(last=0)
    if word.startswith("-") and word[1:].isascii() and word[1:].isdigit() and len(word) < 20:
        return Start(last=int(word[1:]))
    raise BadRequest(f"from must be earliest, latest or a number of records such as -20, not {word[:40]!r}.")


async def _page(request: Request, services: Services, stream: RecordStream) -> Response:
    rows: list[bytes] = []
    async for batch in stream.batches():
        rows += batch.rows
    if stream.error is not None and not rows:
        raise stream.error
    here = base_url(request, services.settings.advertised_url) + request.scope["raw_path"].decode("ascii")
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in _WHERE]
    positions = offsets_text(stream.positions.items())
    query = urlencode([*kept, ("positions", positions)])
    asked = f"{here}?{request.url.query}" if request.url.query else here
    metadata = orjson.dumps(
        {"self": asked, "next": None if stream.at_end else f"{here}?{query}", "positions": positions}
    )
    ended = b"" if stream.error is None else b',"error":%b' % orjson.dumps(end_note(stream))
    body = b'{"kind":"KafkaRecordList","metadata":%b,"data":[%b]%b}' % (metadata, b",".join(rows), ended)
    return PageResponse(body, stream.share, JSON)


_WHERE: Final = frozenset({"positions", "offset", "timestamp", "from"})


async def _lines(stream: RecordStream) -> AsyncIterator[bytes]:
    yield b""  # Sends the response headers before the first record.
    async for batch in stream.batches():
        for text in batch.texts():
            for at in range(0, len(text), PIECE_BYTES):
                yield text[at : at + PIECE_BYTES]
    if stream.reason in ("shutdown", "error"):
        yield orjson.dumps({"end": end_note(stream)}) + b"\n"


async def _events(stream: RecordStream) -> AsyncIterator[bytes]:
    """The id of an event contains the next position of every partition."""
    order = {partition: index for index, partition in enumerate(stream.positions)}
    places = [b"%d:%d" % place for place in stream.positions.items()]
    yield b"retry: %d\nid: %b\n\n" % (RETRY_MS, b",".join(places))
    async for batch in stream.batches():
        pieces: list[bytes] = []
        size = 0
        for row, offset in zip(batch.rows, batch.offsets, strict=True):
            places[order[batch.partition]] = b"%d:%d" % (batch.partition, offset + 1)
            pieces.append(b"id: %b\ndata: %b\n\n" % (b",".join(places), row))
            size += len(row)
            if size >= PIECE_BYTES:
                yield b"".join(pieces)
                pieces, size = [], 0
        if not batch.rows:
            # An id without data updates Last-Event-ID without an event. The comment keeps the connection alive.
            places = [b"%d:%d" % place for place in stream.positions.items()]
            pieces = [b": heartbeat\nid: %b\n\n" % b",".join(places)]
        yield b"".join(pieces)
    places_text = offsets_text(stream.positions.items())
    yield b"id: %b\nevent: end\ndata: %b\n\n" % (places_text.encode(), orjson.dumps(end_note(stream)))


def end_note(stream: RecordStream) -> dict[str, Any]:
    note: dict[str, Any] = {"reason": stream.reason, "positions": offsets_text(stream.positions.items())}
    if stream.error is not None:
        note |= {"error_code": status_of(stream.error).error_code, "message": str(stream.error)}
    return note
