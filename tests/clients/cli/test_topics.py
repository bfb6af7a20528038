import json

from tests.clients.cli.conftest import Cli


def test_a_topic_lives_from_create_to_delete(cli: Cli) -> None:
    cli("topic", "create", "cli-life", "-p", "2", "-c", "retention.ms=5000")
    listed = {each["name"]: each for each in json.loads(cli("topic", "list", "--json").out)}
    assert listed["cli-life"]["partitions"] == 2

    cli("topic", "alter", "cli-life", "-p", "3", "-c", "max.message.bytes=2000", "-d", "retention.ms")
    described = json.loads(cli("topic", "describe", "cli-life", "--json").out)
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2]
    assert [(each["name"], each["value"], each["default"]) for each in described["configs"]] == [
        ("max.message.bytes", "2000", "1048588")
    ]

    refused = cli("topic", "delete", "cli-life", code=2)
    assert "--yes" in refused.err
    cli("topic", "delete", "cli-life", "--yes")
    gone = cli("topic", "describe", "cli-life", code=3)
    assert gone.out == b""
    assert "there is no topic cli-life" in gone.err
    assert "try: headgate topic list" in gone.err


def test_a_table_in_a_pipe_is_plain_columns(cli: Cli) -> None:
    cli("topic", "create", "cli-plain", "-p", "2", "--if-not-exists")
    done = cli("topic", "describe", "cli-plain", "--all", FORCE_COLOR="1")
    assert done.lines[0].split() == ["PARTITION", "LEADER", "REPLICAS", "IN", "SYNC", "START", "END", "SIZE"]
    assert done.lines[1].split() == ["0", "1", "1", "1", "0", "0", "0", "B"]
    assert b"\x1b" not in done.out
    assert any(line.split()[:3] == ["cleanup.policy", "delete", "delete"] for line in done.lines)


def test_an_error_of_the_cluster_is_printed_with_its_reason(cli: Cli) -> None:
    cli("topic", "create", "cli-twice")
    twice = cli("topic", "create", "cli-twice", code=1)
    assert "TOPIC_ALREADY_EXISTS" in twice.err
    cli("topic", "create", "cli-twice", "--if-not-exists")
    config = cli("topic", "create", "cli-config", "-c", "retention.ms=soon", "--validate-only", code=1)
    assert "INVALID_CONFIG" in config.err
    assert "retention.ms" in config.err
    fewer = cli("topic", "alter", "cli-twice", "-p", "1", code=1)
    assert "INVALID_PARTITIONS" in fewer.err


def test_bad_usage_and_failure_have_different_exit_codes(cli: Cli) -> None:
    cli("topic", "create", "x", "-c", "novalue", code=2)
    cli("topic", "create", "x", "-p", "0", code=2)
    cli("topic", "nothing", code=2)
    nobody = cli("topic", "list", "-b", "127.0.0.1:1", code=4)
    assert "no Kafka broker responded at 127.0.0.1:1" in nobody.err
    assert "why: Connection refused" in nobody.err
    assert "headgate up" in nobody.err
    assert "is not an address" in cli("topic", "list", "-b", "kafka:many", code=2).err


def test_topic_names_complete(cli: Cli) -> None:
    cli("topic", "create", "cli-complete-me", "--if-not-exists")
    done = cli(
        _PYTHON__M_GATEWAY_CLI_COMPLETE="complete_bash",
        _HEADGATE_COMPLETE="complete_bash",
        COMP_WORDS="headgate topic describe cli-comp",
        COMP_CWORD="3",
    )
    assert done.lines == ["cli-complete-me"]


def test_settings_come_from_the_project_file_and_say_so(cli: Cli) -> None:
    (cli.folder / "headgate.toml").write_text("registry_port = 7\n[topic.create]\npartitions = 4\n", encoding="utf-8")
    try:
        shown = json.loads(cli("config", "show", "--origin", "--json").out)
        cli("topic", "create", "cli-from-file")
        described = json.loads(cli("topic", "describe", "cli-from-file", "--json").out)
    finally:
        (cli.folder / "headgate.toml").unlink()
    assert shown["registry_port"] == {"value": 7, "origin": str(cli.folder / "headgate.toml")}
    assert shown["bootstrap_server"] == {
        "value": cli.address,
        "origin": "environment HEADGATE_BOOTSTRAP_SERVER",
    }
    assert len(described["partitions"]) == 4
