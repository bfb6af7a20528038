"""Requests with an `Idempotency-Key` header: written once, however often they are sent.

1. Before its records are sent, the request is journaled (`outcome_log`) with a producer id and sequence numbers that
   belong to it alone (the *intent*).
2. If the request is sent again, to this worker or another, before or after a crash, its records are sent with the same
   numbers. Brokers drop the batches that they already have (KIP-98).
3. Once the response is in the journal (the *outcome*), retries get it without sending anything, and the producer id
   serves the next request.

If a broker rejects the numbers because it lost the sequence, the records are not written. A new intent with a new
producer id for the affected partitions is journaled, and these records are sent again. Other partitions keep their
numbers. If another worker has finished the request meanwhile, its outcome precedes the new intent in the journal and
counts.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.kafka_client.producer.partition_queue import SEQUENCES
from headgate.kafka_client.producer.partitioner import partition_of
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket
from headgate.proxy.errors import BadRequest, PartitionNotFound, ProxyError, Unprocessable
from headgate.proxy.producers.keyed_delivery import KeyedDelivery
from headgate.proxy.producers.outcome_log import Entry, Intent, Outcome, OutcomeLog
from headgate.proxy.producers.sender import Sender

key_characters_max: Final = 255
# Of one answer in the log, below the brokers' limit for a record.
answer_bytes_max: Final = 900_000
# New producer ids that one request may take after a broker has rejected its numbers.
restarts_max: Final = 3
# Producer ids kept for the next requests, as many as requests run concurrently. Others are abandoned.
leases_free_max: Final = 256
# Partitions whose sequence number a producer id remembers. An id with more is abandoned.
lease_partitions_max: Final = 256

Prepare = Callable[[], Awaitable[Sequence[OutgoingRecord | ProxyError]]]
"""The records of the request, by position; an error instead of a record that cannot be sent."""
Conclude = Callable[[Sequence[Ticket | ProxyError]], Awaitable[tuple[bytes, bool]]]
"""The response body, and whether it is final: every record that was sent is stored."""


@dataclass(slots=True)
class _Lease:
    """A producer id that one request at a time uses."""

    identity: ProducerIdentity
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    def intent(self, fingerprint: bytes, topic: str, rows: dict[int, list[int]]) -> Intent:
        numbered = [
            (partition, self.sequences.get((topic, partition), 0), positions) for partition, positions in rows.items()
        ]
        return Intent(fingerprint, self.identity.producer_id, self.identity.epoch, numbered)

    def advance(self, topic: str, intent: Intent) -> None:
        for partition, sequence, positions in intent.rows:
            self.sequences[topic, partition] = (sequence + len(positions)) % SEQUENCES


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
        """Raises ProxyError. The key then remembers only records that may have been written."""
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
        outgoing = [record for record in records if not isinstance(record, ProxyError)]
        if entry is None and not outgoing:
            # Without a record to write, a missing topic is not created.
            refused = [record for record in records if isinstance(record, ProxyError)]
            return Answered((await conclude(refused))[0], False)
        self._sender.check_sizes(outgoing)
        partitions = await self._sender.partitions(topic)
        delivery = KeyedDelivery(self._sender, topic, records, partitions)
        lease: _Lease | None = None
        is_first = entry is None
        try:
            if entry is None:
                rows = _by_partition(records, fingerprint, partitions)
                delivery.build(rows)
                lease, entry = await self._announce(name, fingerprint, topic, rows)
                if entry.fingerprint != fingerprint:
                    raise _other_body()
                is_first = lease is not None
            if entry.intent is not None and not is_first:
                # Another attempt of this request was first. Its numbers and its choice of partitions count.
                delivery.discard()
                delivery.build({partition: positions for partition, _, positions in entry.intent.rows})
            first = entry.intent
            entry = await self._deliver(name, entry, delivery, is_first=is_first)
        finally:
            delivery.discard()
        if entry.intent is None:
            return Answered(await self._log.answer(entry), True)
        body, is_final = await conclude(delivery.placed())
        if is_final and len(body) <= answer_bytes_max:
            try:
                await self._log.conclude(name, Outcome(fingerprint, body))
            except ProxyError:
                # The records are stored. A retry is sent with the same numbers and finds them.
                return Answered(body, False)
            if lease is not None and entry.intent is first:
                lease.advance(topic, entry.intent)
                self._release(lease)
        return Answered(body, False)

    async def _announce(
        self, name: bytes, fingerprint: bytes, topic: str, rows: dict[int, list[int]]
    ) -> tuple[_Lease | None, Entry]:
        """Journal a first intent. Returns the lease if that intent counts, and the entry that counts.

        After an error the intent may be in the journal, so its producer id is not used again.
        """
        lease = self._free.pop() if self._free else _Lease(await self._sender.new_identity())
        own = lease.intent(fingerprint, topic, rows)
        entry = await self._log.announce(name, own)
        if entry.intent == own:
            return lease, entry
        if entry.intent is not None and entry.intent.producer_id != own.producer_id:
            self._release(lease)
        return None, entry

    async def _deliver(self, name: bytes, entry: Entry, delivery: KeyedDelivery, *, is_first: bool) -> Entry:
        """Send until every batch has a response. Returns the entry whose numbers, or whose outcome, count."""
        for _ in range(restarts_max + 1):
            if entry.intent is None:
                break
            await delivery.send(entry.intent, may_be_written=not is_first)
            lost = delivery.lost()
            if not lost:
                break
            try:
                own = entry.intent.restarted(lost, await self._sender.new_identity())
                found = await self._log.announce(name, own)
                if found.fingerprint != own.fingerprint:
                    break
                if found.intent is not None:
                    delivery.build(lost)
            except ProxyError:
                # The records of these partitions are not written and keep their error. A retry starts again.
                break
            entry, is_first = found, found.intent == own
        return entry

    def _release(self, lease: _Lease) -> None:
        if len(self._free) < leases_free_max and len(lease.sequences) <= lease_partitions_max:
            self._free.append(lease)


def _by_partition(
    records: Sequence[OutgoingRecord | ProxyError], fingerprint: bytes, partitions: tuple[int, ...]
) -> dict[int, list[int]]:
    """Positions of the records for each partition."""
    found: dict[int, list[int]] = {}
    keyless = partitions[fingerprint[0] % len(partitions)]
    for position, record in enumerate(records):
        if isinstance(record, ProxyError):
            continue
        if record.partition is not None and record.partition not in partitions:
            raise PartitionNotFound
        if record.partition is not None:
            partition = record.partition
        else:
            partition = partition_of(record.key, partitions) if record.key is not None else keyless
        found.setdefault(partition, []).append(position)
    return found


def _other_body() -> Unprocessable:
    return Unprocessable("This Idempotency-Key was used with another request body.")
