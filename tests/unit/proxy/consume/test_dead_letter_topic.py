"""The default dead-letter topic of a read."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.proxy.reading.poison import PoisonPolicy, dispose
from headgate.proxy.reading.rows import PoisonRow, Rows
from headgate.proxy.settings import ProxySettings, UnknownSetting
from headgate.serdes import Poison, Reason


class FakeSender:
    def __init__(self) -> None:
        self.topics: list[str] = []

    async def place(self, topic: str, records: list[Any]) -> list[Any]:
        self.topics.append(topic)
        return []


@pytest.mark.parametrize(
    ("given", "topic", "expected"),
    [({}, None, "orders.dead"), ({"dead.letter.topic.suffix": "-dlt"}, None, "orders-dlt"), ({}, "letters", "letters")],
)
def test_the_suffix_is_a_setting(given: dict[str, str], topic: str | None, expected: str) -> None:
    policy = PoisonPolicy.read("dead_letter", topic, ProxySettings.of(given))
    record: Any = SimpleNamespace(offset=1, timestamp=2, key=None, value=b"", headers=())
    row = PoisonRow(b"", Poison(Reason.TOO_SHORT, "", b""), False, record)
    sender: Any = FakeSender()
    asyncio.run(dispose(sender, policy, Rows([[row]], [1]), lambda _: ("orders", 0)))
    assert sender.topics == [expected]


@pytest.mark.parametrize("suffix", ["", "/dead", "." * 101])
def test_a_suffix_that_is_not_valid_in_a_topic_name_is_rejected(suffix: str) -> None:
    with pytest.raises(UnknownSetting, match="suffix"):
        ProxySettings.of({"dead.letter.topic.suffix": suffix})
