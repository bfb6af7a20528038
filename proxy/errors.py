"""One exception class per kind of error. `proxy.api.errors` maps them to HTTP status and error code."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kio.schema.errors import ErrorCode


class ProxyError(Exception):
    """The root: its text is meant for the person who made the request."""

    subject: str = ""
    """What a broker was asked about, where it refused: `topic orders`."""
    kafka_code: "ErrorCode | None" = None
    kafka_message: str | None = None
    """The broker's own words, where it had any."""


class BadRequest(ProxyError):
    """The request itself is wrong: not JSON, a field that does not fit."""


class InvalidConsumerConfig(ProxyError):
    """A consumer was asked for with a configuration that does not exist."""


class InvalidConsumerConfigValue(ProxyError):
    """A consumer's configuration has a value that will not do."""


class KafkaBadRequest(ProxyError):
    """The broker calls the request wrong."""


class ApiUnsupported(KafkaBadRequest):
    """The broker does not support the API."""


class NotAuthenticated(ProxyError): ...


class NotAuthorized(ProxyError): ...


class TopicNotFound(ProxyError):
    def __init__(self, message: str = "Topic not found.") -> None:
        super().__init__(message)


class PartitionNotFound(ProxyError):
    def __init__(self, message: str = "Partition not found.") -> None:
        super().__init__(message)


class ConsumerInstanceNotFound(ProxyError):
    def __init__(self, message: str = "Consumer instance not found.") -> None:
        super().__init__(message)


class LeaderNotFound(ProxyError): ...


class GroupNotFound(ProxyError): ...


class ResourceNotFound(ProxyError):
    """A cluster, broker, replica or configuration that does not exist."""


class FormatMismatch(ProxyError):
    """The instance was created with one format and asked for another."""


class SchemaUnavailable(ProxyError):
    """A schema could not be fetched or registered."""


class SchemaNotFound(SchemaUnavailable):
    """The registry has no schema with this id, subject or version. v3 reports it as SerializationFailed."""


class AlreadySubscribed(ProxyError): ...


class ConsumerExists(ProxyError): ...


class IllegalState(ProxyError):
    """A consumer that is subscribed and is told to assign, or the other way round."""


class KeySchemaMissing(ProxyError): ...


class ValueSchemaMissing(ProxyError): ...


class ConversionFailed(ProxyError):
    """JSON that does not fit its schema, or a payload that does not become JSON."""


class InvalidSchemaGiven(ProxyError): ...


class InvalidPayload(ProxyError): ...


class SerializationFailed(ProxyError): ...


class InvalidBatch(ProxyError): ...


class Unprocessable(ProxyError):
    """JSON that is not what this request takes."""


class OwnerUnavailable(ProxyError):
    """The worker that holds the consumer does not answer."""


class NotAcceptable(ProxyError):
    def __init__(self, message: str = "HTTP 406 Not Acceptable") -> None:
        super().__init__(message)


class BodyTooLarge(ProxyError): ...


class BodyTimedOut(ProxyError):
    """The client stopped in the middle of a body."""


class UnsupportedMedia(ProxyError):
    def __init__(self, message: str = "HTTP 415 Unsupported Media Type") -> None:
        super().__init__(message)


class TooManyRequests(ProxyError):
    """Nothing more fits just now. `retry_after_seconds` says when to come back."""

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class KafkaFailed(ProxyError):
    """The broker refused or failed in a way that will not pass by itself."""


class KafkaRetriable(ProxyError):
    """The broker failed in a way that may pass."""


class Unsettled(KafkaRetriable):
    """A coordinator or leader is being elected."""


class BrokerUnavailable(ProxyError):
    """No broker can be reached."""


class ShuttingDown(ProxyError):
    """The proxy stops; another one, or this one later, will serve."""
