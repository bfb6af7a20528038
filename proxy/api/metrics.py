"""Metrics of the REST proxy, in addition to those of every HTTP server (`web.metrics`)."""

from collections.abc import Iterator

from headgate.proxy.services import Services
from headgate.web.metrics import ServiceMetric


def proxy_metrics(services: Services) -> Iterator[ServiceMetric]:
    readers = services.readers
    for name, help_text, value in (
        ("headgate_proxy_consumer_instances", "Open v2 consumer instances.", len(services.consumers)),
        ("headgate_proxy_streams", "Open streams of stateless reads.", readers.streams),
        ("headgate_proxy_stream_bytes", "Memory of streams and pages.", readers.memory.bytes),
        ("headgate_proxy_producer_pending_bytes", "Records that wait for brokers.", services.sender.pending_bytes),
    ):
        yield ServiceMetric(name, help_text, value)
    for reason, count in services.payloads.poison.items():
        yield ServiceMetric(
            "headgate_poison_records", "Records that could not be decoded.", count, (("reason", reason.name),), True
        )
