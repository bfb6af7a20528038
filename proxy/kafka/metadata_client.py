"""aiokafka's client with corrections to bootstrap and metadata updates. All connections of proxy and CLI use it.

- Metadata requests never create topics. aiokafka allows auto-creation in every request, so that a refresh brings back a
  topic that was deleted, and a subscription creates a topic that is missing. Only a produce may create a topic, with a
  request of its own (`proxy.producers.link`).
- A change of the topics during an update repeats the update at once. aiokafka waits a full `metadata_max_age_ms`
  instead, and so does everyone who forces an update meanwhile.
- A bootstrap address that accepts connections and never responds does not delay the others. aiokafka waits for the full
  request timeout, which is all the time that a request of the proxy has.
"""

import logging
import random
from collections.abc import Collection
from typing import Any, Final

from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import create_conn
from aiokafka.protocol.metadata import MetadataRequest

from headgate.proxy.kafka.bootstrap import first_responding

_CONNECTION_OPTIONS: Final = (
    "client_id",
    "request_timeout_ms",
    "security_protocol",
    "ssl_context",
    "sasl_mechanism",
    "sasl_plain_username",
    "sasl_plain_password",
    "sasl_kerberos_service_name",
    "sasl_kerberos_domain_name",
    "sasl_oauth_token_provider",
)
_BOOTSTRAP: Final = ("bootstrap", ConnectionGroup.DEFAULT)
_log: Final = logging.getLogger("aiokafka")
_Client: Any = AIOKafkaClient


class MetadataClient(_Client):  # type: ignore[misc]  # aiokafka carries no types
    _topics: set[str]

    @classmethod
    def adopt(cls, client: Any) -> None:
        """Correct the client of one of aiokafka's consumers or producers, which make their own."""
        assert type(client) is AIOKafkaClient
        client.__class__ = cls

    @property
    def hosts(self) -> list[Any]:
        """The bootstrap addresses: the one that responded last comes first, the others follow in random order."""
        hosts: list[Any] = super().hosts
        return sorted(hosts, key=lambda host: host != getattr(self, "_responding", None))

    async def bootstrap(self) -> None:
        hosts = self.hosts
        if len(hosts) > 1:
            try:
                self._responding = await first_responding(hosts, self._handshake)
            except (TimeoutError, OSError, kafka.KafkaError) as error:
                raise kafka.KafkaConnectionError(f"Unable to bootstrap from {hosts}: {error}") from error
        await super().bootstrap()

    async def _handshake(self, address: Any) -> None:
        """Connect and exchange ApiVersions. Raises what aiokafka raises."""
        make: Any = create_conn
        host, port, _ = address
        connection = await make(host, port, **{name: getattr(self, f"_{name}") for name in _CONNECTION_OPTIONS})
        connection.close()

    def force_metadata_update(self) -> Any:
        # Also while an update is in progress or overdue: aiokafka wakes up the synchronizer only when there is none.
        self._wake_synchronizer()
        return super().force_metadata_update()

    def add_topic(self, topic: str) -> Any:
        if topic in self._topics:
            return super().add_topic(topic)
        # A new set, so that the synchronizer sees that an update in progress does not contain the topic.
        self._topics = {*self._topics, topic}
        return self.force_metadata_update()

    def set_topics(self, topics: Collection[str]) -> Any:
        result = super().set_topics(topics)
        if self._md_update_fut is not None:
            self._wake_synchronizer()
        return result

    def _wake_synchronizer(self) -> None:
        if not self._md_update_waiter.done():
            self._md_update_waiter.set_result(None)

    async def _metadata_update(self, cluster_metadata: Any, topics: Collection[str] | None) -> bool:
        """Ask brokers in random order until one answers. Returns False if none does."""
        request = MetadataRequest(list(topics) if topics else None, allow_auto_topic_creation=False)
        nodes: list[Any] = [broker.nodeId for broker in self.cluster.brokers()]
        if _BOOTSTRAP in self._conns:
            nodes.append("bootstrap")
        for node in random.sample(nodes, len(nodes)):
            connection = await self._get_conn(node)
            if connection is None:
                continue
            try:
                metadata = await connection.send(request)
            except (TimeoutError, kafka.KafkaError) as error:
                _log.warning("Metadata request to node %s failed: %r", node, error)
                continue
            if not metadata.brokers:
                return False  # the node has just started and knows no broker yet
            cluster_metadata.update_metadata(metadata)
            if _BOOTSTRAP in self._conns and self.cluster.brokers():
                self._conns.pop(_BOOTSTRAP).close()
            return True
        _log.error("No broker of %s answered a metadata request", nodes)
        cluster_metadata.failed_update(None)
        return False
