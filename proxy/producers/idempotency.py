"""Requests with an `Idempotency-Key` header: the records are written once, even if the client retries.

1. Before it sends records, the proxy journals the *intent* of the request (`outcome_log`). The intent contains a
   producer id and sequence numbers that no other request uses.
2. A retry sends its records with the same numbers. It may reach another worker, or follow a crash. Brokers drop the
   batches that they already have (KIP-98).
3. After sending, the proxy journals the response (the *outcome*). Later retries get this response and send no records.
   The producer id is then free for the next request.

A broker that lost the sequence rejects the numbers and does not write the records. The proxy then journals a new intent
with a new producer id for the affected partitions, and sends these records again. Other partitions keep their numbers.
If another worker has finished the request meanwhile, its outcome precedes the new intent and takes effect.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.kafka_client.errors import PartitionNotFound
from headgate.kafka_client.producer.partition_queue import SEQUENCES
from headgate.kafka_client.producer.partitioner import partition_of
from headgate.kafka_client.producer.records import OutgoingRecord, ProducerIdentity, Ticket
from headgate.proxy.errors import BadRequest, ProxyError, Unprocessable
from headgate.proxy.producers.keyed_delivery import KeyedDelivery
from headgate.proxy.producers.outcome_log import Entry, Intent, Outcome, OutcomeLog
from headgate.proxy.producers.sender import Sender

key_characters_max: Final = 255
# Size of one response in the journal, below the brokers' limit for a record.
answer_bytes_max: Final = 900_000
# New producer ids that one request may use after a broker has rejected its numbers.
restarts_max: Final = 3
# Producer ids kept for later requests, about as many as run concurrently. Further ids are abandoned.
leases_free_max: Final = 256
# Partitions for which a lease stores the sequence number. A lease with more partitions is abandoned.
lease_partitions_max: Final = 256

Prepare = Callable[[], Awaitable[Sequence[OutgoingRecord | ProxyError]]]
"""Returns the records of the request by position. An error replaces a record that cannot be sent."""
Conclude = Callable[[Sequence[Ticket | ProxyError]], Awaitable[tuple[bytes, bool]]]
"""Returns the response body, and whether it is final. It is final if every sent record is stored."""


@dataclass(slots=True)
class _Lease:
    """A producer id that at most one request uses at a time."""

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
        """Raises ProxyError. The journal then contains only records that may have been written."""
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
            # Return early: a request without records to write must not create a missing topic.
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
                # Another attempt of this request was first. Use its numbers and its partitions.
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
                # The records are stored. A retry uses the same numbers, so the brokers drop the duplicates.
                return Answered(body, False)
            if lease is not None and entry.intent is first:
                lease.advance(topic, entry.intent)
                self._release(lease)
        return Answered(body, False)

    async def _announce(
        self, name: bytes, fingerprint: bytes, topic: str, rows: dict[int, list[int]]
    ) -> tuple[_Lease | None, Entry]:
        """Journals a first intent. Returns the entry that is in effect, and the lease if this intent is in effect.

        After an error, the producer id is not reused, because the intent may be in the journal.
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
        """Sends until every batch has a response. Returns the entry that is in effect."""
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
                # The records of these partitions are not written and keep their error. The client can retry.
                break
            entry, is_first = found, found.intent == own
        return entry

    def _release(self, lease: _Lease) -> None:
        if len(self._free) < leases_free_max and len(lease.sequences) <= lease_partitions_max:
            self._free.append(lease)


def _by_partition(
    records: Sequence[OutgoingRecord | ProxyError], fingerprint: bytes, partitions: tuple[int, ...]
) -> dict[int, list[int]]:
    """Returns the positions of the records by partition."""
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
