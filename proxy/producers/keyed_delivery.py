"""Batches of one request with an Idempotency-Key: one per partition. The caller journals their sequence numbers."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headgate.kafka_client.errors import BrokerError, PartitionNotFound
from headgate.kafka_client.producer.records import Batch, OutgoingRecord, ProducerIdentity, Ticket, settled
from headgate.proxy.errors import InvalidPayload, ProxyError, ShuttingDown
from headgate.proxy.producers.outcome_log import Intent
from headgate.proxy.producers.sender import Sender


class _Row(NamedTuple):
    tickets: list[Ticket]
    positions: list[int]
    """Positions of the records in the request."""

    @property
    def batch(self) -> Batch:
        return self.tickets[0].batch


class KeyedDelivery:
    def __init__(
        self,
        sender: Sender,
        topic: str,
        records: Sequence[OutgoingRecord | ProxyError],
        partitions: Sequence[int],
    ) -> None:
        self._sender = sender
        self._topic = topic
        self._records = records
        self._partitions = partitions
        self._built: dict[int, _Row] = {}
        """Unsent batches by partition."""
        self._sent: dict[int, _Row] = {}

    def build(self, rows: Mapping[int, list[int]]) -> None:
        """Encodes the records of each partition and reserves buffer memory. Raises ProxyError before it builds any."""
        chosen = [(partition, self._chosen(partition, positions)) for partition, positions in rows.items()]
        for tickets, (partition, positions) in zip(self._sender.build(self._topic, chosen), rows.items(), strict=True):
            self._built[partition] = _Row(tickets, positions)

    def discard(self) -> None:
        """Releases unsent batches."""
        unsent, self._built = self._built, {}
        self._sender.discard([row.batch for row in unsent.values()], ShuttingDown("The request was given up."))

    async def send(self, intent: Intent, *, may_be_written: bool) -> None:
        """Sends the built batches with the numbers of the intent. Returns when each batch is settled."""
        numbers = {partition: sequence for partition, sequence, _ in intent.rows}
        built, self._built = self._built, {}
        self._sent.update(built)
        for partition, row in built.items():
            identity = ProducerIdentity(*intent.producer_of(partition))
            self._sender.send_as(identity, numbers[partition], row.batch, may_be_written=may_be_written)
        for row in built.values():
            await settled(row.tickets)

    def lost(self) -> dict[int, list[int]]:
        """Returns the partitions whose batch is not stored because a broker rejected its numbers."""
        return {partition: row.positions for partition, row in self._sent.items() if row.batch.identity_lost}

    def placed(self) -> list[Ticket | ProxyError]:
        """Returns the ticket of each record in the request, or the error of a record without a ticket."""
        placed: list[Ticket | ProxyError] = [
            record if isinstance(record, ProxyError) else _refused_before() for record in self._records
        ]
        for row in self._sent.values():
            for position, ticket in zip(row.positions, row.tickets, strict=True):
                placed[position] = ticket
        return placed

    def _chosen(self, partition: int, positions: list[int]) -> list[OutgoingRecord]:
        if partition not in self._partitions:
            raise PartitionNotFound
        chosen: list[OutgoingRecord] = []
        for position in positions:
            if not 0 <= position < len(self._records):  # Any Kafka client may write to the topic.
                raise BrokerError("The journal entry of this Idempotency-Key does not match the request.")
            record = self._records[position]
            if isinstance(record, ProxyError):
                # The first attempt sent this record. A batch must be sent again with the same records.
                raise record
            chosen.append(record)
        return chosen


def _refused_before() -> ProxyError:
    return InvalidPayload("This record was refused when the request was first sent. Use a new Idempotency-Key.")
