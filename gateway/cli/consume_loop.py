"""Reads records and writes them to standard output, for `headgate consume`."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from headgate.gateway.cli.output import say
from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.consuming import Reader, Start, assigned, joined, start_offsets
from headgate.gateway.records.record import Record
from headgate.kafka_client.admin.offsets import LATEST, Place, list_offsets, places_of
from headgate.kafka_client.admin.topics import find_topic
from headgate.kafka_client.options import ConnectionOptions


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
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._render = render
        self._count = count
        self._stop_at_end = stop_at_end
        self._read_committed = read_committed

    def by_assignment(self, start: Start, partitions: Sequence[int] | None) -> None:
        """Read the given partitions, or all, without commits. Raises KafkaClientError, ProxyError."""
        asyncio.run(self._by_assignment(start, partitions))

    def by_group(self, group: str, start: Start) -> None:
        """Read the assigned partitions and commit after output. Raises KafkaClientError, ProxyError."""
        asyncio.run(self._by_group(group, start))

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
                for record in records:
                    if trims and record.offset >= ends[Place(record.topic, record.partition)]:
                        continue
                    if record.unreadable is None:
                        out.write(self._render(record))
                    else:
                        say(f"{record.topic}-{record.partition} offset {record.offset} skipped: {record.unreadable}")
                out.flush()
                if left is not None:
                    left -= len(records)
                if self._stop_at_end and await reader.reached(ends):
                    return
