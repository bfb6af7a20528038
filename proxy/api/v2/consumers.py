"""/consumers: Confluent's v2 consumer instances.

Bodies and error codes are those of Confluent's REST Proxy. Additions: rows have headers and timestamps, `key.format`
and `value.format` select formats separately, and an undecodable record becomes a row with the reason.
"""

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any, Final
from urllib.parse import quote

import orjson
from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.errors import PartitionNotFound
from headgate.openapi.media_types import KAFKA_V2
from headgate.proxy.api.addresses import base_url
from headgate.proxy.api.forwarding import forward
from headgate.proxy.api.page_response import PageResponse
from headgate.proxy.api.query import int_query, text_query
from headgate.proxy.api.record_fields import timestamp_ms
from headgate.proxy.api.request_body import parse_json, read_body
from headgate.proxy.consumers.config import read_config
from headgate.proxy.consumers.instance import ConsumerInstance, Rendering, StoredResponse
from headgate.proxy.consumers.membership import Record
from headgate.proxy.errors import BadRequest, IllegalState, Unprocessable, UnsupportedMedia
from headgate.proxy.reading.batches import in_lists
from headgate.proxy.reading.formats import MEDIA_TYPES, check_accept
from headgate.proxy.reading.poison import PoisonPolicy, dispose
from headgate.proxy.reading.rows import V2_ROWS, Row, Rows, make_rows
from headgate.proxy.services import Services

REPLAY_HEADER: Final = "X-Headgate-Replay"
ROWS_MAX: Final = 10_000
"""Topics, partitions or offsets in one request."""
_BODY_TYPES: Final = frozenset({"", "application/json", KAFKA_V2, *MEDIA_TYPES.values()})
_INSTANCE: Final = "/consumers/{group}/instances/{instance}"

router: Final = APIRouter()


@router.post("/consumers/{group}")
@router.post("/consumers/{group}/", include_in_schema=False)
async def create(group: str, request: Request) -> Response:
    services = _services(request)
    raw = await _raw_body(request)
    config = read_config(parse_json(raw) if raw.strip() else None, services.settings.logical_types)
    if config.name is not None:
        owner = services.ownership.elsewhere(group, config.name)
        passed_on = await forward(services.peers, owner, request.scope, raw)
        if passed_on is not None:
            return passed_on
    instance = services.consumers.create(group, config)
    here = base_url(request, services.settings.advertised_url)
    uri = f"{here}/consumers/{quote(group, safe='')}/instances/{quote(instance.name, safe='')}"
    return _json({"instance_id": instance.name, "base_uri": uri})


@router.delete(_INSTANCE)
async def delete(group: str, instance: str, request: Request) -> Response:
    await _services(request).consumers.delete(group, instance)
    return _no_content()


@router.post(_INSTANCE + "/subscription")
async def subscribe(group: str, instance: str, request: Request) -> Response:
    services = _services(request)
    body = await _object(request)
    with _find(request, group, instance).in_use() as found:
        topics, pattern = body.get("topics"), body.get("topic_pattern")
        if topics is not None and pattern is not None:
            raise IllegalState("Subscription to topics, partitions and pattern are mutually exclusive.")
        if pattern is not None:
            if not isinstance(pattern, str):
                raise Unprocessable("topic_pattern must be a string.")
            await services.consumers.subscribe_to_pattern(found, pattern)
        else:
            await found.subscribe(_topics(topics), None)
    return _no_content()


@router.get(_INSTANCE + "/subscription")
async def subscription(group: str, instance: str, request: Request) -> Response:
    with _find(request, group, instance).in_use() as found:
        return _json({"topics": found.topics})


@router.delete(_INSTANCE + "/subscription")
async def unsubscribe(group: str, instance: str, request: Request) -> Response:
    with _find(request, group, instance).in_use() as found:
        await found.unsubscribe()
    return _no_content()


@router.post(_INSTANCE + "/assignments")
async def assign(group: str, instance: str, request: Request) -> Response:
    body = await _object(request)
    with _find(request, group, instance).in_use() as found:
        await found.assign([_partition(row) for row in _rows(body, "partitions")])
    return _no_content()


@router.get(_INSTANCE + "/assignments")
async def assignments(group: str, instance: str, request: Request) -> Response:
    with _find(request, group, instance).in_use() as found:
        rows = [{"topic": at.topic, "partition": at.partition} for at in found.member.assignment()]
    return _json({"partitions": rows})


@router.get(_INSTANCE + "/records")
async def records(group: str, instance: str, request: Request) -> Response:
    services = _services(request)
    with _find(request, group, instance).in_use() as found:
        media_type = check_accept(request.headers.get("accept", ""), found.config.formats.value)
        timeout_ms = int_query(request, "timeout", minimum=-1)
        bytes_max = int_query(request, "max_bytes", minimum=-1)
        policy = PoisonPolicy.read(
            text_query(request, "on_poison"), text_query(request, "dead_letter_topic"), services.settings
        )
        replay = text_query(request, "replay")
        response = None if replay is None else found.replay(replay)
        if response is None:
            most = services.settings.consumer_request_max_bytes
            wanted = most if bytes_max is None or bytes_max <= 0 else min(bytes_max, most)
            response = await _while_connected(request, _read(services, found, timeout_ms, wanted, policy))
            if response is None:
                return Response(b"[]", media_type=media_type)
            services.consumers.keep(found, response)
    share = services.readers.memory.share()
    return PageResponse(response.body, share, media_type, {REPLAY_HEADER: response.token})


@router.post(_INSTANCE + "/offsets")
async def commit(group: str, instance: str, request: Request) -> Response:
    raw = await _raw_body(request)
    body = parse_json(raw) if raw.strip() else None
    with _find(request, group, instance).in_use() as found:
        if body is None or body == {}:
            await found.commit(None)
        else:
            if not isinstance(body, dict):
                raise Unprocessable("The request body must be a JSON object.")
            # As in Confluent's REST Proxy, clients send the offset of the last consumed record.
            await found.commit(
                {_partition(row): OffsetAndMetadata(_offset(row) + 1, _metadata(row)) for row in _rows(body, "offsets")}
            )
    return _json([])


@router.get(_INSTANCE + "/offsets")
async def committed(group: str, instance: str, request: Request) -> Response:
    """The body of the GET lists the partitions. Alternative: `?topic=…&partition=…`."""
    raw = await _raw_body(request)
    with _find(request, group, instance).in_use() as found:
        if raw.strip():
            body = parse_json(raw)
            wanted = [_partition(row) for row in _rows(body if isinstance(body, dict) else {}, "partitions")]
        else:
            topic, partition = text_query(request, "topic"), int_query(request, "partition", minimum=0)
            if topic is None or partition is None:
                raise PartitionNotFound
            wanted = [TopicPartition(topic, partition)]
        kept = await found.member.committed(wanted)
    rows = [
        {"topic": at.topic, "partition": at.partition, "offset": kept[at].offset, "metadata": kept[at].metadata}
        for at in wanted
        if at in kept
    ]
    return _json({"offsets": rows})


@router.post(_INSTANCE + "/positions")
async def seek(group: str, instance: str, request: Request) -> Response:
    body = await _object(request)
    offsets, times = _rows(body, "offsets", needed=False), _rows(body, "timestamps", needed=False)
    if not offsets and not times:
        raise Unprocessable('The body must have "offsets" or "timestamps".')
    with _find(request, group, instance).in_use() as found:
        for row in offsets:
            await found.member.seek(_partition(row), _offset(row))
        for index, row in enumerate(times):
            moment = timestamp_ms(row.get("timestamp"), f"timestamps[{index}].timestamp")
            if moment is None:
                raise Unprocessable(f"timestamps[{index}].timestamp is missing.")
            await found.member.seek_to_time(_partition(row), moment)
    return _no_content()


@router.post(_INSTANCE + "/positions/beginning")
async def seek_to_beginning(group: str, instance: str, request: Request) -> Response:
    body = await _object(request)
    with _find(request, group, instance).in_use() as found:
        await found.member.seek_to_beginning([_partition(row) for row in _rows(body, "partitions")])
    return _no_content()


@router.post(_INSTANCE + "/positions/end")
async def seek_to_end(group: str, instance: str, request: Request) -> Response:
    body = await _object(request)
    with _find(request, group, instance).in_use() as found:
        await found.member.seek_to_end([_partition(row) for row in _rows(body, "partitions")])
    return _no_content()


async def _read(
    services: Services, instance: ConsumerInstance, timeout_ms: int | None, bytes_max: int, policy: PoisonPolicy
) -> StoredResponse:
    async def render(taken: list[Record]) -> Rendering:
        rows: list[Row] = []
        for (topic, partition), run in itertools.groupby(taken, _where):
            made = await make_rows(services.payloads, instance.config.formats, V2_ROWS, topic, partition, in_lists(run))
            rows += made.rows
        offsets = [record.offset for record in taken]
        disposed = await dispose(services.sender, policy, Rows([rows], offsets), _where)
        if disposed.failure is not None and not disposed.consumed:
            raise disposed.failure
        return Rendering(b"[%b]" % b",".join(disposed.rows), disposed.consumed)

    return await instance.read(timeout_ms, bytes_max, render)


def _where(record: Any) -> tuple[str, int]:
    return record.topic, record.partition


async def _while_connected(request: Request, reading: Coroutine[Any, Any, StoredResponse]) -> StoredResponse | None:
    """None if the client disconnects or the proxy stops. The next read then returns the same records."""
    task = asyncio.ensure_future(reading)
    gone = asyncio.ensure_future(_disconnected(request))
    stopping = asyncio.ensure_future(_services(request).stopping.wait())
    try:
        await asyncio.wait({task, gone, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for pending in (task, gone, stopping):
            pending.cancel()
        await asyncio.wait({task, gone, stopping})


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def _find(request: Request, group: str, instance: str) -> ConsumerInstance:
    return _services(request).consumers.find(group, instance)


async def _raw_body(request: Request) -> bytes:
    declared = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    settings = _services(request).settings
    body = await read_body(request.receive, settings.request_body_bytes_max, settings.request_body_timeout_ms / 1000)
    if body.strip() and declared not in _BODY_TYPES:
        raise UnsupportedMedia
    return body


async def _object(request: Request) -> dict[str, Any]:
    raw = await _raw_body(request)
    body = parse_json(raw) if raw.strip() else None
    if not isinstance(body, dict):
        raise Unprocessable("The request body must be a JSON object.")
    return body


def _rows(body: dict[str, Any], field: str, *, needed: bool = True) -> list[dict[str, Any]]:
    rows = body.get(field)
    if rows is None and not needed:
        return []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Unprocessable(f'"{field}" must be an array of objects.')
    if len(rows) > ROWS_MAX:
        raise BadRequest(f"{field} lists more than {ROWS_MAX} entries.")
    return rows


def _topics(value: Any) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(topic, str) and topic for topic in value):
        raise Unprocessable('"topics" must be an array of topic names, or "topic_pattern" a regular expression.')
    if len(value) > ROWS_MAX:
        raise BadRequest(f"topics lists more than {ROWS_MAX} entries.")
    for topic in value:
        if len(topic) > 249 or not _TOPIC_CHARACTERS.issuperset(topic) or topic in (".", ".."):
            raise Unprocessable(f"{topic[:80]!r} is not a valid topic name.")
    return sorted(set(value))


_TOPIC_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def _partition(row: dict[str, Any]) -> TopicPartition:
    topic, partition = row.get("topic"), row.get("partition")
    if not isinstance(topic, str) or not topic:
        raise Unprocessable("topic must be a string.")
    if isinstance(partition, bool) or not isinstance(partition, int) or not 0 <= partition < 2**31:
        raise Unprocessable("partition must be an integer from 0.")
    return TopicPartition(topic, partition)


def _offset(row: dict[str, Any]) -> int:
    offset = row.get("offset")
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < 2**63 - 1:
        raise Unprocessable("offset must be an integer from 0.")
    return offset


def _metadata(row: dict[str, Any]) -> str:
    metadata = row.get("metadata")
    if metadata is None:
        return ""
    if not isinstance(metadata, str):
        raise Unprocessable("metadata must be a string.")
    return metadata


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type=KAFKA_V2)


def _no_content() -> Response:
    return Response(status_code=204)
