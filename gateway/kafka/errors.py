"""What can go wrong between us and a Kafka cluster, beside the refusals of `proxy.admin`. Knows no command line."""

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


class Refused(KafkaFault):
    """The cluster answered with an error code."""

    def __init__(self, subject: str, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{subject}: {message or describe(code)}")
        self.subject = subject
        self.code = code
        self.message = message or describe(code)


def describe(code: ErrorCode) -> str:
    """Kafka's name of the error, as its documentation writes it."""
    return code.name.upper()
