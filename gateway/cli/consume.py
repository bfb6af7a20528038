"""`headgate consume`: records of a topic on standard output."""

import asyncio
import re
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.completion import complete_group
from gateway.cli.errors import UsageError
from gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer, TopicName

if TYPE_CHECKING:
    from gateway.kafka.consuming import Reader, Start
    from gateway.kafka.offsets import Place
    from gateway.records.record import Record

_OFFSET = re.compile(r"-?\d{1,18}")


def consume(
    topic: TopicName,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            "-o",
            metavar="WHERE",
            help="beginning, end, an offset, -N for the last N of each partition, or @TIME [default: beginning].",
        ),
    ] = None,
    stop_at_end: Annotated[
        bool, typer.Option("--stop-at-end", "-e", help="Stop at what is the end now instead of waiting for more.")
    ] = False,
    count: Annotated[int | None, typer.Option("--count", "-n", min=0, help="Stop after so many records.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Read only this one; repeatable.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", help="Join this group and commit offsets.", autocompletion=complete_group),
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="TEXT", help=r"As in kcat: %t %p %o %k %s %K %S %R %T %h %% \n \r \t \0 \xNN."
        ),
    ] = None,
    print_key: Annotated[bool, typer.Option("--print-key", "-k", help="Print the key before the value.")] = False,
    print_headers: Annotated[bool, typer.Option("--print-headers", help="Print the headers first.")] = False,
    print_timestamp: Annotated[
        bool, typer.Option("--print-timestamp", help="Print the timestamp first (milliseconds).")
    ] = False,
    separator: Annotated[
        str, typer.Option("--separator", "-K", metavar="TEXT", help="What parts key, headers and value.")
    ] = r"\t",
    null: Annotated[str, typer.Option("--null", metavar="TEXT", help="What stands for null; empty stays empty.")] = (
        "NULL"
    ),
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Leave out records of transactions that are open or aborted.")
    ] = False,
    base64: Annotated[
        bool, typer.Option("--base64", help="With --json: keys and values in base64 even where they are text.")
    ] = False,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    json: Annotated[bool, typer.Option("--json", "-J", help="Print each record as one line of JSON.")] = False,
) -> None:
    """Print the records of a topic: by default the value of each, one per line."""
    if json and (format_ is not None or print_key or print_headers or print_timestamp):
        raise UsageError("--json prints everything", next_step="leave --format and --print-... out")
    if base64 and not json:
        raise UsageError("--base64 needs --json")
    if format_ is None:
        parts = [
            *(["%T"] if print_timestamp else []),
            *(["%h"] if print_headers else []),
            *(["%k"] if print_key else []),
            "%s",
        ]
        format_ = separator.replace("%", "%%").join(parts) + r"\n"
    where = parse_start(start or "beginning", time.time_ns() // 1_000_000)
    reading = _Reading(bootstrap_server, topic, _renderer(format_, null, json=json, base64=base64))
    if group is None:
        asyncio.run(reading.by_assignment(where, partition, count, stop_at_end, read_committed))
        return
    if partition:
        raise UsageError("a group hands out the partitions itself", next_step="leave out --partition or --group")
    if not where.beginning and not where.end:
        raise UsageError(
            "a group goes on where it left off; --from beginning or end is for partitions it has not read",
            next_step=f"headgate group reset {group} --topic {topic} moves it",
        )
    asyncio.run(reading.by_group(group, where, count, stop_at_end, read_committed))


def parse_start(text: str, now_ms: int) -> "Start":
    """Raises UsageError."""
    from gateway.kafka.consuming import Start
    from gateway.moments import NotAMoment, parse_moment

    if text in {"beginning", "earliest", "start"}:
        return Start(beginning=True)
    if text in {"end", "latest"}:
        return Start(end=True)
    if _OFFSET.fullmatch(text):
        number = int(text)
        return Start(last=-number) if text.startswith("-") else Start(offset=number)
    try:
        return Start(timestamp_ms=parse_moment(text.removeprefix("@"), now_ms))
    except NotAMoment as error:
        raise UsageError(
            f"--from {text!r} is no place to start", next_step="beginning, end, 42, -10, @2026-01-31T12:00 or @2h"
        ) from error


def _renderer(text: str, null: str, *, json: bool, base64: bool) -> "Callable[[Record], bytes]":
    if json:
        from json import dumps

        from gateway.records.json_lines import document_of

        return lambda record: dumps(document_of(record, always_base64=base64), ensure_ascii=False).encode() + b"\n"
    from gateway.records.format import BadFormat, compile_format

    try:
        return compile_format(text, null.encode())
    except BadFormat as error:
        raise UsageError(str(error)) from error


class _Reading:
    def __init__(self, bootstrap_server: str, topic: str, render: "Callable[[Record], bytes]") -> None:
        self._bootstrap_server = bootstrap_server
        self._topic = topic
        self._render = render

    async def by_assignment(
        self, start: "Start", partitions: list[int] | None, count: int | None, stop_at_end: bool, committed: bool
    ) -> None:
        from gateway.kafka.cluster import connect
        from gateway.kafka.consuming import assigned, start_offsets
        from gateway.kafka.offsets import LATEST, Place, list_offsets, places_of
        from gateway.kafka.topics import find_topics

        async with connect(self._bootstrap_server) as cluster:
            places = places_of(await find_topics(cluster, [self._topic]))
            if partitions:
                places = [Place(self._topic, index) for index in sorted(set(partitions))]
            # The end first: what arrives in between is then read or not, but the start never lies behind the end.
            ends = await list_offsets(cluster, dict.fromkeys(places, LATEST))
            offsets = await start_offsets(cluster, places, start)
        if stop_at_end:
            # aiokafka would wait a poll for partitions that have nothing to say.
            offsets = {place: offset for place, offset in offsets.items() if offset < ends[place]}
            if not offsets:
                return
        await self._read(
            assigned(self._bootstrap_server, offsets, committed=committed), count, ends if stop_at_end else None
        )

    async def by_group(self, group: str, start: "Start", count: int | None, stop_at_end: bool, committed: bool) -> None:
        from gateway.kafka.cluster import connect
        from gateway.kafka.consuming import joined
        from gateway.kafka.offsets import LATEST, list_offsets, places_of
        from gateway.kafka.topics import find_topics

        async with connect(self._bootstrap_server) as cluster:
            places = places_of(await find_topics(cluster, [self._topic]))
            ends = await list_offsets(cluster, dict.fromkeys(places, LATEST))
        reader = joined(self._bootstrap_server, group, self._topic, from_beginning=start.beginning, committed=committed)
        await self._read(reader, count, ends if stop_at_end else None, commits=True)

    async def _read(
        self,
        opening: "AbstractAsyncContextManager[Reader]",
        count: int | None,
        ends: "dict[Place, int] | None",
        *,
        commits: bool = False,
    ) -> None:
        """Until `count` records or the ends, whichever comes first; forever without either."""
        left = count
        out = sys.stdout.buffer
        async with opening as reader:
            while left is None or left > 0:
                records = await reader.poll(left)
                for record in records:
                    # What was appended since is left for the next time, unless it is committed and there is none.
                    if ends is None or commits or record.offset < ends[_place(record)]:
                        out.write(self._render(record))
                out.flush()
                if left is not None:
                    left -= len(records)
                if ends is not None and await reader.reached(ends):
                    return


def _place(record: "Record") -> "Place":
    from gateway.kafka.offsets import Place

    return Place(record.topic, record.partition)
