"""Topics that only the proxy or the brokers may write."""

from typing import Any

import msgspec
import pytest

from headgate.kafka_client.errors import NotAuthorized
from headgate.proxy.producers.internal_topics import check_writable
from headgate.proxy.producers.outcome_log import Intent, Outcome, OutcomeLog
from headgate.proxy.producers.sender import Sender
from headgate.proxy.reading.poison import PoisonPolicy
from headgate.proxy.settings import ProxySettings
from tests.unit.proxy.produce.fake_link import FakeLink

KEY, PRINT = b"k" * 16, b"f" * 16


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "own", "orders"])
def test_clients_do_not_write_to_internal_topics(topic: str) -> None:
    settings = ProxySettings.of({"idempotency.topic": "own"})
    if topic == "orders":
        check_writable(topic, settings)
        return
    with pytest.raises(NotAuthorized, match=topic):
        check_writable(topic, settings)
    with pytest.raises(NotAuthorized, match=topic):
        PoisonPolicy.read("dead_letter", topic, settings)


@pytest.mark.parametrize(
    ("key", "entry", "counts"),
    [
        (KEY, Intent(PRINT, 7, 0, [(0, 0, [0, 2]), (1, 5, [1])]), True),
        (KEY, Outcome(PRINT, b"{}"), True),
        (b"long" * 5, Outcome(PRINT, b"{}"), False),
        (KEY, Outcome(b"long" * 5, b"{}"), False),
        (KEY, Intent(PRINT, -1, 0, [(0, 0, [0])]), False),
        (KEY, Intent(PRINT, 7, -1, [(0, 0, [0])]), False),
        (KEY, Intent(PRINT, 7, 2**15, [(0, 0, [0])]), False),
        (KEY, Intent(PRINT, 7, 0, [(-1, 0, [0])]), False),
        (KEY, Intent(PRINT, 7, 0, [(0, 2**31, [0])]), False),
        (KEY, Intent(PRINT, 7, 0, [(0, 0, [1])], 1, {0: (8, 0)}), True),
        (KEY, Intent(PRINT, 7, 0, [(0, 0, [1])], 1, {0: (-8, 0)}), False),
        (KEY, Intent(PRINT, 7, 0, [(0, 0, [-1])]), False),
        (KEY, Intent(PRINT, 7, 0, [(0, 0, [0, 0])]), False),
        (KEY, Intent(PRINT, 7, 0, [(0, 0, [0]), (0, 1, [1])]), False),
    ],
)
def test_entries_that_no_worker_can_have_written_do_not_count(
    key: bytes, entry: Intent | Outcome, counts: bool
) -> None:
    settings = ProxySettings()
    link: Any = FakeLink()
    log = OutcomeLog(settings, Sender(settings, link))
    log._learn(key, msgspec.msgpack.encode(entry), 0, 0)
    assert (key in log._entries) is counts
