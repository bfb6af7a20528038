"""Errors of the data source. `source_error` maps the errors of the Kafka client to them.

    SourceError
    ├── BadOption            an option has an invalid value
    ├── BrokerUnreachable    no broker responds
    ├── NotAuthenticated     TLS or SASL authentication failed
    ├── NotAuthorized        an ACL denies the operation
    ├── TopicMissing         a topic or partition does not exist
    ├── DataLost             records of the offset range are gone
    ├── UnreadableBatch      a record batch cannot be decoded
    ├── UnwritableRow        a row cannot become a record
    └── BrokerRefused        any other error of a broker

Spark prints the message after a traceback, so the first line is complete.
"""

from headgate.kafka_client import errors as client
from headgate.kafka_client.aiokafka_errors import client_error


class SourceError(Exception):
    """The root of the tree above."""


class BadOption(SourceError):
    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"Option '{option}': {problem}")
        self.option = option
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        # Spark pickles errors. By default, unpickling calls the constructor with the message.
        return _restored, (type(self), str(self), {"option": self.option, "problem": self.problem})


class BrokerUnreachable(SourceError):
    pass


class NotAuthenticated(SourceError):
    pass


class NotAuthorized(SourceError):
    pass


class TopicMissing(SourceError):
    pass


class DataLost(SourceError):
    ADVICE = (
        "To read on with what is there, set the option failOnDataLoss to false; "
        "to keep records for longer, raise the topic's retention.ms or retention.bytes."
    )

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem} {self.ADVICE}")

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), str(self), {})


class UnreadableBatch(SourceError):
    pass


class UnwritableRow(SourceError):
    pass


class BrokerRefused(SourceError):
    pass


def _restored(kind: type[SourceError], message: str, fields: dict[str, object]) -> SourceError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    for name, value in fields.items():
        setattr(error, name, value)
    return error


_TABLE: dict[type[client.KafkaClientError], type[SourceError]] = {
    client.BrokerUnavailable: BrokerUnreachable,
    client.NotAuthenticated: NotAuthenticated,
    client.NotAuthorized: NotAuthorized,
    client.TopicNotFound: TopicMissing,
    client.PartitionNotFound: TopicMissing,
}


def source_error(error: BaseException) -> SourceError:
    """Maps an error of the Kafka client, of aiokafka or of a socket to a `SourceError`."""
    if isinstance(error, SourceError):
        return error
    found = client_error(error)
    if isinstance(found, client.InvalidProperty):
        return BadOption(found.name, found.problem)
    return _TABLE.get(type(found), BrokerRefused)(str(found))
