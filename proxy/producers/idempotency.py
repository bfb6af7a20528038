"""Requests that are written once, however often they are sent: the `Idempotency-Key` header.

Before its records go out, a request is noted in the log (`outcome_log`) with a producer id and sequences that belong to
it alone. Sent again, to this worker or another, before or after a crash, its records go out under the same numbers, and
the brokers themselves leave out what they have (KIP-98): a request whose outcome nobody learned is finished, not
repeated. Once its answer is in the log, its producer id serves the next request.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from proxy.errors import BadRequest, PartitionNotFound, ProxyError, Unprocessable
from proxy.producers.lanes import partition_of
from proxy.producers.outcome_log import Entry, Intent, Outcome, OutcomeLog
from proxy.producers.records import OutgoingRecord, ProducerIdentity, Ticket
from proxy.producers.sender import Sender

key_characters_max: Final = 255
# Of one answer in the log, below the brokers' limit for a record.
answer_bytes_max: Final = 900_000

Prepare = Callable[[], Awaitable[Sequence[OutgoingRecord]]]
Conclude = Callable[[Sequence[Ticket]], Awaitable[tuple[bytes, bool]]]
"""The answer, and whether it is final: no broker failed or refused a record."""


@dataclass(slots=True)
class _Lease:
    """A producer id that one request at a time goes out under."""

    identity: ProducerIdentity
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answered:
    body: bytes
    is_repeated: bool


def parse_key(header: bytes) -> str:
    """Raises BadRequest."""
    text = header.decode("latin-1").strip()
    if not 1 <= len(text) <= key_characters_max or not text.isprintable():
        raise BadRequest(f"Idempotency-Key must be 1 to {key_characters_max} printable characters.")
    return text


class OnceOnly:
    def __init__(self, sender: Sender, log: OutcomeLog) -> None:
        self._sender = sender
        self._log = log
        self._running: dict[bytes, tuple[bytes, asyncio.Future[None]]] = {}
        self._free: list[_Lease] = []

    async def answer(
        self, key: str, route: str, topic: str, request: bytes, prepare: Prepare, conclude: Conclude
    ) -> Answered:
        """Raises ProxyError; then nothing is remembered but what may have been written."""
        name = hashlib.sha256(f"{route}\0{topic}\0{key}".encode()).digest()[:16]
        fingerprint = hashlib.sha256(request).digest()[:16]
        while name in self._running:
            running = self._running[name]
            if running[0] != fingerprint:
                raise _other_body()
            await asyncio.wait((running[1],))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running[name] = (fingerprint, done)
        try:
            return await self._answer(name, fingerprint, topic, prepare, conclude)
        finally:
            del self._running[name]
            done.set_result(None)

    async def close(self) -> None:
        await self._log.close()

    async def _answer(
        self, name: bytes, fingerprint: bytes, topic: str, prepare: Prepare, conclude: Conclude
    ) -> Answered:
        entry = await self._log.find(name)
        if entry is not None and entry.fingerprint != fingerprint:
            raise _other_body()
        if entry is not None and entry.outcome_offset is not None:
            return Answered(await self._log.answer(entry), True)
        records = await prepare()
        lease: _Lease | None = None
        if entry is None:
            lease = self._free.pop() if self._free else _Lease(await self._sender.new_identity())
            own = self._intent(lease, fingerprint, topic, records, await self._sender.partitions(topic))
            entry = await self._log.announce(name, own)
            if entry.intent != own:
                # Another worker was first; its numbers count.
                self._free.append(lease)
                lease = None
                if entry.fingerprint != fingerprint:
                    raise _other_body()
        if entry.intent is None:
            return Answered(await self._log.answer(entry), True)
        tickets = await self._placed(entry, topic, records)
        body, is_final = await conclude(tickets)
        if is_final and len(body) <= answer_bytes_max:
            try:
                await self._log.conclude(name, Outcome(fingerprint, body))
            except ProxyError:
                # Written and answered; whoever asks again makes the brokers look again.
                return Answered(body, False)
            if lease is not None:
                for partition, sequence, indexes in entry.intent.rows:
                    lease.sequences[topic, partition] = sequence + len(indexes)
                self._free.append(lease)
        return Answered(body, False)

    @staticmethod
    def _intent(
        lease: _Lease,
        fingerprint: bytes,
        topic: str,
        records: Sequence[OutgoingRecord],
        partitions: tuple[int, ...],
    ) -> Intent:
        by_partition: dict[int, list[int]] = {}
        keyless = partitions[fingerprint[0] % len(partitions)]
        for index, record in enumerate(records):
            if record.partition is not None and record.partition not in partitions:
                raise PartitionNotFound
            if record.partition is not None:
                partition = record.partition
            else:
                partition = partition_of(record.key, partitions) if record.key is not None else keyless
            by_partition.setdefault(partition, []).append(index)
        rows = [
            (partition, lease.sequences.get((topic, partition), 0), indexes)
            for partition, indexes in by_partition.items()
        ]
        return Intent(fingerprint, lease.identity.producer_id, lease.identity.epoch, rows)

    async def _placed(self, entry: Entry, topic: str, records: Sequence[OutgoingRecord]) -> list[Ticket]:
        intent = entry.intent
        assert intent is not None
        identity = ProducerIdentity(intent.producer_id, intent.epoch)
        rows = [
            (partition, sequence, [records[index] for index in indexes]) for partition, sequence, indexes in intent.rows
        ]
        placed = await self._sender.place_as(identity, topic, rows)
        in_order: dict[int, Ticket] = {}
        for (_, _, indexes), tickets in zip(intent.rows, placed, strict=True):
            in_order.update(zip(indexes, tickets, strict=True))
        return [in_order[index] for index in range(len(records))]


def _other_body() -> Unprocessable:
    return Unprocessable("This Idempotency-Key was used with another request body.")
