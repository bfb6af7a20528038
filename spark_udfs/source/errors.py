"""What can be wrong with a read from a topic or a write to one, in words that say what to do about it.

    SourceError
    ├── BadOption            an option that cannot be meant
    ├── BrokerUnreachable    no broker answers
    ├── NotAuthenticated     the brokers refuse the name, the password or the certificate
    ├── NotAuthorized        the brokers know the user, and do not let them
    ├── TopicMissing         a topic or partition that is not there
    ├── DataLost             records that should be read and are gone
    ├── UnreadableBatch      records that are there and cannot be read
    ├── UnwritableRow        a row that cannot become a record
    └── BrokerRefused        anything else that a broker said no to

Spark shows the message to the user behind a traceback, so the first line says it all.
"""


class SourceError(Exception):
    """The root of the tree above."""


class BadOption(SourceError):
    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"Option '{option}': {problem}")
        self.option = option
        self.problem = problem

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between processes; by default they would be built again from their message.
        return _as_it_was, (type(self), str(self), {"option": self.option, "problem": self.problem})


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
        return _as_it_was, (type(self), str(self), {})


class UnreadableBatch(SourceError):
    pass


class UnwritableRow(SourceError):
    pass


class BrokerRefused(SourceError):
    pass


def _as_it_was(kind: type[SourceError], message: str, fields: dict[str, object]) -> SourceError:
    error = kind.__new__(kind)
    Exception.__init__(error, message)
    for name, value in fields.items():
        setattr(error, name, value)
    return error
