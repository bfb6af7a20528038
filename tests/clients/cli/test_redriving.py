"""Re-driving with repairs, and by several runs at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from headgate.gateway.kafka.cluster import connect, connection_options
from headgate.proxy.dead_letters.letter import LetterFilter, StoredLetter
from headgate.proxy.dead_letters.redriving import LetterSender, Report, redrive_letters
from headgate.proxy.dead_letters.topic import DeadLetterTopic
from headgate.serdes import Poison, Reason, Record, RegistryClient, avro_schema, to_dead_letter
from headgate.serdes.framing import frame
from headgate.serdes.redrive_mark import Mark, MarkState, mark_headers
from tests.clients.cli.conftest import Cli
from tests.clients.cli.test_dead_letters import letter, topic, values, write
from tests.live.headgate_registry import HeadgateRegistry

__all__ = ["topic"]

LETTERS = 700
"""More than one batch."""


async def run(
    cli: Cli, topic: str, by: str, repair: Callable[[StoredLetter], Awaitable[bytes | None]] | None = None
) -> Report:
    options = connection_options(cli.address, None)
    async with connect(options) as cluster, LetterSender(options, by, repair) as sender:
        letters = DeadLetterTopic(options, cluster, topic)
        return await redrive_letters(letters, LetterFilter(), sender, by=by, execute=True)


def test_concurrent_runs_send_each_letter_once(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, number) for number in range(LETTERS)])

    async def both() -> tuple[Report, Report]:
        meeting = asyncio.Barrier(2)

        def once() -> Callable[[StoredLetter], Awaitable[bytes | None]]:
            met = False

            async def repair(stored: StoredLetter) -> bytes | None:
                """Both runs have read all states, and no mark is written yet, when the first letter is prepared."""
                nonlocal met
                if not met:
                    met = True
                    await meeting.wait()
                return None

            return repair

        return await asyncio.gather(run(cli, f"{topic}.dead", "one", once()), run(cli, f"{topic}.dead", "two", once()))

    reports = asyncio.run(both())
    assert sum(report.sent for report in reports) == LETTERS
    assert sum(report.claimed for report in reports) == LETTERS
    assert sorted(values(cli, topic)) == sorted(letter(topic, number).value or b"" for number in range(LETTERS))
    assert cli("dead", "count", f"{topic}.dead").rows == [["TRUNCATED", "1", "redriven", str(LETTERS)]]


def test_an_earlier_claim_of_another_run_wins(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [letter(topic, number) for number in range(3)])

    async def claim_elsewhere(stored: StoredLetter) -> bytes | None:
        if stored.record.offset == 0:
            marks = [mark_headers(Mark(0, at, MarkState.STARTED, "other", 1, "other run")) for at in (1, 77)]
            await asyncio.to_thread(write, cli, f"{topic}.dead", [Record("", None, None, each, 0) for each in marks])
        return None

    report = asyncio.run(run(cli, f"{topic}.dead", "test", claim_elsewhere))
    assert (report.sent, report.claimed) == (2, 1)
    assert values(cli, topic) == [letter(topic, number).value for number in (0, 2)]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadgateRegistry]:
    process = HeadgateRegistry(tmp_path_factory.mktemp("registry"))
    process.start()
    yield process
    process.stop()


SCHEMA = """{"type": "record", "name": "Order", "fields": [
  {"name": "id", "type": "long"}, {"name": "note", "type": "string"}]}"""
BODY = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04ok"
"""id 2^63 - 1, which a double cannot represent, and note "ok"."""


def poison(topic: str, value: bytes, reason: Reason) -> Record:
    origin = Record(topic, b"k", value, (), 0, 0, 1000)
    return to_dead_letter(origin, Poison(reason, "", value, None), dead_letter_topic="d", application="a", now_ms=1)


def test_values_are_repaired_with_a_schema_or_a_patch(cli: Cli, topic: str, registry: HeadgateRegistry) -> None:
    dead, at = f"{topic}.dead", ("--registry", registry.url)
    with RegistryClient(registry.url) as client:
        schema_id = client.register(f"{topic}-value", avro_schema(SCHEMA)).id
    assert schema_id is not None
    good = frame(schema_id, BODY)

    # Another schema: a value with an unknown id, one without an id, and one that the schema cannot read.
    bad = [frame(9999, BODY), BODY, b"\0\0\0\0\7nonsense"]
    write(cli, dead, [poison(topic, value, Reason.UNKNOWN_SCHEMA) for value in bad])
    dry = cli("dead", "redrive", dead, "--value-subject", f"{topic}-value", *at, code=1)
    assert "letter 0:2 not sent: schema" in dry.err
    assert dry.rows == [[topic, "2"]]
    cli("dead", "redrive", dead, "--value-schema-id", str(schema_id), *at, "--execute", code=1)
    assert values(cli, topic) == [good, good]
    cli("dead", "purge", dead, "--yes")

    # A patch: of a value with a schema, of JSON text, and of values that cannot be decoded.
    patched = [good, b'{"id": 9007199254740993, "note": "ok"}', good[:-1], b"text"]
    write(cli, dead, [poison(topic, value, Reason.INVALID_VALUE) for value in patched])
    done = cli("dead", "redrive", dead, "--patch", '.note = "new"', *at, "--execute", code=1)
    assert "the value cannot be patched, because it cannot be decoded: TRUNCATED" in done.err
    assert done.err.count("not sent") == 3
    assert values(cli, topic)[2:] == [
        frame(schema_id, BODY[:-3] + b"\x06new"),
        b'{"id": 9007199254740993, "note": "new"}',
    ]
    cli("dead", "purge", dead, "--yes")

    write(cli, dead, [poison(topic, b'{"id": 7, "note": "text"}', Reason.BAD_MAGIC)])
    both = ("--patch", ".", "--value-subject", f"{topic}-value", *at, "--execute")
    cli("dead", "redrive", dead, *both)
    assert values(cli, topic)[4:] == [frame(schema_id, b"\x0e\x08text")]


def test_a_bad_patch_is_reported(cli: Cli, topic: str) -> None:
    write(cli, f"{topic}.dead", [poison(topic, b"{}", Reason.INVALID_VALUE)])
    redrive = ("dead", "redrive", f"{topic}.dead", "--execute", "--patch")
    assert "is not a jq program" in cli(*redrive, ".[", code=2).err
    assert "must not import files" in cli(*redrive, 'import "a" as $a; .', code=2).err
    assert "the program returns several values" in cli(*redrive, ".,.", code=1).err
    assert "Cannot index" in cli(*redrive, '.a = "x" | .a.b', code=1).err
    assert values(cli, topic) == []
