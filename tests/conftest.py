"""Servers that several suites share. Each starts on first use and stops at the end of the run."""

import os
import shutil
import signal
from collections.abc import Generator, Iterator

import pytest
from xdist.remote import Producer

from tests.clients.cli.launcher import Launcher
from tests.live.apache_kafka import SHORT_LIVED, KafkaNode, install
from tests.live.headgate import HeadgateBroker
from tests.live.maven import JarsUnavailable
from tests.live.secured_kafka import SecuredKafka, new_secured_kafka
from tests.one_name import reject_top_level_names
from tests.scheduling import GroupScheduling, turn_of

# Restore SIGINT: a background job of a shell ignores it, and so do its child processes. Some tests send SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
reject_top_level_names()

# By default, the first rebalance waits three seconds for more members. This would make the suites slow.
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "node.id": "1",
    # Recorded scenarios write records with timestamps of 2023. Retention would delete them during a test.
    "log.retention.check.interval.ms": str(24 * 3600 * 1000),
}


def unavailable(reason: str) -> None:
    """Skip the test: a program that it needs is not installed. With CI=true, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"this must run on CI: {reason}")
    pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With CI=true, fail every skipped test, also if it does not use `unavailable`."""
    report = yield
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        report.outcome, report.longrepr = "failed", f"this must run on CI: {reason}"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: turn_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def curl() -> None:
    """Require curl, which runs the commands of the documentation."""
    if shutil.which("curl") is None:
        unavailable("curl is not installed (make system installs it)")


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """Runs commands of the command line."""
    with Launcher(tmp_path_factory.mktemp("launcher")) as launcher:
        yield launcher


@pytest.fixture(scope="session")
def java_tools() -> None:
    """Require Java and Kafka's jars."""
    try:
        install()
    except JarsUnavailable as error:
        unavailable(str(error))


@pytest.fixture(scope="session")
def secured_kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """An Apache Kafka node with TLS and SASL."""
    secured = new_secured_kafka(tmp_path_factory.mktemp("secured"))
    secured.node.start()
    yield secured
    secured.node.stop()


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
    """One Headgate broker with `BROKER_SETTINGS`."""
    broker = HeadgateBroker(tmp_path_factory.mktemp("headgate"), BROKER_SETTINGS)
    broker.start()
    yield broker
    code = broker.stop()
    assert code == 0, f"the broker did not stop cleanly ({code}): {broker.process.tail() if broker.process else ''}"
