"""One exception class per kind of error, in addition to the errors of the Kafka client.

`proxy.api.errors` maps both to HTTP status and error code.
"""

from typing import TypeAlias

from headgate.kafka_client.errors import BufferFull, KafkaClientError, ProducerClosed

ProxyError: TypeAlias = KafkaClientError
"""The base class of both. The text is the message of the error response."""


class BadRequest(ProxyError):
    """The request is invalid: not JSON, or a field with a wrong value."""


class InvalidConsumerConfig(ProxyError):
    """A consumer configuration has an unknown name."""


class InvalidConsumerConfigValue(ProxyError):
    """A consumer configuration has an invalid value."""


class ConsumerInstanceNotFound(ProxyError):
    def __init__(self, message: str = "Consumer instance not found.") -> None:
        super().__init__(message)


class FormatMismatch(ProxyError):
    """`Accept` does not match the format of the consumer instance."""


class SchemaUnavailable(ProxyError):
    """A schema could not be fetched or registered."""


class SchemaNotFound(SchemaUnavailable):
    """The registry has no schema with this id, subject or version. v3 reports it as SerializationFailed."""


class AlreadySubscribed(ProxyError): ...


class ConsumerExists(ProxyError): ...


class IllegalState(ProxyError):
    """The state does not allow the request, such as an assignment of a subscribed consumer."""


class KeySchemaMissing(ProxyError): ...


class ValueSchemaMissing(ProxyError): ...


class ConversionFailed(ProxyError):
    """JSON does not match its schema, or a payload cannot be converted to JSON."""


class InvalidSchemaGiven(ProxyError): ...


class InvalidPayload(ProxyError): ...


class SerializationFailed(ProxyError): ...


class InvalidBatch(ProxyError): ...


class Unprocessable(ProxyError):
    """The JSON has a wrong structure for this request."""


class OwnerUnavailable(ProxyError):
    """The worker that owns the consumer is not available."""


class NotAcceptable(ProxyError):
    def __init__(self, message: str = "HTTP 406 Not Acceptable") -> None:
        super().__init__(message)


class BodyTooLarge(ProxyError): ...


class BodyTimedOut(ProxyError):
    """The client did not send the rest of the body in time."""


class UnsupportedMedia(ProxyError):
    def __init__(self, message: str = "HTTP 415 Unsupported Media Type") -> None:
        super().__init__(message)


class TooManyRequests(BufferFull):
    """A limit is reached. The client may retry after `retry_after_seconds`."""

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ShuttingDown(ProducerClosed):
    """The proxy is stopping. The client may retry later or with another worker."""
