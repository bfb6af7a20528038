"""Dead letters: topics, letters, re-drive, purge. `proxy.dead_letters` contains the logic, also of `headgate dead`."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Annotated, Final

from fastapi import APIRouter, Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from headgate.kafka_client.admin.topics import list_topics
from headgate.kafka_client.errors import NotAuthorized, ResourceNotFound
from headgate.proxy.api.query import check_query_names, int_query, one_of_query, text_query
from headgate.proxy.api.record_fields import TIMESTAMP_MAX, timestamp_ms
from headgate.proxy.api.requests import INT32_MAX, Body, body_v3, number_in_path, response_type_v3, services_of
from headgate.proxy.api.v3.resources import V3, Links, Row, respond, v3_of
from headgate.proxy.dead_letters.jq_patch import PROGRAM_CHARS_MAX, InvalidPatch, JqPatch
from headgate.proxy.dead_letters.letter import (
    InvalidFilter,
    LetterCounts,
    LetterFilter,
    LetterState,
    StoredLetter,
    parse_position,
    reason_names,
)
from headgate.proxy.dead_letters.redriving import LetterSender, TopicClaims, redrive_letters
from headgate.proxy.dead_letters.repair import Repairs, ValueSchema
from headgate.proxy.dead_letters.topic import DeadLetterTopic, ScanBudget, TooManyRecords
from headgate.proxy.errors import BadRequest, TooManyRequests
from headgate.proxy.producers.internal_topics import check_writable
from headgate.serdes.dead_letter import KNOWN_TOPIC_SUFFIXES

PAGE_LETTERS_MAX: Final = 1000
REDRIVE_LETTERS_MAX: Final = 10_000
REDRIVE_SECONDS_MAX: Final = 30.0
"""Load balancers close connections that are idle for longer. The response contains the next letter."""
REFUSALS_MAX: Final = 100
"""Refused letters in a response."""
BY: Final = "headgate-proxy"
_FILTERS: Final = ("reason", "schema_id", "application", "since", "until", "state")

router = APIRouter(prefix="/v3/clusters/{cluster_id}/dead-letters", dependencies=[Depends(response_type_v3)])
Context = Annotated[V3, Depends(v3_of)]
Moment = Annotated[int, Field(ge=0, le=TIMESTAMP_MAX)] | Annotated[str, Field(max_length=64)]


class RedriveRequest(Body):
    reasons: list[str] = Field(default_factory=list, max_length=100)
    schema_id: int | None = None
    application: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    value_schema_id: Annotated[int, Field(ge=1, le=INT32_MAX)] | None = None
    value_subject: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    patch: Annotated[str, Field(max_length=PROGRAM_CHARS_MAX)] | None = None
    execute: bool = False
    letters_max: Annotated[int, Field(ge=1, le=REDRIVE_LETTERS_MAX)] = 1000
    start: str | None = None
    """`next_letter` of an earlier response."""

    def wanted(self) -> LetterFilter:
        """Raises BadRequest."""
        return _filter(self.reasons, self.schema_id, self.application, self.since, self.until)


class PurgeRequest(Body):
    until: Moment | None = None
    execute: bool = False


@router.get("")
async def list_topics_with_letters(v3: Context, request: Request) -> Response:
    suffixes = (services_of(request).settings.dead_letter_topic_suffix, *KNOWN_TOPIC_SUFFIXES)
    names = [topic.name for topic in await list_topics(v3.cluster) if topic.name.endswith(suffixes)]
    rows = []
    async with _scan(request) as budget:
        for name in names:
            letters = DeadLetterTopic(services_of(request).settings.connection, v3.cluster, name, budget)
            rows.append(_topic_row(v3.links, name, await letters.counts()))
    return respond(v3.links.collection("KafkaDeadLetterTopicList", ("dead-letters",), rows))


@router.get("/{topic_name}")
async def get_topic(v3: Context, topic_name: str, request: Request) -> Response:
    async with _opened(v3, topic_name, request) as letters:
        return respond(_topic_row(v3.links, topic_name, await letters.counts()))


@router.get("/{topic_name}/letters")
async def list_letters(v3: Context, topic_name: str, request: Request) -> Response:
    check_query_names(request, *_FILTERS, "page_size", "page_token")
    size = int_query(request, "page_size", minimum=1, maximum=PAGE_LETTERS_MAX) or 100
    wanted = _filter(
        [name for text in request.query_params.getlist("reason") for name in text.split(",")],
        int_query(request, "schema_id", maximum=INT32_MAX),
        text_query(request, "application"),
        _moment(text_query(request, "since")),
        _moment(text_query(request, "until")),
        one_of_query(request, "state", tuple(LetterState)),
    )
    start = _start(text_query(request, "page_token"), "page_token")
    found: list[StoredLetter] = []
    async with _opened(v3, topic_name, request) as letters:
        async for stored in letters.read(wanted.accepts, start):
            found.append(stored)
            if len(found) > size:
                break
    at = ("dead-letters", topic_name, "letters")
    page = v3.links.collection("KafkaDeadLetterList", at, [_letter_row(v3.links, topic_name, x) for x in found[:size]])
    if len(found) > size:
        kept = request.url.include_query_params(page_token=found[size].position).query
        page["metadata"]["next"] = f"{v3.links.url(*at)}?{kept}"
    return respond(page)


@router.get("/{topic_name}/letters/{partition_id}/{offset}")
async def get_letter(v3: Context, topic_name: str, partition_id: str, offset: str, request: Request) -> Response:
    position = parse_position(f"{number_in_path(partition_id)}:{offset}")
    async with _opened(v3, topic_name, request) as letters:
        stored = None if position is None else await letters.find(*position)
    if stored is None:
        raise ResourceNotFound(f"There is no letter {partition_id}:{offset[:20]} in {topic_name}.")
    return respond(_letter_row(v3.links, topic_name, stored, with_payload=True))


@router.post("/{topic_name}/letters:redrive")
async def redrive(v3: Context, topic_name: str, request: Request) -> Response:
    """A dry run without `execute`."""
    body = await body_v3(request, RedriveRequest)
    wanted, start = body.wanted(), _start(body.start, "start")
    if body.value_schema_id is not None and body.value_subject is not None:
        raise BadRequest("value_schema_id and value_subject both choose a schema. Remove one of them.")
    services = services_of(request)

    def is_writable(topic: str) -> bool:
        try:
            check_writable(topic, services.settings)
        except NotAuthorized:
            return False
        return True

    async with AsyncExitStack() as stack:
        letters = await stack.enter_async_context(_opened(v3, topic_name, request, writes=True))
        repair = None
        if body.patch is not None or body.value_schema_id is not None or body.value_subject is not None:
            try:
                patch = None if body.patch is None else await stack.enter_async_context(JqPatch(body.patch))
            except InvalidPatch as error:
                raise BadRequest(f"{error}.") from error
            has_schema = body.value_schema_id is not None or body.value_subject is not None
            schema = ValueSchema(body.value_schema_id, body.value_subject) if has_schema else None
            native = services.settings.logical_types == "native"
            repair = Repairs(services.registry, schema, patch, native_logical=native)
        sender = LetterSender(services.settings.connection, BY, repair, is_writable)
        await stack.enter_async_context(sender)
        report = await redrive_letters(
            letters,
            TopicClaims(letters, sender, BY),
            wanted,
            sender,
            execute=body.execute,
            letters_max=body.letters_max,
            seconds_max=REDRIVE_SECONDS_MAX,
            start=start,
        )
    refusals = [{"letter": position, "cause": cause} for position, cause in report.refusals[:REFUSALS_MAX]]
    row = _result_row(v3.links, "KafkaDeadLetterRedrive", topic_name, body.execute)
    return respond(row | report.document() | {"refusals": refusals})


@router.post("/{topic_name}/letters:purge")
async def purge(v3: Context, topic_name: str, request: Request) -> Response:
    """A dry run without `execute`."""
    body = await body_v3(request, PurgeRequest)
    until = timestamp_ms(body.until, "until")
    async with _opened(v3, topic_name, request, writes=True) as letters:
        deleted = await letters.purge(until, execute=body.execute)
    return respond(_result_row(v3.links, "KafkaDeadLetterPurge", topic_name, body.execute) | {"deleted": deleted})


@asynccontextmanager
async def _scan(request: Request) -> AsyncIterator[ScanBudget]:
    """Raises TooManyRequests, BadRequest."""
    services = services_of(request)
    if services.scans.locked():
        raise TooManyRequests("Too many requests read dead letters. Try again later.")
    limit = services.settings.dead_letter_scan_records_max
    async with services.scans:
        try:
            yield ScanBudget(limit)
        except TooManyRecords as error:
            raise BadRequest(
                f"The request would read more than {limit} records (dead.letter.scan.records.max). Purge old letters, "
                "or use the command `headgate dead`."
            ) from error


@asynccontextmanager
async def _opened(v3: V3, topic: str, request: Request, *, writes: bool = False) -> AsyncIterator[DeadLetterTopic]:
    """Raises NotAuthorized, TooManyRequests, BadRequest."""
    settings = services_of(request).settings
    if writes:
        check_writable(topic, settings)
    async with _scan(request) as budget:
        yield DeadLetterTopic(settings.connection, v3.cluster, topic, budget)


def _filter(
    reasons: list[str],
    schema_id: int | None,
    application: str | None,
    since: int | str | None,
    until: int | str | None,
    state: str | None = None,
) -> LetterFilter:
    """Raises BadRequest."""
    try:
        names = reason_names(reasons)
    except InvalidFilter as error:
        raise BadRequest(f"{error}.") from error
    return LetterFilter(
        names,
        schema_id,
        application,
        timestamp_ms(since, "since"),
        timestamp_ms(until, "until"),
        None if state is None else LetterState(state),
    )


def _moment(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else text


def _start(token: str | None, name: str) -> tuple[int, int]:
    """Raises BadRequest."""
    position = (0, 0) if token is None else parse_position(token)
    if position is None:
        raise BadRequest(f"{name} must be a position of an earlier response, such as 0:15.")
    return position


def _topic_row(links: Links, name: str, counted: LetterCounts) -> Row:
    return links.resource(
        "KafkaDeadLetterTopic",
        ("dead-letters", name),
        ("dead-letter-topic", name),
        topic_name=name,
        letters_count=counted.counts.total(),
        is_complete=counted.is_complete,
        counts=counted.document(),
        letters=links.related("dead-letters", name, "letters"),
    )


def _letter_row(links: Links, topic: str, stored: StoredLetter, *, with_payload: bool = False) -> Row:
    fields = stored.document(with_payload=with_payload)
    partition, offset = fields.pop("partition"), fields.pop("offset")
    return links.resource(
        "KafkaDeadLetter",
        ("dead-letters", topic, "letters", partition, offset),
        ("dead-letter-topic", topic, "letter", stored.position),
        topic_name=topic,
        partition_id=partition,
        offset=offset,
        **fields,
    )


def _result_row(links: Links, kind: str, topic: str, executed: bool) -> Row:
    at = ("dead-letters", topic, "letters")
    return links.resource(kind, at, ("dead-letter-topic", topic), topic_name=topic, executed=executed)
