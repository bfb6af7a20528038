"""Maps the exceptions of aiokafka and of sockets to the errors of this package."""

from typing import Final

from aiokafka import errors as kafka
from kio.schema.errors import ErrorCode

from headgate.kafka_client.diagnosis import REJECTED_CREDENTIALS
from headgate.kafka_client.errors import (
    BrokerError,
    BrokerUnavailable,
    KafkaClientError,
    NotAuthenticated,
    RetriableError,
    broker_error,
)

CONNECTION_ERRORS: Final = (
    kafka.KafkaConnectionError,
    kafka.NodeNotReadyError,
    kafka.StaleMetadata,
    kafka.ProducerClosed,
    OSError,
)
"""TimeoutError is a subclass of OSError."""
_CODES: Final = frozenset(code.value for code in ErrorCode)


def client_error(error: BaseException) -> KafkaClientError:
    if isinstance(error, KafkaClientError):
        return error
    text = str(error) or type(error).__name__
    if isinstance(error, REJECTED_CREDENTIALS):
        return NotAuthenticated(text)
    if isinstance(error, CONNECTION_ERRORS):
        return BrokerUnavailable(f"No broker responded: {text.rstrip('.')}. Check that the brokers are running.")
    if isinstance(error, kafka.BrokerResponseError) and error.errno in _CODES:
        return broker_error(ErrorCode(error.errno), text, str(error.args[0]) if error.args else "")
    if isinstance(error, kafka.KafkaError) and error.retriable:
        return RetriableError(text)
    return BrokerError(text)
