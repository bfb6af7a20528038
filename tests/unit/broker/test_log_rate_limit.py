"""The log rate limit: repeated warnings are suppressed, and the suppressed lines are counted."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate import broker
from headgate.broker.runtime.clock import Timers
from headgate.broker.runtime.log_rate_limit import (
    LIMITED_LOGGERS,
    LogRateLimit,
    interval_ms,
    lines_at_once_max,
    lines_per_interval,
)
from tests.manual_clock import ManualClock

NAME = "headgate.broker.log_rate_limit_test"
logger = logging.getLogger(NAME)


@pytest.fixture
def limit() -> Iterator[LogRateLimit]:
    limit = LogRateLimit([NAME])
    limit.install()
    yield limit
    limit.uninstall()


def flood(lines: int, message: str = "closing connection %d: %s") -> None:
    for number in range(lines):
        logger.warning(message, number, "malformed")


def test_lines_past_the_limit_are_left_out_and_counted(limit: LogRateLimit, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    timers = Timers(clock)
    timers.after(interval_ms, limit.next_interval)
    flood(lines_at_once_max + 7)
    assert len(caplog.messages) == lines_at_once_max
    clock.advance(interval_ms - 1)
    timers.run_due()
    flood(1)
    assert len(caplog.messages) == lines_at_once_max
    clock.advance(1)
    timers.run_due()
    assert caplog.messages[lines_at_once_max:] == [
        "suppressed 8 similar lines in the last 10 s: closing connection %d: %s"
    ]


def test_a_continuous_event_gets_a_limited_number_of_lines_per_interval(
    limit: LogRateLimit, caplog: pytest.LogCaptureFixture
) -> None:
    flood(lines_at_once_max + 1)
    limit.next_interval()
    caplog.clear()
    flood(lines_per_interval + 5)
    limit.next_interval()
    assert len(caplog.messages) == lines_per_interval + 1
    assert caplog.messages[-1].startswith("suppressed 5 similar lines")


def test_after_a_pause_a_burst_is_logged_again(limit: LogRateLimit, caplog: pytest.LogCaptureFixture) -> None:
    flood(lines_at_once_max)
    for _ in range(lines_at_once_max // lines_per_interval):
        limit.next_interval()
    caplog.clear()
    flood(lines_at_once_max)
    limit.next_interval()
    assert len(caplog.messages) == lines_at_once_max


def test_one_kind_of_line_does_not_hide_another(limit: LogRateLimit, caplog: pytest.LogCaptureFixture) -> None:
    flood(lines_at_once_max + 1)
    caplog.clear()
    flood(1, "%d: the disk failed: %s")
    assert caplog.messages == ["0: the disk failed: malformed"]


def test_suppressed_lines_are_counted_when_the_broker_stops(caplog: pytest.LogCaptureFixture) -> None:
    limit = LogRateLimit([NAME])
    limit.install()
    flood(lines_at_once_max + 3)
    limit.uninstall()
    assert caplog.messages[-1].startswith("suppressed 3 similar lines")
    caplog.clear()
    flood(2 * lines_at_once_max)
    assert len(caplog.messages) == 2 * lines_at_once_max


def test_every_logger_of_the_broker_is_limited() -> None:
    sources = (path.read_text(encoding="utf-8") for path in Path(broker.__file__).parent.rglob("*.py"))
    named = {name for source in sources for name in re.findall(r"= logging\.getLogger\((.*)\)", source)}
    assert named == {f'"{name}"' for name in LIMITED_LOGGERS}
