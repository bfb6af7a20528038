"""Maps the errors of the Kafka client to the errors of the proxy: the only such table."""

from collections.abc import Callable, Mapping
from typing import Final

from aiokafka import errors as kafka

from headgate.kafka_client import errors as client
from headgate.kafka_client.aiokafka_errors import client_error
from headgate.proxy import errors as proxy
from headgate.proxy.errors import ProxyError

_TABLE: Final[Mapping[type[client.KafkaClientError], Callable[[str], ProxyError]]] = {
    client.InvalidProperty: proxy.BrokerUnavailable,
    client.BrokerUnavailable: proxy.BrokerUnavailable,
    client.NotAuthenticated: proxy.NotAuthenticated,
    client.NotAuthorized: proxy.NotAuthorized,
    client.TopicNotFound: lambda _: proxy.TopicNotFound(),
    client.PartitionNotFound: proxy.PartitionNotFound,
    client.LeaderNotFound: proxy.LeaderNotFound,
    client.GroupNotFound: proxy.GroupNotFound,
    client.ResourceNotFound: proxy.ResourceNotFound,
    client.GroupNotEmpty: proxy.IllegalState,
    client.InvalidRequest: proxy.KafkaBadRequest,
    client.ValueTooLong: proxy.BadRequest,
    client.NothingCommitted: proxy.BadRequest,
    client.RecordTooLarge: proxy.InvalidPayload,
    client.BufferFull: proxy.TooManyRequests,
    client.ProducerClosed: proxy.ShuttingDown,
    client.RetriableError: proxy.KafkaRetriable,
    client.BrokerError: proxy.KafkaFailed,
}


def proxy_error(error: BaseException) -> ProxyError:
    """The proxy's error for an error of the Kafka client, of aiokafka or of a socket."""
    if isinstance(error, ProxyError):
        return error
    if isinstance(error, kafka.InvalidGroupIdError):
        return proxy.GroupNotFound(str(error))
    if isinstance(error, kafka.NotLeaderForPartitionError):
        return proxy.LeaderNotFound(f"No leader for the partition: {error}")
    found = client_error(error)
    if isinstance(error, kafka.KafkaStorageError):
        return proxy.KafkaRetriable("The broker cannot write to its disk, which may be full.")
    kind = next(_TABLE[each] for each in type(found).__mro__ if each in _TABLE)
    mapped = kind(str(found))
    mapped.subject, mapped.kafka_code, mapped.kafka_message = found.subject, found.kafka_code, found.kafka_message
    return mapped
