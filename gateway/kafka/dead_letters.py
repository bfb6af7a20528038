"""Writes poison records to the dead-letter topic of their topic."""

import time
from contextlib import AsyncExitStack

from headgate.gateway.kafka.cluster import connect
from headgate.gateway.kafka.producing import Sender, topic_to_produce_to
from headgate.gateway.records.record import NewRecord, Record
from headgate.kafka_client.options import ConnectionOptions
from headgate.serdes import Record as LetterRecord
from headgate.serdes import to_dead_letter

APPLICATION = "headgate-cli"


class DeadLetters:
    """Async context manager. Creates the topic with the first letter."""

    def __init__(self, connection: ConnectionOptions, topic: str, suffix: str) -> None:
        self.topic = topic + suffix
        self._connection = connection
        self._stack = AsyncExitStack()
        self._sender: Sender | None = None

    async def write(self, record: Record) -> None:
        """Returns after the acknowledgement. Raises KafkaClientError."""
        assert record.poison is not None
        origin = LetterRecord(
            record.topic,
            record.key,
            record.value,
            record.headers,
            record.partition,
            record.offset,
            record.timestamp_ms,
        )
        letter = to_dead_letter(
            origin,
            record.poison,
            dead_letter_topic=self.topic,
            application=APPLICATION,
            now_ms=time.time_ns() // 1_000_000,
            is_key=record.poison_part == "key",
        )
        sender = await self._opened()
        await sender.send(NewRecord(letter.key, letter.value, letter.headers))
        await sender.flush()

    async def _opened(self) -> Sender:
        if self._sender is None:
            async with connect(self._connection) as cluster:
                topic = await topic_to_produce_to(cluster, self.topic)
            sender = Sender(self._connection, topic, acks="all", compression="none", on_receipt=lambda _: None)
            self._sender = await self._stack.enter_async_context(sender)
        return self._sender

    async def __aenter__(self) -> "DeadLetters":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()
