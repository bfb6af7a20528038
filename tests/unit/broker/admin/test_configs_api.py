"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources on a broker without sockets."""

import logging
from collections.abc import Callable, Iterator

import pytest

from headgate.broker.handlers import alter_configs, describe_configs, incremental_alter_configs, list_config_resources
from headgate.broker.runtime.errors import StorageError
from headgate.broker.state.settings import Scope
from tests.unit.broker.admin.asking import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    Admin,
)

MALFORMED = 77


@pytest.mark.parametrize("version", describe_configs.VERSIONS)
def test_describe_configs_lists_all_defaults_at_every_version(admin: Admin, version: int) -> None:
    admin.create("a")
    resource = {"resource_type": TOPIC, "resource_name": "a", "configuration_keys": None}
    answer = admin.ask(describe_configs, version, resources=[resource], include_documentation=True)
    (result,) = answer["results"]
    configs = {config["name"]: config for config in result["configs"]}
    assert len(configs) == 33
    assert configs["retention.ms"]["value"] == "604800000"
    assert configs["retention.ms"]["config_source"] == 5
    if version >= 3:
        assert configs["retention.ms"]["config_type"] == 5
        assert all(config["documentation"] for config in configs.values())


def test_no_documentation_unless_asked_for(admin: Admin) -> None:
    assert all(config["documentation"] is None for config in admin.configs(BROKER, "1").values())


def test_a_topics_value_hides_the_brokers_which_hides_the_default(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(log_segment_bytes="2000000")
    admin.create("a", segment_bytes="3000000")
    config = admin.configs(TOPIC, "a", "segment.bytes")["segment.bytes"]
    assert (config["value"], config["config_source"]) == ("3000000", 1)
    assert [(synonym["name"], synonym["value"], synonym["source"]) for synonym in config["synonyms"]] == [
        ("segment.bytes", "3000000", 1),
        ("log.segment.bytes", "2000000", 4),
        ("log.segment.bytes", "1073741824", 5),
    ]


def test_a_retention_in_hours_holds_but_is_no_synonym(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(log_retention_hours="1")
    admin.create("a")
    config = admin.configs(TOPIC, "a", "retention.ms")["retention.ms"]
    assert (config["value"], config["config_source"], config["synonyms"]) == ("3600000", 5, [])


def test_the_broker_shows_where_it_really_is(admin: Admin) -> None:
    configs = admin.configs(BROKER, "1", "listeners", "log.dirs")
    assert configs["listeners"]["value"] == "PLAINTEXT://{}:{}".format(*admin.broker.address)
    assert configs["log.dirs"]["value"] == str(admin.broker.directory.path)
    assert configs["log.dirs"]["config_source"] == 4


def test_values_are_shown_tidied(admin: Admin) -> None:
    admin.create("a", retention_ms=" 5 ", cleanup_policy="compact , delete")
    configs = admin.configs(TOPIC, "a", "retention.ms", "cleanup.policy")
    assert (configs["retention.ms"]["value"], configs["cleanup.policy"]["value"]) == ("5", "compact,delete")


@pytest.mark.parametrize(
    ("resource_type", "name", "code"),
    [
        (TOPIC, "absent", "unknown_topic_or_partition"),
        (TOPIC, "bad name", "invalid_topic_exception"),
        (TOPIC, "", "invalid_topic_exception"),
        (BROKER, "99", "invalid_request"),
        (BROKER, "one", "invalid_request"),
        (BROKER, "9" * 5000, "invalid_request"),
        (LOGGER, "", "invalid_request"),
        (LOGGER, "99", "invalid_request"),
        (GROUP, "", "invalid_request"),
        (CLIENT_METRICS, "", "invalid_request"),
    ],
)
def test_a_bad_resource_does_not_affect_a_good_one(admin: Admin, resource_type: int, name: str, code: str) -> None:
    good = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["num.partitions"]}
    bad = {"resource_type": resource_type, "resource_name": name, "configuration_keys": None}
    results = admin.ask(describe_configs, resources=[bad, good])["results"]
    assert [(result["error_code"], len(result["configs"])) for result in results] == [(code, 0), ("none", 1)]


@pytest.mark.parametrize("resource_type", [0, MALFORMED])
def test_a_type_that_does_not_exist_makes_the_request_malformed(admin: Admin, resource_type: int) -> None:
    good = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["num.partitions"]}
    bad = {"resource_type": resource_type, "resource_name": "x", "configuration_keys": None}
    results = admin.ask(describe_configs, resources=[bad, good])["results"]
    assert [(result["error_code"], len(result["configs"])) for result in results] == [("invalid_request", 0)] * 2


def test_the_number_of_configs_in_a_response_is_limited(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_configs, "CONFIGS_MAX", 40)
    admin.create("a")
    resource = {"resource_type": TOPIC, "resource_name": "a", "configuration_keys": None}
    results = admin.ask(describe_configs, resources=[resource] * 4)["results"]
    assert [result["error_code"] for result in results] == ["none", "none", "policy_violation", "policy_violation"]


@pytest.mark.parametrize("version", incremental_alter_configs.VERSIONS)
def test_incremental_changes_take_effect_and_outlive_a_restart(open_admin: Callable[..., Admin], version: int) -> None:
    admin = open_admin()
    admin.create("a", retention_ms="1", flush_ms="9")
    changes = [("retention.ms", SET, "5"), ("flush.ms", DELETE, None), ("cleanup.policy", APPEND, "compact")]
    configs = [{"name": name, "config_operation": operation, "value": value} for name, operation, value in changes]
    resource = {"resource_type": TOPIC, "resource_name": "a", "configs": configs}
    admin.ask(incremental_alter_configs, version, resources=[resource])
    for broker in (admin.broker, open_admin().broker):
        topic = broker.topics.find("a")
        assert topic is not None
        assert topic.overrides == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
        assert topic.settings.retention_ms == 5
        assert topic.partitions[0].log.settings.is_compacted


def test_validate_only_changes_nothing(admin: Admin) -> None:
    admin.create("a")
    answer = admin.alter(TOPIC, "a", ("retention.ms", SET, "5"), validate_only=True)
    assert answer["error_code"] == "none"
    answer = admin.alter(BROKER, "1", ("log.retention.ms", SET, "5"), validate_only=True)
    assert answer["error_code"] == "none"
    assert admin.configs(TOPIC, "a", "retention.ms")["retention.ms"]["value"] == "604800000"


@pytest.mark.parametrize(
    ("resource_type", "name", "operations", "code", "message"),
    [
        (TOPIC, "absent", [("retention.ms", SET, "5")], "unknown_topic_or_partition", "'absent' does not exist"),
        (TOPIC, "bad name", [("retention.ms", SET, "5")], "invalid_topic_exception", "is invalid"),
        (TOPIC, "", [("retention.ms", SET, "5")], "invalid_request", "Default topic resources"),
        (TOPIC, "a", [("retention.ms", SET, "5"), ("segment.bytes", SET, "x")], "invalid_config", "segment.bytes"),
        (TOPIC, "a", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")], "invalid_request", "duplicate"),
        (TOPIC, "a", [("retention.ms", SET, None)], "invalid_request", "Null value not supported"),
        (TOPIC, "a", [("cleanup.policy", APPEND, None)], "invalid_request", "Null value not supported"),
        (TOPIC, "a", [("no.such", SET, "5")], "invalid_config", "Unknown topic config name: no.such"),
        (TOPIC, "a", [("retention.ms", 9, "5")], "invalid_request", "operation 9"),
        (TOPIC, "a", [("retention.ms", SUBTRACT, "5")], "invalid_config", "Can't SUBTRACT"),
        (TOPIC, "a", [("retention.ms", SET, "x" * 100_000)], "invalid_config", "longer than"),
        (TOPIC, "a", [("n" * 100_000, SET, "x")], "invalid_config", "Unknown topic config name"),
        (BROKER, "99", [("log.retention.ms", SET, "5")], "invalid_request", "expected 1, but received 99"),
        (BROKER, "one", [("log.retention.ms", SET, "5")], "invalid_request", "must be an integer"),
        (BROKER, "1", [("node.id", SET, "5")], "invalid_request", "dynamically: [node.id]"),
        (BROKER, "", [("log.retention.ms", SET, "x")], "invalid_request", "Not a number of type LONG"),
        (GROUP, "", [("x", SET, "1")], "invalid_request", "Default group"),
        (GROUP, "g", [("x", SET, "1")], "invalid_config", "Unknown group config name: x"),
        (CLIENT_METRICS, "m", [("x", SET, "1")], "invalid_request", "Unknown client metrics configuration: x"),
        (0, "x", [("x", SET, "1")], "invalid_request", "Unknown resource type 0"),
        (MALFORMED, "x", [("x", SET, "1")], "invalid_request", "Unknown resource type 77"),
    ],
)
def test_each_way_to_be_wrong_has_its_code(
    admin: Admin,
    resource_type: int,
    name: str,
    operations: list[tuple[str, int, str | None]],
    code: str,
    message: str,
) -> None:
    admin.create("a")
    answer = admin.alter(resource_type, name, *operations)
    assert answer["error_code"] == code
    assert message in answer["error_message"]
    topic = admin.broker.topics.find("a")
    assert topic is not None
    assert topic.overrides == {}


def test_a_bad_resource_and_one_named_twice_leave_the_good_one_alone(admin: Admin) -> None:
    admin.create("a", "b")
    configs = [{"name": "retention.ms", "config_operation": SET, "value": "5"}]
    asked = [{"resource_type": TOPIC, "resource_name": name, "configs": configs} for name in ("a", "absent", "b", "b")]
    answers = admin.ask(incremental_alter_configs, resources=asked)["responses"]
    assert [answer["error_code"] for answer in answers] == [
        "none",
        "unknown_topic_or_partition",
        "invalid_request",
        "invalid_request",
    ]
    assert admin.configs(TOPIC, "b", "retention.ms")["retention.ms"]["config_source"] == 5


def test_a_brokers_dynamic_config_reaches_its_topics_and_outlives_a_restart(open_admin: Callable[..., Admin]) -> None:
    admin = open_admin(log_retention_ms="1000")
    admin.create("a")
    admin.alter(BROKER, "", ("log.retention.ms", SET, "2000"))
    assert admin.configs(TOPIC, "a", "retention.ms")["retention.ms"]["config_source"] == 3
    admin.alter(BROKER, "1", ("log.retention.ms", SET, "3000"))
    admin = open_admin(log_retention_ms="1000")
    config = admin.configs(TOPIC, "a", "retention.ms")["retention.ms"]
    assert config["value"] == "3000"
    assert [synonym["source"] for synonym in config["synonyms"]] == [2, 3, 4, 5]
    topic = admin.broker.topics.find("a")
    assert topic is not None
    assert topic.settings.retention_ms == 3000
    assert list(admin.configs(BROKER, "")) == ["log.retention.ms"]
    assert admin.broker.settings.dynamic(Scope.ALL_BROKERS) == {"log.retention.ms": "2000"}


@pytest.mark.parametrize("version", alter_configs.VERSIONS)
def test_alter_configs_replaces_all(admin: Admin, version: int) -> None:
    admin.create("a", retention_ms="1", flush_ms="9")
    resource = {
        "resource_type": TOPIC,
        "resource_name": "a",
        "configs": [{"name": "retention.ms", "value": "5"}],
    }
    (answer,) = admin.ask(alter_configs, version, resources=[resource])["responses"]
    assert answer["error_code"] == "none"
    topic = admin.broker.topics.find("a")
    assert topic is not None
    assert topic.overrides == {"retention.ms": "5"}


def test_alter_configs_knows_no_loggers(admin: Admin) -> None:
    resource = {"resource_type": LOGGER, "resource_name": "1", "configs": [{"name": "root", "value": "INFO"}]}
    (answer,) = admin.ask(alter_configs, resources=[resource])["responses"]
    assert (answer["error_code"], answer["error_message"]) == ("invalid_request", "Unknown resource type 8")


def test_a_change_that_cannot_be_stored_is_a_storage_error(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    admin.create("a")

    def fail(*_: object) -> None:
        raise StorageError("the disk said no")

    monkeypatch.setattr(type(admin.broker.topic_store), "set_overrides", fail)
    answer = admin.alter(TOPIC, "a", ("retention.ms", SET, "5"))
    assert (answer["error_code"], answer["error_message"]) == ("kafka_storage_error", "the disk said no")


LOGGER_NAME = "headgate.test.admin"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger(LOGGER_NAME)
    yield logger
    logger.setLevel(logging.NOTSET)


def test_levels_of_loggers_are_shown_and_changed(admin: Admin, logger: logging.Logger) -> None:
    assert admin.alter(LOGGER, "1", (LOGGER_NAME, SET, "FATAL"))["error_code"] == "none"
    config = admin.configs(LOGGER, "1")[LOGGER_NAME]
    assert (config["value"], config["config_source"], config["config_type"]) == ("FATAL", 6, 0)
    assert logger.level == logging.CRITICAL
    assert admin.alter(LOGGER, "1", (LOGGER_NAME, DELETE, None))["error_code"] == "none"
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("change", "resource", "code"),
    [
        ((LOGGER_NAME, SET, "LOUD"), "1", "invalid_config"),
        (("nobody", SET, "INFO"), "1", "invalid_config"),
        (("root", DELETE, None), "1", "invalid_request"),
        ((LOGGER_NAME, APPEND, "INFO"), "1", "invalid_request"),
        ((LOGGER_NAME, SET, "INFO"), "", "invalid_request"),
        ((LOGGER_NAME, SET, "INFO"), "9", "invalid_request"),
    ],
)
def test_levels_that_will_not_do_are_refused(
    admin: Admin, logger: logging.Logger, change: tuple[str, int, str | None], resource: str, code: str
) -> None:
    assert admin.alter(LOGGER, resource, change)["error_code"] == code
    assert logger.level == logging.NOTSET


def test_list_config_resources(admin: Admin) -> None:
    admin.create("a")

    def listed(*types: int) -> tuple[str, set[tuple[int, str]]]:
        answer = admin.ask(list_config_resources, resource_types=types)
        found = {(each["resource_type"], each["resource_name"]) for each in answer["config_resources"]}
        return answer["error_code"], found

    assert listed() == ("none", {(TOPIC, "a"), (BROKER, "1"), (LOGGER, "1")})
    assert listed(TOPIC) == ("none", {(TOPIC, "a")})
    assert listed(GROUP, CLIENT_METRICS) == ("none", set())
    assert listed(TOPIC, MALFORMED) == ("unsupported_version", set())
    assert admin.ask(list_config_resources, 0)["config_resources"] == []
