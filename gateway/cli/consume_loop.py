"""Reads records, decodes them and writes them to standard output, for `headgate consume`."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from headgate.gateway.cli.errors import CommandError
from headgate.gateway.cli.faults import explained_schema
from headgate.gateway.cli.options import RuleAction
from headgate.gateway.cli.output import say
from headgate.gateway.cli.poison_action import PoisonAction
from headgate.gateway.cli.registry_client import open_registry
from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.consuming import Reader, Start, assigned, joined, start_offsets
from headgate.gateway.kafka.dead_letters import DeadLetters
from headgate.gateway.records.decoding import ChosenSchema, RecordDecoder
from headgate.gateway.records.payload_format import Decode, PayloadFormats
from headgate.gateway.records.record import Record
from headgate.kafka_client.admin.offsets import LATEST, Place, list_offsets, places_of
from headgate.kafka_client.admin.topics import find_topic
from headgate.kafka_client.options import ConnectionOptions
from headgate.registry.errors import InvalidSchema
from headgate.serdes import AsyncRegistryClient, Poison, Reason, RegistryClientError


class ConsumeLoop:
    def __init__(
        self,
        connection: ConnectionOptions,
        topic: str,
        render: Callable[[Record], bytes],
        *,
        count: int | None,
        stop_at_end: bool,
        read_committed: bool,
        registry_url: str,
        rules: RuleAction,
        formats: PayloadFormats,
        key_schema: ChosenSchema | None = None,
        value_schema: ChosenSchema | None = None,
        native_logical: bool = False,
        on_poison: PoisonAction = PoisonAction.REPORT,
        dead_letter_suffix: str = "",
        renders_poison: bool = False,
    ) -> None:
        """`renders_poison`: the output format has a place for poison records, so they need no message."""
        self._connection = connection
        self._topic = topic
        self._render = render
        self._count = count
        self._stop_at_end = stop_at_end
        self._read_committed = read_committed
        self._registry_url = registry_url
        self._rules = rules
        self._formats = formats
        self._schemas = (key_schema, value_schema)
        self._native_logical = native_logical
        self._on_poison = on_poison
        self._renders_poison = renders_poison
        self._poison: Counter[Reason] = Counter()
        self._letters = DeadLetters(connection, topic, dead_letter_suffix)
        self._stack = AsyncExitStack()

    def by_assignment(self, start: Start, partitions: Sequence[int] | None) -> None:
        """Read the given partitions, or all, without commits. Raises KafkaClientError, CommandError."""
        asyncio.run(self._run(lambda: self._by_assignment(start, partitions)))

    def by_group(self, group: str, start: Start) -> None:
        """Read the assigned partitions and commit after output. Raises KafkaClientError, CommandError."""
        asyncio.run(self._run(lambda: self._by_group(group, start)))

    async def _run(self, read: Callable[[], Coroutine[None, None, None]]) -> None:
        async with self._stack, self._letters:
            self._decoder = await self._open_decoder()
            await read()
        if self._poison and self._on_poison is PoisonAction.REPORT:
            total = self._poison.total()
            raise CommandError(
                f"{total} record{'' if total == 1 else 's'} could not be decoded",
                why=", ".join(f"{reason.name} {count}" for reason, count in sorted(self._poison.items())),
                next_step="--raw prints payloads unchanged; --on-poison skip ignores records that cannot be decoded",
            )

    async def _by_assignment(self, start: Start, partitions: Sequence[int] | None) -> None:
        async with connect(self._connection) as cluster:
            places = places_of(await find_topic(cluster, self._topic))
            if partitions:
                places = [Place(self._topic, index) for index in sorted(set(partitions))]
            ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), committed=self._read_committed)
            offsets = await start_offsets(cluster, places, start)
        if self._stop_at_end:
            # Skip empty partitions: the consumer would wait for their records.
            offsets = {place: offset for place, offset in offsets.items() if offset < ends[place]}
        if not offsets:
            return
        reader = assigned(self._connection, offsets, committed=self._read_committed)
        await self._read(reader, ends, commits=False)

    async def _by_group(self, group: str, start: Start) -> None:
        async with connect(self._connection) as cluster:
            places = places_of(await find_topic(cluster, self._topic))
            ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), committed=self._read_committed)
        reader = joined(
            self._connection,
            group,
            self._topic,
            from_beginning=start.beginning,
            committed=self._read_committed,
        )
        await self._read(reader, ends, commits=True)

    async def _read(
        self, opening: AbstractAsyncContextManager[Reader], ends: Mapping[Place, int], *, commits: bool
    ) -> None:
        """Read until the count or the end offsets are reached, or forever without both."""
        left = self._count
        # Without commits, records after the end offsets are left for the next run.
        trims = self._stop_at_end and not commits
        out = sys.stdout.buffer
        async with opening as reader:
            while left is None or left > 0:
                records = await reader.poll(left)
                written: list[Record] = []
                try:
                    for record in await self._decoder.decode(records):
                        if trims and record.offset >= ends[Place(record.topic, record.partition)]:
                            continue
                        out.write(await self._line(record))
                        written.append(record)
                finally:
                    # Commit only what has left this process.
                    out.flush()
                    reader.processed(written, all_of_poll=len(written) == len(records))
                await reader.commit()
                if left is not None:
                    left -= len(records)
                if self._stop_at_end and await reader.reached(ends):
                    return

    async def _line(self, record: Record) -> bytes:
        """The output of a record. Empty for a poison record that the output format cannot contain."""
        if record.unreadable is not None:
            say(f"{_position(record)} skipped: {record.unreadable}")
            return b""
        if record.poison is None:
            return self._render(record)
        poison = record.poison
        self._poison[poison.reason] += 1
        message = f"{_position(record)}: the {record.poison_part} is poison: {_explained(poison)}"
        match self._on_poison:
            case PoisonAction.FAIL:
                raise CommandError(message, next_step=poison.reason.advice)
            case PoisonAction.DEAD_LETTER:
                await self._letters.write(record)
                say(f"{message} (now in {self._letters.topic})")
            case PoisonAction.REPORT:
                if self._renders_poison:
                    return self._render(record)
                say(message)
        return b""

    async def _open_decoder(self) -> RecordDecoder:
        registry: list[AsyncRegistryClient] = []

        def opened() -> AsyncRegistryClient:
            if not registry:
                registry.append(open_registry(self._registry_url, self._rules))
                self._stack.push_async_callback(registry[0].close)
            return registry[0]

        decoders: list[Decode | None] = []
        for schema in self._schemas:
            try:
                decoders.append(
                    None if schema is None else await schema.load(opened(), native_logical=self._native_logical)
                )
            except (RegistryClientError, InvalidSchema) as error:
                raise explained_schema(error) from error
        key, value = decoders
        return RecordDecoder(self._formats, opened, key=key, value=value, native_logical=self._native_logical)


def _position(record: Record) -> str:
    return f"{record.topic}-{record.partition} offset {record.offset}"


def _explained(poison: Poison) -> str:
    schema = "" if poison.schema_id is None else f" (schema {poison.schema_id})"
    return f"{poison.reason.name}{schema}: {poison.detail}"
