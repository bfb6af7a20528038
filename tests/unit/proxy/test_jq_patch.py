"""jq programs run in a child process with limits."""

import asyncio
import importlib.util

import pytest

from headgate.proxy.dead_letters import jq_patch
from headgate.proxy.dead_letters.jq_patch import InvalidPatch, JqPatch
from headgate.serdes import RedriveRefused


def applied(program: str, *texts: bytes) -> list[bytes | str]:
    async def work() -> list[bytes | str]:
        found: list[bytes | str] = []
        async with JqPatch(program) as patch:
            for text in texts:
                try:
                    found.append(await patch.apply(text))
                except RedriveRefused as error:
                    found.append(str(error))
        return found

    return asyncio.run(work())


def test_numbers_that_the_program_does_not_touch_stay_exact() -> None:
    text = b'{"id": 9223372036854775807, "low": -9007199254740993, "price": 0.1, "n": 1}'
    (found,) = applied(".n += 1", text)
    assert found == text.replace(b'"n": 1', b'"n": 2')
    (refused,) = applied(".", b'{"price": 0.12345678901234567890}')
    assert "0.12345678901234567890 has more digits" in str(refused)


def test_a_program_that_exceeds_a_limit_affects_only_its_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq_patch, "SECONDS_MAX", 2.0)
    program = 'if .loop then last(repeat(1)) elif .env then $ENV | has("HOME") else .n + 1 end'
    found = applied(program, b'{"n":1}', b'{"loop":true}', b'{"n":2}', b'{"env":1}', b'{"n":"x"}')
    assert found[0] == b"2"
    assert "did not end within 2 s" in str(found[1])
    assert found[2:4] == [b"3", b"false"]
    assert "the patch failed" in str(found[4])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jq_patch, "find_spec", lambda name: None)
    with pytest.raises(InvalidPatch, match=r"pip install 'headgate\[jq\]'"):
        applied(".")
    assert importlib.util.find_spec("jq") is not None
