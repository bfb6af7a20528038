import json
import signal
from typing import Any

from tests.clients.cli.conftest import Cli


def lag(cli: Cli, group: str) -> dict[int, tuple[int | None, int | None]]:
    described = json.loads(cli("group", "describe", group, "--json").out)
    return {each["partition"]: (each["committed"], each["lag"]) for each in described["partitions"]}


def reset(cli: Cli, *arguments: str) -> Any:
    return json.loads(cli("group", "reset", *arguments, "--json").out)


def test_a_group_reads_on_where_it_left_off_and_can_be_moved(cli: Cli) -> None:
    cli("topic", "create", "cli-group", "-p", "2")
    cli("produce", "cli-group", "-p", "0", "-t", "1000", stdin=b"a\nb\nc\nd\n")
    assert cli("consume", "cli-group", "-g", "cli-g", "-n", "1").lines == ["a"]
    assert lag(cli, "cli-g")[0] == (1, 3)
    assert cli("consume", "cli-group", "-g", "cli-g", "-e").lines == ["b", "c", "d"]
    assert lag(cli, "cli-g")[0] == (4, 0)
    assert ["cli-g", "Empty", "classic"] in cli("group", "list").rows

    dry = cli("group", "reset", "cli-g", "-t", "cli-group:0", "--shift-by", "-1")
    assert "--execute" in dry.err
    assert dry.rows == [["cli-group", "0", "4", "3", "1"]]
    assert lag(cli, "cli-g")[0] == (4, 0)

    done = reset(cli, "cli-g", "--topic", "cli-group:0", "--shift-by", "-1", "--execute")
    assert (done["executed"], done["partitions"][0]["after"]) == (True, 3)
    assert cli("consume", "cli-group", "-g", "cli-g", "-e").lines == ["d"]

    targets = (
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-offset", "2"],
        ["--to-datetime", "1"],
        ["--by-duration", "1h"],
    )
    after = [reset(cli, "cli-g", "-t", "cli-group:0", *target)["partitions"][0]["after"] for target in targets]
    assert after == [0, 4, 2, 0, 4]

    cli("group", "delete", "cli-g", code=2)
    cli("group", "delete", "cli-g", "--yes")
    assert "there is no group cli-g" in cli("group", "describe", "cli-g", code=3).err


def test_a_group_with_members_is_not_reset_and_not_deleted(cli: Cli) -> None:
    cli("produce", "cli-busy", "-v", "first")
    member = cli.start(["consume", "cli-busy", "-g", "cli-busy-group"])
    try:
        assert member.stdout is not None
        assert member.stdout.readline() == b"first\n"
        refused = cli("group", "reset", "cli-busy-group", "--to-earliest", "--execute", code=1)
        assert "in use" in refused.err
        assert "stop these consumers" in refused.err
        assert "NON_EMPTY_GROUP" in cli("group", "delete", "cli-busy-group", "-y", code=1).err
        (row,) = cli("group", "describe", "cli-busy-group", "--members").rows
        assert row[-1] == "cli-busy:0"
    finally:
        member.send_signal(signal.SIGINT)
        member.communicate(timeout=30)
    assert member.returncode == 130
    assert lag(cli, "cli-busy-group") == {0: (1, 0)}


def test_a_group_gets_its_offsets_before_its_first_member(cli: Cli) -> None:
    cli("produce", "cli-new", stdin=b"a\nb\n")
    assert cli("group", "reset", "cli-new-group", "--to-latest", code=3).out == b""
    cli("group", "reset", "cli-new-group", "-t", "cli-new", "--to-offset", "1", "--execute")
    assert lag(cli, "cli-new-group") == {0: (1, 1)}
    cli("group", "reset", "cli-new-group", "-t", "cli-new", code=2)
    cli("group", "reset", "cli-new-group", "-t", "cli-new:7", "--to-latest", code=1)
    cli("group", "reset", "cli-new-group", "-t", "cli-nowhere", "--to-latest", code=3)
