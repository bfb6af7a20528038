"""Servers that several suites share. Each starts on first use and stops with the run."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from tests.live.apache_kafka import SHORT_LIVED, KafkaNode, install
from tests.live.headgate import HeadgateBroker
from tests.live.maven import JarsUnavailable

# A run in the background of a shell ignores Ctrl-C, and what it starts would as well; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A first rebalance that waits three seconds for more members, as by default, would only make the suites slow.
BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "node.id": "1"}

LONGEST = ("tests/spark/", "tests/faults/test_kill.py", "tests/clients/")


def unavailable(reason: str) -> None:
    """Skips where a developer has no Java, or no browser; on CI, where it must be there, fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"this must run on CI: {reason}")
    pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers, tests that share a server stay together: it is then started once and not per worker.

    Groups are handed out in the order in which they stand here: what takes longest in one piece comes first, so that no
    worker is left alone with it at the end.
    """
    turns: dict[pytest.Item, int] = {}
    for item in items:
        names = getattr(item, "fixturenames", ())
        shares_kafka = "apache_kafka" in names or "java_tools" in names or item.get_closest_marker("kafka") is not None
        item.add_marker(pytest.mark.xdist_group("kafka" if shares_kafka else str(item.path)))
        place = item.path.relative_to(item.config.rootpath).as_posix()
        turns[item] = next((turn for turn, longest in enumerate(LONGEST) if place.startswith(longest)), len(LONGEST))
    items.sort(key=turns.__getitem__)


@pytest.fixture(scope="session")
def curl() -> None:
    """There to run the lines of the documents."""
    if shutil.which("curl") is None:
        unavailable("curl is not installed (make system installs it)")


@pytest.fixture(scope="session")
def java_tools() -> None:
    """Kafka's jars are there and Java runs."""
    try:
        install()
    except JarsUnavailable as error:
        unavailable(str(error))


@pytest.fixture(scope="session")
def apache_kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one Apache Kafka node."""
    from tests.wire.golden_files import FORMAT_ARGUMENTS, NODE_SETTINGS

    node = KafkaNode(
        tmp_path_factory.mktemp("kafka"), NODE_SETTINGS, flags=SHORT_LIVED, format_arguments=FORMAT_ARGUMENTS
    )
    node.start()
    yield node.address
    node.stop()


@pytest.fixture(scope="session")
def headgate_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateBroker]:
    """One broker of ours with its default settings."""
    broker = HeadgateBroker(tmp_path_factory.mktemp("headgate"), BROKER_SETTINGS)
    broker.start()
    yield broker
    code = broker.stop()
    assert code == 0, f"the broker did not stop cleanly ({code}): {broker.process.tail() if broker.process else ''}"
