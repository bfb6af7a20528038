"""The outcome log of requests with an Idempotency-Key: which entry for a key wins, and how many keys it keeps."""

from typing import Any

import msgspec

from headgate.kafka_client.producer.records import ProducerIdentity
from headgate.proxy.producers.outcome_log import Intent, Outcome, OutcomeLog
from headgate.proxy.settings import ProxySettings


def _log(**settings: int) -> OutcomeLog:
    sender: Any = None
    return OutcomeLog(ProxySettings(**settings), sender)  # type: ignore[arg-type]


def _said(entry: Intent | Outcome) -> bytes:
    return msgspec.msgpack.encode(entry)


INTENT = Intent(b"f", 1, 0, [(0, 0, [0])])


LATER = Intent(b"f", 2, 0, [(0, 0, [0])])


def test_the_log_keeps_the_first_intent_until_its_outcome_and_forgets_after_the_window() -> None:
    log = _log(idempotency_window_ms=1000)
    log._learn(b"k", _said(INTENT), 0, 100)
    log._learn(b"k", _said(LATER), 1, 200)
    assert log._entries[b"k"].intent == INTENT
    log._learn(b"k", _said(Outcome(b"f", b"answer")), 2, 300)
    log._learn(b"k", _said(Outcome(b"f", b"again")), 3, 400)
    assert log._entries[b"k"].outcome_offset == 2
    log._learn(b"k", _said(LATER), 4, 1101)
    assert log._entries[b"k"].intent == LATER, "the window has passed: the key is free again"


def test_the_log_takes_the_first_restart_of_each_attempt_and_none_after_the_outcome() -> None:
    log = _log()
    log._learn(b"k", _said(INTENT), 0, 100)
    first, second = (INTENT.restarted([0], ProducerIdentity(producer_id, 0)) for producer_id in (5, 6))
    log._learn(b"k", _said(first), 1, 200)
    log._learn(b"k", _said(second), 2, 300)
    assert log._entries[b"k"].intent == first
    other_rows = Intent(b"f", 1, 0, [(3, 0, [7])], 2)
    log._learn(b"k", _said(other_rows), 3, 400)
    assert log._entries[b"k"].intent == first
    third = first.restarted([0], ProducerIdentity(7, 0))
    log._learn(b"k", _said(third), 4, 500)
    assert log._entries[b"k"].intent == third
    log._learn(b"k", _said(Outcome(b"f", b"answer")), 5, 600)
    log._learn(b"k", _said(third.restarted([0], ProducerIdentity(8, 0))), 6, 700)
    assert log._entries[b"k"].outcome_offset == 5


def test_the_log_is_bounded_and_ignores_foreign_records() -> None:
    log = _log(idempotency_keys_max=10)
    for number in range(100):
        log._learn(b"%d" % number, _said(INTENT), number, 0)
    assert len(log._entries) == 10
    for garbage in (None, b"", b"\xc1", b"\x80", _said(INTENT)[:-1]):
        log._learn(b"k", garbage, 0, 0)
    log._learn(None, _said(INTENT), 0, 0)
    assert len(log._entries) == 10
