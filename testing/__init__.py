"""Headgate for tests: a context manager, pytest fixtures, poison records and fault injection.

from headgate.testing import Headgate

with Headgate() as headgate:
    producer = Producer({"bootstrap.servers": headgate.bootstrap_servers})
"""

from headgate.testing.assertions import assert_topic_contains, read_topic_values
from headgate.testing.gateway import Headgate
from headgate.testing.poison import PoisonPayloads
from headgate.testing.service import Service, ServiceFailed

__all__ = [
    "Headgate",
    "PoisonPayloads",
    "Service",
    "ServiceFailed",
    "assert_topic_contains",
    "read_topic_values",
]
