"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: names, types, defaults, sources, and every error case."""

from typing import Any

from tests.wire.entities import Plain
from tests.wire.transcript import Wire

UNKNOWN, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(kind: int, name: str, keys: list[str] | None = None, **more: Any) -> Plain:
    return {
        "resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}],
        "include_synonyms": True,
        "include_documentation": True,
        **more,
    }


def change(kind: int, name: str, *configs: tuple[str, int, str | None], validate_only: bool = False) -> Plain:
    entries = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in configs]
    return {
        "resources": [{"resource_type": kind, "resource_name": name, "configs": entries}],
        "validate_only": validate_only,
    }


def replace(kind: int, name: str, configs: dict[str, str | None], *, validate_only: bool = False) -> Plain:
    entries = [{"name": key, "value": value} for key, value in configs.items()]
    return {
        "resources": [{"resource_type": kind, "resource_name": name, "configs": entries}],
        "validate_only": validate_only,
    }


def value_of(answer: Plain, key: str) -> str | None:
    for config in answer["results"][0]["configs"]:
        if config["name"] == key:
            value: str | None = config["value"]
            return value
    return None


def every_setting_of_a_fresh_topic(wire: Wire) -> None:
    topic = wire.topic("fresh")
    for version in (1, 2, 3, 4):
        wire.ask("describe_configs", version, describe(TOPIC, topic))


def chosen_settings_only(wire: Wire) -> None:
    topic = wire.topic("chosen")
    for version in (1, 2, 3, 4):
        wire.ask("describe_configs", version, describe(TOPIC, topic, ["retention.ms", "cleanup.policy"]))
    wire.ask("describe_configs", 4, describe(TOPIC, topic, ["retention.ms"], include_synonyms=False))
    wire.ask("describe_configs", 4, describe(TOPIC, topic, ["retention.ms"], include_documentation=False))
    wire.ask("describe_configs", 4, describe(TOPIC, topic, ["no.such.setting"]), label="a name that is no setting")
    wire.ask("describe_configs", 4, describe(TOPIC, topic, []), label="an empty list of names")
    wire.ask("describe_configs", 4, describe(BROKER, "1", ["num.partitions", "message.max.bytes"]))


def describing_what_is_not_there(wire: Wire) -> None:
    wire.ask("describe_configs", 4, describe(TOPIC, wire.name("absent")), label="unknown topic")
    wire.ask("describe_configs", 4, describe(TOPIC, "bad name!"), label="invalid topic name")
    wire.ask("describe_configs", 4, describe(TOPIC, ""), label="empty topic name")
    wire.ask("describe_configs", 4, describe(BROKER, "99"), label="another broker")
    wire.ask("describe_configs", 4, describe(BROKER, "one"), label="a broker that is no number")
    wire.ask("describe_configs", 4, describe(BROKER, ""), label="the default for all brokers")
    wire.ask("describe_configs", 4, describe(UNKNOWN, "x"), label="no type")
    wire.ask("describe_configs", 4, describe(77, "x"), label="unheard-of type")
    both = {
        "resources": [
            {"resource_type": TOPIC, "resource_name": wire.name("absent"), "configuration_keys": ["retention.ms"]},
            {"resource_type": TOPIC, "resource_name": wire.topic("good"), "configuration_keys": ["retention.ms"]},
        ]
    }
    wire.ask("describe_configs", 4, both, label="one bad among good")


def describing_unheard_of_types(wire: Wire) -> None:
    topic = wire.topic("of-a-type")
    good = {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": ["retention.ms"]}
    for kind in (UNKNOWN, 1, 3, 77, 127, -1, -128):
        odd = {"resource_type": kind, "resource_name": "x", "configuration_keys": None}
        for version in (1, 4):
            wire.ask("describe_configs", version, {"resources": [odd]}, label=f"type {kind}")
        wire.ask("describe_configs", 4, {"resources": [good, odd]}, label=f"a topic and type {kind}")
    absent = {"resource_type": TOPIC, "resource_name": wire.name("absent"), "configuration_keys": None}
    odd = {"resource_type": 77, "resource_name": "", "configuration_keys": ["retention.ms"]}
    wire.ask("describe_configs", 4, {"resources": [odd, absent, good]}, label="three, one of them of no type")
    wire.ask("describe_configs", 4, {"resources": [good, good]}, label="the same topic twice")
    wire.ask("describe_configs", 4, {"resources": []}, label="nothing")


def changing_unheard_of_types(wire: Wire) -> None:
    topic = wire.topic("changed")
    for kind in (UNKNOWN, 1, 77, -1):
        wire.ask("incremental_alter_configs", 1, change(kind, "x", ("retention.ms", SET, "5")), label=f"type {kind}")
        wire.ask("alter_configs", 2, replace(kind, "x", {"retention.ms": "5"}), label=f"type {kind}")
        both = change(TOPIC, topic, ("retention.ms", SET, "5000"))
        both["resources"] += change(kind, "x", ("retention.ms", SET, "5"))["resources"]
        wire.ask("incremental_alter_configs", 1, both, label=f"a topic and type {kind}")
    _see(wire, topic, "retention.ms", "5000", "what became of the topic")


def settings_given_at_creation_show_their_source(wire: Wire) -> None:
    topic = wire.topic("given", configs={"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    wire.ask("describe_configs", 4, describe(TOPIC, topic, ["retention.ms", "cleanup.policy", "segment.bytes"]))


def _see(wire: Wire, topic: str, key: str, want: str | None, label: str = "") -> None:
    wire.ask(
        "describe_configs",
        4,
        describe(TOPIC, topic, [key], include_documentation=False),
        settled=lambda answer: value_of(answer, key) == want,
        label=label,
    )


def incremental_set_and_delete(wire: Wire) -> None:
    topic = wire.topic("set")
    for version in (0, 1):
        wire.ask("incremental_alter_configs", version, change(TOPIC, topic, ("retention.ms", SET, "5000")))
        _see(wire, topic, "retention.ms", "5000")
        wire.ask("incremental_alter_configs", version, change(TOPIC, topic, ("retention.ms", DELETE, None)))
        _see(wire, topic, "retention.ms", "604800000", "back to the default")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, ("retention.ms", DELETE, None)), label="not set")
    trial = change(TOPIC, topic, ("retention.ms", SET, "7"), validate_only=True)
    wire.ask("incremental_alter_configs", 1, trial, label="validate only")
    _see(wire, topic, "retention.ms", "604800000", "unchanged")


def incremental_append_and_subtract(wire: Wire) -> None:
    topic = wire.topic("list")
    key = "cleanup.policy"
    steps: list[tuple[int, str | None, str]] = [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "delete", "compact"),
        (SET, "delete", "delete"),
        (APPEND, "compact,delete", "delete,compact"),
    ]
    for operation, value, want in steps:
        wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (key, operation, value)))
        _see(wire, topic, key, want)
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, ("retention.ms", APPEND, "1")), label="not a list")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, ("retention.ms", SUBTRACT, "1")), label="not a list")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (key, APPEND, "nonsense")), label="bad list item")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (key, APPEND, None)), label="append null")
    throttled = "leader.replication.throttled.replicas"
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (throttled, APPEND, "0:1")))
    _see(wire, topic, throttled, "0:1")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (throttled, APPEND, "1:1")))
    _see(wire, topic, throttled, "0:1,1:1")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (throttled, SUBTRACT, "0:1")))
    _see(wire, topic, throttled, "1:1")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (throttled, APPEND, "")), label="nothing")
    _see(wire, topic, throttled, "1:1,")


BAD_VALUES: tuple[tuple[str, str | None], ...] = (
    ("retention.ms", "soon"),
    ("retention.ms", "-2"),
    ("retention.ms", ""),
    ("retention.ms", None),
    ("retention.ms", "9223372036854775808"),
    ("retention.ms", " 60000 "),
    ("retention.ms", "1e3"),
    ("retention.bytes", "-2"),
    ("segment.bytes", "13"),
    ("segment.bytes", "2147483648"),
    ("segment.ms", "0"),
    ("cleanup.policy", "shred"),
    ("cleanup.policy", ""),
    ("cleanup.policy", "delete,delete"),
    ("compression.type", "brotli"),
    ("compression.gzip.level", "10"),
    ("compression.gzip.level", "0"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "23"),
    ("max.message.bytes", "-1"),
    ("max.message.bytes", "0"),
    ("message.timestamp.type", "Yesterday"),
    ("message.timestamp.before.max.ms", "-1"),
    ("message.timestamp.after.max.ms", "-1"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("min.cleanable.dirty.ratio", "half"),
    ("min.insync.replicas", "0"),
    ("min.compaction.lag.ms", "-1"),
    ("max.compaction.lag.ms", "0"),
    ("delete.retention.ms", "-1"),
    ("file.delete.delay.ms", "-1"),
    ("flush.messages", "0"),
    ("flush.ms", "-1"),
    ("index.interval.bytes", "-1"),
    ("segment.index.bytes", "3"),
    ("segment.jitter.ms", "-1"),
    ("preallocate", "maybe"),
    ("preallocate", "TRUE"),
    ("unclean.leader.election.enable", "2"),
    ("leader.replication.throttled.replicas", "x"),
    ("leader.replication.throttled.replicas", "*"),
    ("local.retention.ms", "-3"),
    ("local.retention.bytes", "-3"),
    ("remote.storage.enable", "true"),
    ("no.such.setting", "1"),
    ("message.format.version", "3.0"),
    ("", "1"),
)


def wrong_values_are_named(wire: Wire) -> None:
    topic = wire.topic("wrong")
    for key, value in BAD_VALUES:
        wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, (key, SET, value)), label=f"{key}={value!r}")


def good_values_of_every_kind(wire: Wire) -> None:
    topic = wire.topic("right")
    good = {
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "segment.bytes": "1048576",
        "cleanup.policy": "compact, delete",
        "compression.type": "zstd",
        "max.message.bytes": "2000",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.75",
        "min.insync.replicas": "2",
        "preallocate": "true",
        "unclean.leader.election.enable": "true",
        "flush.messages": "1",
        "leader.replication.throttled.replicas": "*",
    }
    entries = tuple((key, SET, value) for key, value in good.items())
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, *entries))
    body = describe(TOPIC, topic, sorted(good), include_documentation=False)
    wire.ask("describe_configs", 4, body, settled=lambda answer: value_of(answer, "max.message.bytes") == "2000")


def wrong_changes(wire: Wire) -> None:
    topic = wire.topic("misused")
    retention = ("retention.ms", SET, "5")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, wire.name("absent"), retention), label="unknown topic")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, "bad name!", retention), label="invalid topic name")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, "", retention), label="empty topic name")
    for fault in (("retention.ms", SET, "x"), ("retention.ms", APPEND, "5"), ("nope", SET, "5")):
        for name in (wire.name("absent"), "bad name!", ""):
            body = change(TOPIC, name, fault)
            wire.ask("incremental_alter_configs", 1, body, label=f"{fault} of a wrong topic '{name[:6]}'")
    wire.ask("alter_configs", 2, replace(TOPIC, wire.name("absent"), {"retention.ms": "x"}), label="both wrong")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic), label="nothing to change")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, retention, retention), label="the same key twice")
    wire.ask("incremental_alter_configs", 1, change(TOPIC, topic, ("retention.ms", 9, "5")), label="no such operation")
    wire.ask("incremental_alter_configs", 1, change(77, "x", retention), label="unheard-of type")
    wire.ask("incremental_alter_configs", 1, change(UNKNOWN, "x", retention), label="no type")
    wire.ask(
        "incremental_alter_configs", 1, change(BROKER, "99", ("log.retention.ms", SET, "5")), label="no such broker"
    )
    wire.ask("incremental_alter_configs", 1, change(BROKER, "one", ("log.retention.ms", SET, "5")), label="no number")
    wire.ask("incremental_alter_configs", 1, change(BROKER, "1", ("node.id", SET, "5")), label="read-only setting")
    wire.ask("incremental_alter_configs", 1, change(BROKER, "1", ("log.retention.ms", SET, "x")), label="bad value")
    mixed = change(TOPIC, topic, ("retention.ms", SET, "6000"), ("segment.bytes", SET, "x"))
    wire.ask("incremental_alter_configs", 1, mixed, label="one bad key spoils its resource")
    _see(wire, topic, "retention.ms", "604800000", "unchanged")
    two = {
        "resources": [
            *change(TOPIC, wire.name("absent"), retention)["resources"],
            *change(TOPIC, topic, ("retention.ms", SET, "6000"))["resources"],
        ]
    }
    wire.ask("incremental_alter_configs", 1, two, label="one bad resource among good")
    _see(wire, topic, "retention.ms", "6000", "the good one took effect")
    twice = {"resources": 2 * change(TOPIC, topic, ("retention.ms", SET, "7000"))["resources"]}
    wire.ask("incremental_alter_configs", 1, twice, label="the same resource twice")


def a_brokers_settings_change_at_run_time(wire: Wire) -> None:
    key = "log.retention.ms"
    topic = wire.topic("follows")

    def see(label: str, want: str | None) -> None:
        body = describe(BROKER, "1", [key], include_documentation=False)
        wire.ask("describe_configs", 4, body, settled=lambda answer: value_of(answer, key) == want, label=label)

    wire.ask("incremental_alter_configs", 1, change(BROKER, "1", (key, SET, "123456789")))
    see("set on this broker", "123456789")
    _see(wire, topic, "retention.ms", "123456789", "a topic without its own value follows")
    wire.ask("incremental_alter_configs", 1, change(BROKER, "1", (key, DELETE, None)))
    see("unset", None)
    wire.ask("incremental_alter_configs", 1, change(BROKER, "", (key, SET, "987654321")))
    see("set for all brokers", "987654321")
    _see(wire, topic, "retention.ms", "987654321", "a topic follows the default for all brokers")
    wire.ask("describe_configs", 4, describe(BROKER, "", include_documentation=False), label="the default for all")
    wire.ask("incremental_alter_configs", 1, change(BROKER, "", (key, DELETE, None)))
    see("unset again", None)
    _see(wire, topic, "retention.ms", "604800000", "the default is back")


def alter_configs_replaces_all(wire: Wire) -> None:
    topic = wire.topic("replaced", configs={"retention.ms": "1000", "segment.bytes": "2000000"})
    for version in (0, 1, 2):
        wire.ask("alter_configs", version, replace(TOPIC, topic, {"retention.ms": str(2000 + version)}))
        _see(wire, topic, "retention.ms", str(2000 + version))
        _see(wire, topic, "segment.bytes", "1073741824", "what was not named is gone")
    wire.ask(
        "alter_configs", 2, replace(TOPIC, topic, {"retention.ms": "9"}, validate_only=True), label="validate only"
    )
    _see(wire, topic, "retention.ms", "2002", "unchanged")
    wire.ask("alter_configs", 2, replace(TOPIC, topic, {"retention.ms": "x"}), label="bad value")
    wire.ask("alter_configs", 2, replace(TOPIC, topic, {"retention.ms": None}), label="null value")
    wire.ask("alter_configs", 2, replace(TOPIC, topic, {"no.such.setting": "x"}), label="unknown setting")
    wire.ask("alter_configs", 2, replace(TOPIC, wire.name("absent"), {"retention.ms": "5"}), label="unknown topic")
    wire.ask("alter_configs", 2, replace(77, "x", {"retention.ms": "5"}), label="unheard-of type")
    wire.ask("alter_configs", 2, replace(TOPIC, topic, {}), label="nothing named: all defaults")
    _see(wire, topic, "retention.ms", "604800000")


def odd_changes_of_the_brokers_settings(wire: Wire) -> None:
    tries: list[tuple[str, int, str | None]] = [
        ("log.retention.ms", APPEND, "5"),
        ("log.retention.ms", SUBTRACT, "5"),
        ("log.cleanup.policy", APPEND, "compact"),
        ("log.cleanup.policy", APPEND, "nonsense"),
        ("log.retention.bytes", SET, "x"),
        ("num.io.threads", SET, "0"),
        ("broker.id", SET, "7"),
        ("log.dirs", SET, "/x"),
        ("message.max.bytes", SET, "1000000"),
        ("log.retention.ms", DELETE, None),
    ]
    for name in ("", "1"):
        for change_of_one in tries:
            body = change(BROKER, name, change_of_one, validate_only=True)
            wire.ask("incremental_alter_configs", 1, body)
    wire.ask("incremental_alter_configs", 1, change(BROKER, "-1", tries[-1], validate_only=True), label="no broker")
