"""Rate limit of the Kafka client's log lines: repeated lines are suppressed and counted."""

import logging

from headgate.proxy.log_rate_limit import INTERVAL_SECONDS, KINDS_MAX, LINES_PER_INTERVAL_MAX, LogRateLimit


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("aiokafka.consumer", logging.ERROR, "", 0, message, arguments, None)


def test_repeated_lines_are_suppressed_and_counted() -> None:
    now = [0.0]
    limit = LogRateLimit(lambda: now[0])
    written = [limit.filter(record("Heartbeat failed for group %s", number)) for number in range(10_000)]
    assert written.count(True) == LINES_PER_INTERVAL_MAX
    assert limit.filter(record("another line")), "each kind of line has its own limit"
    now[0] = INTERVAL_SECONDS
    later = record("Heartbeat failed for group %s", "g")
    assert limit.filter(later)
    suppressed = 10_000 - LINES_PER_INTERVAL_MAX
    assert later.getMessage() == f"Heartbeat failed for group g ({suppressed} similar lines were suppressed)"


def test_the_number_of_counters_is_limited() -> None:
    limit = LogRateLimit(lambda: 0.0)
    for number in range(3 * KINDS_MAX):
        limit.filter(record(f"text {number}"))
    assert len(limit._kinds) <= KINDS_MAX
