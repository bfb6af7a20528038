"""Topics on both brokers: the embedded one, and Apache Kafka where it can be had."""

import pytest

from tests.live.headgate import HeadgateBroker
from tests.spark.source.topics import Topics


@pytest.fixture(scope="session")
def embedded(headgate_broker: HeadgateBroker) -> Topics:
    return Topics(headgate_broker.address)


@pytest.fixture(params=["headgate", pytest.param("apache", marks=pytest.mark.kafka)])
def topics(request: pytest.FixtureRequest) -> Topics:
    """What must hold on any broker."""
    if request.param == "headgate":
        found = request.getfixturevalue("embedded")
        assert isinstance(found, Topics)
        return found
    return Topics(str(request.getfixturevalue("apache_kafka")))
