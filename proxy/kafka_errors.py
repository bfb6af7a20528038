"""Turns exceptions of aiokafka and of sockets into errors that the proxy reports."""

from aiokafka import errors as kafka

from headgate.kafka_client.aiokafka_errors import client_error
from headgate.kafka_client.errors import GroupNotFound, LeaderNotFound, RetriableError
from headgate.proxy.errors import ProxyError


def proxy_error(error: BaseException) -> ProxyError:
    """The codes of some errors differ from those of the Kafka client, as in Confluent's REST Proxy."""
    if isinstance(error, kafka.InvalidGroupIdError):
        return GroupNotFound(str(error))
    if isinstance(error, kafka.NotLeaderForPartitionError):
        return LeaderNotFound(f"No leader for the partition: {error}")
    if isinstance(error, kafka.KafkaStorageError):
        return RetriableError("The broker cannot write to its disk, which may be full.")
    return client_error(error)
