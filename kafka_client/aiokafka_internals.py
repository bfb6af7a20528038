"""The only module that depends on internals of aiokafka: private attributes, subclasses, `__class__` assignment.

aiokafka provides connections, TLS, SASL, metadata and the consumer group protocol. pyproject.toml limits its version,
because every 0.x release may change these internals.

- `MetadataClient` overrides `_metadata_update`, `_get_conn`, `bootstrap`, `add_topic` and `set_topics` of the client.
  It uses `_conns`, `_get_conn_lock`, `_on_connection_closed`, `_topics`, `_md_update_fut`, `_md_update_waiter`, the
  attributes of the connection options, and `_writer` of a connection. Reason: metadata requests must not create topics,
  an unresponsive bootstrap address must not delay the others, and a connection that was reset must not raise
  RuntimeError.
- `adopt_client` assigns `__class__`, because consumers create their own client.
- `connect_timeout` sets `_request_timeout_ms`, because aiokafka has one timeout for connecting and for requests.
- `BrokerConnection` overrides `_create_reader_task`. It uses `_requests`, `_correlation_id`, `_protocol`, `_writer` and
  `_handle_frame`. Reason: aiokafka copies every fetched byte three times, and its reader task delays every response.
- `client_of`, `intercept_requests` and `fetch_committed_offsets` use `_client` and `_coordinator` of a consumer, for
  bounded decompression (`kafka_client.consumer`) and for offsets of several partitions in one request.

`kafka_client.producer` replaces aiokafka's producer, which lacks three features:

- a time limit for all attempts together
- an error that tells whether the records may have been written
- batches with a producer id and sequence number of the caller
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Any, Final, Protocol, cast

from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.protocol.metadata import MetadataRequest

from headgate.kafka_client.bootstrap import first_responding

SIZE_BYTES: Final = 4
"""Every response starts with its size, a signed 32-bit integer."""
RESPONSE_BYTES_MAX: Final = 2**31 - 1
SMALL_FIELD_BYTES_MAX: Final = 4096
"""Fields up to this size, such as names and numbers, are copied from a response. Record batches are not copied."""

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


class MetadataClient(_Client):  # type: ignore[misc]  # aiokafka has no type hints
    """aiokafka's client with corrected bootstrap and metadata updates. All connections of all packages use it.

    - Metadata requests never create topics. aiokafka allows auto-creation in every request, so that a refresh would
      re-create a deleted topic. Only a produce may create a topic, with an explicit request.
    - If the topics change during an update, the update is repeated at once. aiokafka waits for `metadata_max_age_ms`.
    - A bootstrap address that accepts connections but never responds does not delay the others.
    - If no known broker responds, the client asks the bootstrap addresses again (KIP-899). aiokafka never does.
    """

    _topics: set[str]

    @property
    def hosts(self) -> list[Any]:
        """The bootstrap addresses: first the last one that responded, then the others in random order."""
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
        if self._sasl_mechanism == "OAUTHBEARER" and not self.cluster.brokers():
            # aiokafka ignores the authentication error of RFC 7628, section 3.2.2. Kafka then sends empty responses.
            raise kafka.SaslAuthenticationFailed("the token is not valid")

    async def _handshake(self, address: Any) -> None:
        """Connect, exchange ApiVersions and authenticate. Raises aiokafka's errors."""
        (await self._connect(*address[:2])).close()

    async def _connect(self, host: str, port: int, **more: Any) -> Any:
        options = {name: getattr(self, f"_{name}") for name in _CONNECTION_OPTIONS}
        return await connect(host, port, **options, **more)

    def force_metadata_update(self) -> Any:
        # Wake the synchronizer even if an update is in progress or overdue. aiokafka does so only without an update.
        self._wake_synchronizer()
        return super().force_metadata_update()

    def add_topic(self, topic: str) -> Any:
        if topic in self._topics:
            return super().add_topic(topic)
        # Assign a new set, so that the synchronizer detects that an update in progress lacks the topic.
        self._topics = {*self._topics, topic}
        return self.force_metadata_update()

    def set_topics(self, topics: Collection[str]) -> Any:
        result = super().set_topics(topics)
        if self._md_update_fut is not None:
            self._wake_synchronizer()
        return result

    def connected_nodes(self) -> set[int]:
        """The brokers with an open connection."""
        return {key[0] for key, connection in self._conns.items() if connection.connected()}

    async def _get_conn(
        self, node_id: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> Any:
        connection = self._conns.get((node_id, group))
        if connection is None or not connection.connected():
            return await self._open((node_id, group))
        if connection._writer.transport.is_closing():
            # The broker has reset the connection. A write to the closed transport raises RuntimeError in uvloop.
            connection.close(reason=CloseReason.CONNECTION_BROKEN)
            return await self._open((node_id, group))
        return connection

    async def _open(self, key: tuple[Any, ConnectionGroup]) -> Any:
        async with self._get_conn_lock:
            connection = self._conns.get(key)
            if connection is not None and connection.connected():
                return connection
            broker = self.cluster.broker_metadata(key[0])
            try:
                if broker is None:
                    raise kafka.StaleMetadata(f"the metadata does not contain broker {key[0]}")
                self._conns[key] = await self._connect(
                    broker.host,
                    broker.port,
                    on_close=self._on_connection_closed,
                    max_idle_ms=self._connections_max_idle_ms,
                )
            except (OSError, kafka.KafkaError) as error:
                _log.error("Connection to node %s failed: %s", key[0], error)
                self._conns.pop(key, None)
                self.force_metadata_update()
                return None
            return self._conns[key]

    def _wake_synchronizer(self) -> None:
        if not self._md_update_waiter.done():
            self._md_update_waiter.set_result(None)

    async def _metadata_update(self, cluster_metadata: Any, topics: Collection[str] | None) -> bool:
        """Send the request to brokers in random order until one responds. Returns False if none does.

        If no known broker responds, the request goes to a bootstrap address (re-bootstrap, KIP-899): all brokers may
        have new addresses.
        """
        request = MetadataRequest(list(topics) if topics else None, allow_auto_topic_creation=False)
        nodes: list[Any] = [broker.nodeId for broker in self.cluster.brokers()]
        if _BOOTSTRAP in self._conns:
            nodes.append("bootstrap")
        # SystemRandom: background tasks must not change the seeded generator of an application.
        for node in random.SystemRandom().sample(nodes, len(nodes)):
            connection = await self._get_conn(node)
            if connection is None:
                continue
            try:
                metadata = await connection.send(request)
            except (TimeoutError, kafka.KafkaError) as error:
                _log.warning("Metadata request to node %s failed: %r", node, error)
                continue
            return self._apply(cluster_metadata, metadata)
        try:
            metadata = await self._bootstrap_metadata(request)
        except (TimeoutError, OSError, kafka.KafkaError) as error:
            _log.error("No broker of %s and no bootstrap address responded to a metadata request: %r", nodes, error)
            cluster_metadata.failed_update(None)
            return False
        return self._apply(cluster_metadata, metadata)

    async def _bootstrap_metadata(self, request: Any) -> Any:
        host, port, _ = await first_responding(self.hosts, self._handshake)
        connection = await self._connect(host, port)
        try:
            return await connection.send(request)
        finally:
            connection.close()

    def _apply(self, cluster_metadata: Any, metadata: Any) -> bool:
        if not metadata.brokers:
            return False  # The node has just started and has no metadata yet.
        cluster_metadata.update_metadata(metadata)
        if _BOOTSTRAP in self._conns and self.cluster.brokers():
            self._conns.pop(_BOOTSTRAP).close()
        return True


def client_of(consumer: Any) -> Any:
    """Returns the client of a consumer."""
    return consumer._client


def adopt_client(consumer: Any) -> None:
    """Turn the client of an aiokafka consumer into a MetadataClient."""
    client = client_of(consumer)
    assert type(client) is AIOKafkaClient
    client.__class__ = MetadataClient


async def fetch_committed_offsets(consumer: Any, partitions: Collection[Any]) -> Any:
    """Returns committed offsets in one request, even of unassigned partitions. aiokafka sends one per partition."""
    return await consumer._coordinator.fetch_committed_offsets(partitions)


def intercept_requests(consumer: Any, intercept: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Send the consumer's requests through `intercept`. Returns the function that sends them to the broker."""
    send: Callable[..., Awaitable[Any]] = consumer._client.send
    consumer._client.send = intercept
    return send


@contextlib.contextmanager
def connect_timeout(client: Any, timeout_ms: int) -> Iterator[None]:
    """Limit the time of requests while the client connects to its first broker."""
    request_timeout_ms = client._request_timeout_ms
    client._request_timeout_ms = min(request_timeout_ms, timeout_ms)
    try:
        yield
    finally:
        client._request_timeout_ms = request_timeout_ms


class ReceiveBuffer(Protocol):
    def room(self, size: int) -> memoryview:
        """Memory for one response."""


async def connect(host: str, port: int, **arguments: Any) -> "BrokerConnection":
    """Open a connection, exchange ApiVersions and authenticate. Raises aiokafka's errors, OSError."""
    connection = BrokerConnection(host, port, **arguments)
    await connection.connect()  # type: ignore[no-untyped-call]
    return connection


class BrokerConnection(AIOKafkaConnection):
    """A connection that handles responses as they arrive, without a reader task. Open it with `connect`.

    `fetch` receives a response into a buffer of the caller, without copying the record batches. It can be called again
    before the previous response has arrived.
    """

    def __init__(self, host: str, port: int, **arguments: Any) -> None:
        super().__init__(host, port, **arguments)  # type: ignore[no-untyped-call]
        self._buffers: dict[int | None, ReceiveBuffer] = {}
        """Buffers by the correlation id of the request."""

    @property
    def is_open(self) -> bool:
        return bool(self.connected())  # type: ignore[no-untyped-call]

    def fetch(self, request: Any, buffer: ReceiveBuffer) -> Awaitable[Any]:
        """Returns the response. Its record batches are views of the buffer. Raises aiokafka's errors, TimeoutError."""
        response = self.send(request)  # type: ignore[no-untyped-call]
        self._buffers[self._correlation_id] = buffer
        return cast(Awaitable[Any], response)

    def room(self, size: int) -> memoryview:
        """Returns memory for the current response."""
        if not 0 < size <= RESPONSE_BYTES_MAX:
            raise kafka.KafkaConnectionError(f"{self} sent a response of {size} bytes")
        waiting = self._requests[0][0] if self._requests else 0
        buffer = self._buffers.get(waiting)
        return memoryview(bytearray(size)) if buffer is None else buffer.room(size)

    def received(self, frame: memoryview) -> None:
        correlation_id, request, waiting = self._requests[0]
        if self._buffers.pop(correlation_id, None) is None:
            self._handle_frame(bytes(frame))  # type: ignore[no-untyped-call]
            return
        fields = _FieldReader(frame)
        if request.parse_response_header(fields).correlation_id != correlation_id:
            raise kafka.CorrelationIdError(f"{self} did not respond to request {correlation_id}")
        if not waiting.done():
            waiting.set_result(request.RESPONSE_TYPE.decode(fields))
        self._requests.popleft()

    def end(self, reason: CloseReason | None = None, error: Exception | None = None) -> None:
        """Close the connection. In-flight requests fail."""
        self.close(reason=reason, exc=error)  # type: ignore[no-untyped-call]

    def _create_reader_task(self) -> "asyncio.Future[None]":
        """Start receiving. aiokafka calls this method after it connects."""
        assert self._protocol is not None
        assert self._writer is not None
        receiver = _Receiver(self, self._protocol)
        self._writer.transport.set_protocol(receiver)
        return receiver.ended


class _Receiver(asyncio.BufferedProtocol):
    """Splits the byte stream into responses. aiokafka's protocol handles all other callbacks."""

    def __init__(self, connection: BrokerConnection, stream: asyncio.StreamReaderProtocol) -> None:
        self._connection = connection
        self._stream = stream
        self._size = memoryview(bytearray(SIZE_BYTES))
        self._target = self._size
        self._filled = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._target[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        if self._filled < len(self._target):
            return
        target, self._filled = self._target, 0
        try:
            if target is self._size:
                self._target = self._connection.room(int.from_bytes(target))
            else:
                self._target = self._size
                self._connection.received(target)
        except Exception as error:
            # The response is malformed, so the position of the next response is unknown.
            self._connection.end(CloseReason.OUT_OF_SYNC, error)

    def pause_writing(self) -> None:
        self._stream.pause_writing()

    def resume_writing(self) -> None:
        self._stream.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._stream.connection_lost(error)
        self._connection.end(CloseReason.CONNECTION_BROKEN, error)


class _FieldReader:
    """Implements the file methods that aiokafka's decoders use. Does not copy large fields."""

    def __init__(self, frame: memoryview) -> None:
        self._frame = frame
        self._at = 0

    def read(self, size: int) -> bytes | memoryview:
        field = self._frame[self._at : self._at + size]
        self._at += len(field)
        return bytes(field) if size <= SMALL_FIELD_BYTES_MAX else field
