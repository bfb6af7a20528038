"""Producer of the proxy: `kafka_client.producer` with the settings and errors of the proxy."""

from collections.abc import Sequence
from typing import Final

from headgate.kafka_client.errors import KafkaClientError
from headgate.kafka_client.producer.connection import ProducerConnection
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.producer import Producer
from headgate.kafka_client.producer.records import Batch, OutgoingRecord, ProducerIdentity, Ticket
from headgate.proxy.kafka_errors import proxy_error
from headgate.proxy.settings import ProxySettings

BATCH_OVERHEAD_BYTES: Final = 200
"""Space reserved for the header of a batch."""


class Sender(Producer):
    """Methods and tickets raise ProxyError."""

    def __init__(self, settings: ProxySettings, link: ProducerConnection | None = None) -> None:
        options = ProducerOptions(
            batch_bytes_max=settings.producer_batch_bytes_max + BATCH_OVERHEAD_BYTES,
            record_bytes_max=settings.producer_batch_bytes_max,
            pending_bytes_max=settings.producer_pending_bytes_max,
            delivery_timeout_ms=settings.produce_timeout_ms,
            close_timeout_ms=settings.shutdown_graceful_ms,
            auto_create_topics=settings.auto_create_topics,
        )
        super().__init__(settings.connection, options, link)

    async def check_topic(self, topic: str) -> None:
        try:
            await super().check_topic(topic)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    async def partitions(self, topic: str) -> tuple[int, ...]:
        try:
            return await super().partitions(topic)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    async def place(self, topic: str, records: Sequence[OutgoingRecord], *, is_limited: bool = True) -> list[Ticket]:
        try:
            return await super().place(topic, records, is_limited=is_limited)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    def place_one(self, topic: str, record: OutgoingRecord, partitions: tuple[int, ...], now_ms: int) -> Ticket:
        try:
            return super().place_one(topic, record, partitions, now_ms)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    def build(self, topic: str, rows: Sequence[tuple[int, Sequence[OutgoingRecord]]]) -> list[list[Ticket]]:
        try:
            return super().build(topic, rows)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    def check_sizes(self, records: Sequence[OutgoingRecord]) -> None:
        try:
            super().check_sizes(records)
        except KafkaClientError as error:
            raise proxy_error(error) from error

    async def new_identity(self) -> ProducerIdentity:
        try:
            return await super().new_identity()
        except KafkaClientError as error:
            raise proxy_error(error) from error

    def _settle(self, batch: Batch, error: Exception | None = None) -> None:
        super()._settle(batch, None if error is None else proxy_error(error))
