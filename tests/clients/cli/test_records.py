import base64
import contextlib
import json
import os
import shlex
import signal
import subprocess
import threading
from typing import IO

import pytest

from tests.clients.cli.conftest import HEADGATE, Cli


def test_lines_go_in_and_come_out(cli: Cli) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(2000))
    cli("produce", "cli-lines", stdin=lines)
    assert cli("consume", "cli-lines", "-e").out == lines
    assert cli("consume", "cli-lines", "-e", "-o", "-2").out == b"line 1998\nline 1999\n"
    assert cli("consume", "cli-lines", "-n", "1", "-o", "7").out == b"line 7\n"


def test_json_lines_copy_a_topic_without_loss(cli: Cli) -> None:
    cli("topic", "create", "cli-from", "cli-to", "-p", "2")
    records: list[dict[str, object]] = [
        {"key": "a", "value": "text", "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": None}]},
        {"key": None, "value": None},
        {"key": "", "value": ""},
        {"key_base64": "/w==", "value_base64": "AP8="},
    ]
    given = [{"partition": 1, "timestamp": 1000 + at, "headers": [], **each} for at, each in enumerate(records)]
    stdin = "\n".join(json.dumps(each) for each in given).encode()
    receipts = cli("produce", "cli-from", "-J", "--json", "-z", "gzip", stdin=stdin)
    assert [json.loads(line)["offset"] for line in receipts.lines] == [0, 1, 2, 3]

    copied = cli("consume", "cli-from", "-e", "--json").out
    cli("produce", "cli-to", "--from-json", stdin=copied)
    again = [json.loads(line) for line in cli("consume", "cli-to", "-e", "--json").lines]
    assert [
        {name: value for name, value in each.items() if name not in {"topic", "offset", "timestamp_type"}}
        for each in again
    ] == given


def test_keys_headers_partition_and_time_can_be_given_and_printed(cli: Cli) -> None:
    cli("topic", "create", "cli-fields", "-p", "3")
    cli(
        "produce",
        "cli-fields",
        "-K",
        ":",
        "-Z",
        "-H",
        "a=b",
        "-p",
        "2",
        "-t",
        "1970-01-01T00:00:01",
        stdin=b"k:v\nn:\n",
    )
    done = cli("consume", "cli-fields", "-e", "-f", r"%t %p %o %k %s %K %S %T %h %%\n")
    assert done.lines == ["cli-fields 2 0 k v 1 1 1000 a=b %", "cli-fields 2 1 n NULL 1 -1 1000 a=b %"]
    plain = cli("consume", "cli-fields", "-e", "--print-key", "--print-timestamp", "--print-headers", "-K", "|")
    assert plain.lines == ["1000|a=b|k|v", "1000|a=b|n|NULL"]
    encoded = cli("consume", "cli-fields", "-n", "1", "--json", "--base64", "-p", "2")
    assert json.loads(encoded.out)["value_base64"] == base64.b64encode(b"v").decode()


def test_keys_values_and_formats_may_be_any_bytes_and_names_may_not(cli: Cli) -> None:
    def given(raw: bytes) -> str:
        return os.fsdecode(raw)

    cli("produce", "cli-bytes", "-k", given(b"k\xff"), "-v", given(b"v\xfe"), "-H", given(b"h=\xfd"))
    assert cli("consume", "cli-bytes", "-e", "-f", given(b"%k %s %h\xfc")).out == b"k\xff v\xfe h=\xfd\xfc"
    name = given(b"n\xff")
    for arguments in (
        ("topic", "create", name),
        ("topic", "describe", name),
        ("topic", "list", "-b", name),
        ("group", "describe", name),
        ("consume", "cli-bytes", "-e", "-g", name),
        ("produce", "cli-bytes", "-v", "x", "-H", f"{name}=1"),
    ):
        assert "is not text in UTF-8" in cli(*arguments, code=2).err, arguments


def test_reading_starts_at_a_moment(cli: Cli) -> None:
    for at in (1000, 2000, 3000):
        cli("produce", "cli-time", "-v", f"at {at}", "-t", str(at), "--acks", "1")
    assert cli("consume", "cli-time", "-e", "-o", "@1500").lines == ["at 2000", "at 3000"]
    assert cli("consume", "cli-time", "-e", "-o", "@2030-01-01").lines == []


def test_bad_input_is_reported_with_its_line_and_earlier_lines_are_sent(cli: Cli) -> None:
    done = cli("produce", "cli-bad", "-J", stdin=b'{"value": "good"}\n{"valu": 1}\n', code=1)
    assert "line 2 cannot be sent" in done.err
    assert "1 records were sent" in done.err
    assert cli("consume", "cli-bad", "-e").lines == ["good"]
    missing = cli("produce", "cli-bad", "-v", "x", "-p", "5", code=1)
    assert "has no partition 5" in missing.err
    large = cli("produce", "cli-bad", stdin=b"x" * 1_100_000, code=1)
    assert "MESSAGE_TOO_LARGE" in large.err


def test_a_record_without_a_key_is_invalid_in_a_compacted_topic(cli: Cli) -> None:
    cli("topic", "create", "cli-keyed-only", "-c", "cleanup.policy=compact")
    done = cli("produce", "cli-keyed-only", stdin=b"no key\n", code=1)
    assert "INVALID_RECORD" in done.err
    assert "give every record a key" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("consume", "t", "-f", "%q"),
        ("consume", "t", "-o", "sometime"),
        ("consume", "t", "--json", "-k"),
        ("consume", "t", "-g", "g", "-o", "5"),
        ("produce", "t", "--timestamp", "sometime"),
        ("produce", "t", "-v", "x", "-J"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments, "-b", "127.0.0.1:1", code=2)
    assert done.err.startswith("error: ")


def test_a_topic_that_is_not_there_is_not_made_by_reading(cli: Cli) -> None:
    assert "there is no topic cli-nowhere" in cli("consume", "cli-nowhere", "-e", code=3).err
    cli("topic", "describe", "cli-nowhere", code=3)


def test_a_reader_that_has_enough_ends_it_quietly(cli: Cli) -> None:
    cli("produce", "cli-pipe", stdin=b"x\n" * 5000)
    consuming = subprocess.Popen(
        [*HEADGATE, "consume", "cli-pipe"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cli.folder,
        env=cli.environment,
    )
    assert consuming.stdout is not None
    assert consuming.stdout.readline() == b"x\n"
    consuming.stdout.close()
    cli("produce", "cli-pipe", stdin=b"x\n" * 50_000)
    assert consuming.stderr is not None
    with consuming.stderr:
        assert consuming.stderr.read() == b""
    assert consuming.wait(30) == 0


def test_interruption_has_its_own_exit_code(cli: Cli) -> None:
    cli("produce", "cli-interrupt", "-v", "x")
    consuming = cli.start(["consume", "cli-interrupt"])
    assert consuming.stdout is not None
    assert consuming.stdout.readline() == b"x\n"
    consuming.send_signal(signal.SIGINT)
    _, err = consuming.communicate(timeout=30)
    assert (consuming.returncode, err) == (130, b"")


def test_input_that_is_still_coming_is_interrupted_quietly(cli: Cli) -> None:
    sending = cli.start(["produce", "cli-interrupt-input"])
    assert sending.stdin is not None
    read_ahead = threading.Event()

    def feed(pipe: IO[bytes]) -> None:
        with contextlib.suppress(BrokenPipeError):
            for number in range(100_000):
                pipe.write(b"x\n" * 5_000)
                # By now the read-ahead queue is full, and the reading thread is blocked.
                if number == 36:
                    read_ahead.set()

    feeding = threading.Thread(target=feed, args=(sending.stdin,))
    feeding.start()
    assert read_ahead.wait(60)
    sending.send_signal(signal.SIGINT)
    assert sending.stdout is not None
    assert sending.stderr is not None
    with sending.stdout, sending.stderr:
        assert sending.wait(30) == 130
        feeding.join()
        assert sending.stderr.read() == b""
    with contextlib.suppress(BrokenPipeError):
        sending.stdin.close()


def test_streams_that_are_closed_count_as_empty(cli: Cli) -> None:
    cli("produce", "cli-closed", "-v", "x")
    for command in ("consume cli-closed -n 1 >&-", "produce cli-closed <&-", "topic list 2>&- >&-"):
        line = f"{shlex.join(HEADGATE)} {command}"
        done = subprocess.run(["sh", "-c", line], capture_output=True, cwd=cli.folder, env=cli.environment, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), command
