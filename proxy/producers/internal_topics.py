"""Topics that clients of the proxy may not write to.

- Kafka's internal topics. Brokers also reject these writes, except from the client id `__admin_client`.
- `idempotency.topic`, which contains the outcomes of requests with an Idempotency-Key. The proxy writes to it as an
  ordinary Kafka client. Without ACLs, every other Kafka client can write to it too. This check protects it from
  clients of the HTTP API.
"""

from typing import Final

from headgate.kafka_client.errors import NotAuthorized
from headgate.proxy.settings import ProxySettings

KAFKA_INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def check_writable(topic: str, settings: ProxySettings) -> None:
    """Raises NotAuthorized."""
    if topic in KAFKA_INTERNAL_TOPICS or topic == settings.idempotency_topic:
        raise NotAuthorized(f"The topic {topic} is internal. Clients cannot write to it.")
