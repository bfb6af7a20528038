"""GET /topics/{topic}/partitions/{partition}/records?offset&timeout&max_bytes: stateless read, as in
Redpanda's HTTP proxy."""

from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.openapi.media_types import negotiate
from headgate.proxy.api.page_response import PageResponse
from headgate.proxy.api.query import int_query, native_logical, text_query
from headgate.proxy.errors import BadRequest, NotAcceptable
from headgate.proxy.reading.formats import MEDIA_TYPES, Formats, ReadFormat
from headgate.proxy.reading.plan import Start, make_plan
from headgate.proxy.reading.poison import PoisonPolicy
from headgate.proxy.reading.stream import ReadSpec, RecordStream
from headgate.proxy.services import Services

ROWS_MAX: Final = 10_000
_FORMATS: Final = {media_type: read_format for read_format, media_type in MEDIA_TYPES.items()} | {
    "application/vnd.kafka.v2+json": ReadFormat.BINARY,
    "application/json": ReadFormat.BINARY,
}
_OFFERED: Final = (
    MEDIA_TYPES[ReadFormat.BINARY],
    "application/vnd.kafka.v2+json",
    *(media_type for read_format, media_type in MEDIA_TYPES.items() if read_format is not ReadFormat.BINARY),
    "application/json",
)

router: Final = APIRouter()


@router.get("/topics/{topic}/partitions/{partition}/records")
async def read_partition(topic: str, partition: str, request: Request) -> Response:
    services: Services = request.app.state.services
    media_type = negotiate(request.headers.get("accept", ""), _OFFERED)
    if media_type is None:
        raise NotAcceptable
    if not (partition.isascii() and partition.isdigit() and len(partition) < 10):
        raise BadRequest(f"{partition[:40]!r} is not a partition.")
    settings = services.settings
    offset = int_query(request, "offset")
    timeout_ms = int_query(request, "timeout", maximum=settings.consumer_request_timeout_max_ms)
    bytes_max = int_query(request, "max_bytes", minimum=1) or settings.consumer_request_max_bytes
    read_format = _FORMATS[media_type]
    spec = ReadSpec(
        formats=Formats(
            read_format,
            read_format,
            native_logical(request.query_params, request.headers, settings.logical_types),
        ),
        limit=ROWS_MAX,
        bytes_max=min(bytes_max, settings.consumer_request_max_bytes),
        wait_seconds=(settings.consumer_request_timeout_ms if timeout_ms is None else timeout_ms) / 1000,
        poison=PoisonPolicy.read(
            text_query(request, "on_poison"), text_query(request, "dead_letter_topic"), settings, may_write=False
        ),
        v2=True,
        page=True,
    )
    number = int(partition)
    await services.cluster.check_partition(topic, number)
    plan = await make_plan(services.cluster, topic, [number], Start(offset=offset or 0), spec.isolation)
    stream = RecordStream(services.readers, topic, plan, spec)
    try:
        rows = [row async for batch in stream.batches() for row in batch.rows]
        if stream.error is not None and not rows:
            raise stream.error
        return PageResponse(b"[%b]" % b",".join(rows), stream.share, media_type)
    except BaseException:
        stream.share.resize(0)
        raise
