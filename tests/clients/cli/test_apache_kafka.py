import json
from pathlib import Path

import pytest

from tests.clients.cli.conftest import Cli
from tests.clients.cli.launcher import Launcher

pytestmark = pytest.mark.kafka


def test_every_noun_works_against_apache_kafka(apache_kafka: str, launcher: Launcher, tmp_path: Path) -> None:
    cli = Cli(apache_kafka, tmp_path, launcher)
    cli("topic", "create", "cli-smoke", "-p", "2", "-c", "retention.ms=60000000000")
    cli("topic", "alter", "cli-smoke", "-p", "3", "-c", "max.message.bytes=1000000")
    described = json.loads(cli("topic", "describe", "cli-smoke", "--json").out)
    assert len(described["partitions"]) == 3
    assert {each["name"]: each["value"] for each in described["configs"]} == {
        "retention.ms": "60000000000",
        "max.message.bytes": "1000000",
    }
    assert "cli-smoke" in [row[0] for row in cli("topic", "list").rows]

    cli("produce", "cli-smoke", "-p", "1", "-K", ":", stdin=b"k:one\nk:two\nk:three\n")
    cli("produce", "cli-smoke", "-J", stdin=b'{"key": null, "value": null, "partition": 1}\n')
    assert cli("consume", "cli-smoke", "-e", "-k", "-K", "=").lines == ["k=one", "k=two", "k=three", "NULL=NULL"]

    assert cli("consume", "cli-smoke", "-g", "cli-smoke-group", "-n", "2").lines == ["one", "two"]
    lag = {
        each["partition"]: each["lag"]
        for each in json.loads(cli("group", "describe", "cli-smoke-group", "--json").out)["partitions"]
    }
    assert lag[1] == 2
    dry = cli("group", "reset", "cli-smoke-group", "-t", "cli-smoke:1", "--to-earliest")
    assert dry.rows == [["cli-smoke", "1", "2", "0", "4"]]
    cli("group", "reset", "cli-smoke-group", "-t", "cli-smoke:1", "--to-earliest", "--execute")
    assert cli("consume", "cli-smoke", "-g", "cli-smoke-group", "-e").lines == ["one", "two", "three", "NULL"]
    assert "cli-smoke-group" in [row[0] for row in cli("group", "list").rows]

    cli("group", "delete", "cli-smoke-group", "-y")
    cli("topic", "delete", "cli-smoke", "-y")
    cli("topic", "describe", "cli-smoke", code=3)
    cli("consume", "cli-smoke", "-e", code=3)
