"""One typed error per fault of the proxy. `FAULTS` is the one table of HTTP statuses and codes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

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


class BrokerUnavailable(ProxyError):
    """No broker can be reached."""


class ShuttingDown(ProxyError):
    """The proxy stops; another one, or this one later, will serve."""


class Fault(NamedTuple):
    status: int
    error_code: int


FAULTS: Mapping[type[ProxyError], Fault] = {
    BadRequest: Fault(400, 400),
    InvalidConsumerConfig: Fault(422, 40001),
    KafkaBadRequest: Fault(400, 40002),
    NotAuthenticated: Fault(401, 40101),
    NotAuthorized: Fault(403, 40301),
    ResourceNotFound: Fault(404, 404),
    TopicNotFound: Fault(404, 40401),
    PartitionNotFound: Fault(404, 40402),
    ConsumerInstanceNotFound: Fault(404, 40403),
    LeaderNotFound: Fault(404, 40404),
    GroupNotFound: Fault(404, 40405),
    NotAcceptable: Fault(406, 406),
    FormatMismatch: Fault(406, 40601),
    SchemaUnavailable: Fault(408, 40801),
    AlreadySubscribed: Fault(409, 40901),
    ConsumerExists: Fault(409, 40902),
    IllegalState: Fault(409, 40903),
    BodyTooLarge: Fault(413, 413),
    BodyTimedOut: Fault(408, 408),
    UnsupportedMedia: Fault(415, 415),
    Unprocessable: Fault(422, 422),
    KeySchemaMissing: Fault(422, 42201),
    ValueSchemaMissing: Fault(422, 42202),
    ConversionFailed: Fault(422, 42203),
    InvalidConsumerConfigValue: Fault(422, 42204),
    InvalidSchemaGiven: Fault(422, 42205),
    InvalidPayload: Fault(422, 42206),
    SerializationFailed: Fault(422, 42207),
    InvalidBatch: Fault(422, 42208),
    TooManyRequests: Fault(429, 429),
    KafkaFailed: Fault(500, 50002),
    KafkaRetriable: Fault(500, 50003),
    BrokerUnavailable: Fault(503, 50302),
    OwnerUnavailable: Fault(503, 50302),
    ShuttingDown: Fault(503, 50302),
}


def fault_of(error: ProxyError) -> Fault:
    for kind in type(error).__mro__:
        if kind in FAULTS:
            return FAULTS[kind]
    return Fault(500, 500)
