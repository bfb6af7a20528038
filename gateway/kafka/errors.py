"""What can go wrong between us and a Kafka cluster. Knows no command line and no HTTP."""

from kio.schema.errors import ErrorCode


class KafkaFault(Exception):
    """The root of what this package raises on purpose."""


class ClusterUnreachable(KafkaFault):
    """Nobody answers at the addresses given, or the connection broke."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"no Kafka broker answers at {address}: {reason}")
        self.address = address
        self.reason = reason


class BadAddress(KafkaFault):
    """What was given as the cluster's address is none."""

    def __init__(self, address: str) -> None:
        super().__init__(f"{address!r} is not HOST:PORT, or several of them with commas between")
        self.address = address


class ApiMissing(KafkaFault):
    """The cluster does not offer an API that we need."""

    def __init__(self, api: str) -> None:
        super().__init__(f"the cluster does not offer {api}")
        self.api = api


class Refused(KafkaFault):
    """The cluster answered with an error code."""

    def __init__(self, subject: str, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{subject}: {message or describe(code)}")
        self.subject = subject
        self.code = code
        self.message = message or describe(code)


class UnknownTopic(Refused):
    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic}", ErrorCode.unknown_topic_or_partition, "no such topic")
        self.topic = topic


class UnknownGroup(Refused):
    def __init__(self, group: str) -> None:
        super().__init__(f"group {group}", ErrorCode.group_id_not_found, "no such group")
        self.group = group


def describe(code: ErrorCode) -> str:
    """Kafka's name of the error, as its documentation writes it."""
    return code.name.upper()


def check(subject: str, code: ErrorCode, message: str | None = None) -> None:
    """Raises Refused unless the code says that all went well."""
    if code is not ErrorCode.none:
        raise Refused(subject, code, message)
