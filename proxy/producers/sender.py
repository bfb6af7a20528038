"""Producer of the proxy: `kafka_client.producer` with the settings of the proxy."""

from typing import Final

from headgate.kafka_client.producer.connection import ProducerConnection
from headgate.kafka_client.producer.options import ProducerOptions
from headgate.kafka_client.producer.producer import Producer
from headgate.proxy.settings import ProxySettings

BATCH_OVERHEAD_BYTES: Final = 200
"""Space reserved for the header of a batch."""


class Sender(Producer):
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
