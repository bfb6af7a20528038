"""Batches that are slow to validate: the broker still answers other clients meanwhile."""

import threading

import pytest

from tests.hostile.broker.witness import create_topic, produce, produce_one
from tests.live.headgate import HeadgateBroker
from tests.wire.raw_client import RawConnection
from tests.wire.record_batches import Batch, NewRecord

COMPACTED, PLAIN = "bombs-compacted", "bombs-plain"
NOW = 1_700_000_000_000
BOMBS = 4
ANSWERS_MIN = 40


def bomb(codec: str, *, many: bool) -> bytes:
    """Return a batch below 1 MiB that the broker accepts. It holds 200,000 records, or one record of 100 MB."""
    if many:
        return Batch([NewRecord(b"", key=b"k", timestamp=NOW)] * 200_000, codec=codec).encode()
    return Batch([NewRecord(bytes(100_000_000), key=b"k", timestamp=NOW)], codec=codec).encode()


@pytest.mark.parametrize(
    ("codec", "many"),
    [("gzip", False), ("zstd", False), ("lz4", False), ("gzip", True), ("zstd", True), ("snappy", True)],
    ids=lambda value: value if isinstance(value, str) else "many" if value else "large",
)
def test_other_clients_are_answered_while_a_bomb_is_checked(attacked: HeadgateBroker, codec: str, many: bool) -> None:
    batch = bomb(codec, many=many)
    with RawConnection(attacked.address, 60) as attacker, RawConnection(attacked.address) as other:
        create_topic(other, COMPACTED, cleanup_policy="compact")
        create_topic(other, PLAIN)
        is_answered = threading.Event()
        refusals: list[object] = []

        def attack() -> None:
            for _ in range(BOMBS):
                answer = produce(attacker, COMPACTED, batch)
                if answer["error_code"] != "NONE":
                    refusals.append(answer)
            is_answered.set()

        thread = threading.Thread(target=attack)
        thread.start()
        answers = 0
        while not is_answered.is_set():
            produce_one(other, PLAIN, b"value")
            answers += 1
        thread.join()
    assert refusals == []
    assert answers >= ANSWERS_MIN
