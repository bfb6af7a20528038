import os
from pathlib import Path

import pytest

from headgate.gateway.cli.app import parser
from headgate.gateway.cli.defaults import SHARED, command_defaults, options_set
from headgate.gateway.cli.options import DEFAULT_BOOTSTRAP_SERVER, DEFAULT_REGISTRY_URL
from headgate.gateway.compose import services
from headgate.gateway.settings.files import SETTING_NAMES, SettingsError, project_file, settings_files, user_file
from headgate.gateway.settings.model import ServiceName, Settings, load_settings, origins


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home directory with an empty project, and no HEADGATE_* or XDG_* environment variables."""
    for name in [name for name in os.environ if name.startswith(("HEADGATE_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project" / "deep" / "down"
    project.mkdir(parents=True)
    monkeypatch.chdir(project)
    return tmp_path


def write_user(home: Path, text: str) -> None:
    (home / ".config" / "headgate").mkdir(parents=True)
    (home / ".config" / "headgate" / "config.toml").write_text(text, encoding="utf-8")


def write_project(home: Path, text: str) -> Path:
    path = home / "project" / "headgate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flag_beats_environment_beats_project_beats_user_beats_default(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load_settings({}).broker_port == 9092
    write_user(home, "broker_port = 1")
    assert load_settings({}).broker_port == 1
    write_project(home, "broker_port = 2")
    assert load_settings({}).broker_port == 2
    monkeypatch.setenv("HEADGATE_BROKER_PORT", "3")
    assert load_settings({}).broker_port == 3
    assert load_settings({"broker_port": 4}).broker_port == 4


def test_origins_name_the_source_of_each_setting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_user(home, 'host = "::1"\nbroker_port = 1\n[broker_config]\na = 1')
    project = write_project(home, "broker_port = 2\nregistry_port = 5\n[broker_config]\nb = 2")
    monkeypatch.setenv("HEADGATE_REGISTRY_PORT", "6")
    monkeypatch.setenv("HEADGATE_DATA_DIR", "")
    user = home / ".config" / "headgate" / "config.toml"
    found = origins(Settings, settings_files(Path.cwd(), os.environ), os.environ)
    assert found["host"] == str(user)
    assert found["broker_port"] == str(project)
    assert found["registry_port"] == "environment HEADGATE_REGISTRY_PORT"
    assert found["data_dir"] == "default"
    assert found["broker_config"] == f"{project} + {user}"
    assert load_settings({}).broker_config == {"a": "1", "b": "2"}


def test_the_project_file_is_found_upwards_and_its_folder_is_meant_by_relative_paths(home: Path) -> None:
    path = write_project(home, 'data_dir = "data"')
    assert project_file(Path.cwd()) == path
    assert load_settings({}).data_dir == home / "project" / "data"


def test_the_user_file_follows_the_base_directory_specification(home: Path) -> None:
    assert user_file({}) is None
    (home / "xdg" / "headgate").mkdir(parents=True)
    path = home / "xdg" / "headgate" / "config.toml"
    path.touch()
    assert user_file({"HOME": "/nowhere", "XDG_CONFIG_HOME": str(home / "xdg")}) == path
    assert user_file({"HOME": str(home), "XDG_CONFIG_HOME": "relative/is/ignored"}) is None


def test_dotted_names_in_a_file_are_kafkas_names(home: Path) -> None:
    write_project(
        home, '[broker_config]\nlog.retention.hours = 24\n"log.cleanup.policy" = ["delete", "compact"]\nx = true'
    )
    assert load_settings({}).broker_config == {
        "log.retention.hours": "24",
        "log.cleanup.policy": "delete,compact",
        "x": "true",
    }


@pytest.mark.parametrize("text", ["a.b=1 c=x=y", '{"a.b": 1, "c": "x=y"}', '{"a": {"b": 1}, "c": "x=y"}'])
def test_broker_configs_from_the_environment_are_pairs_or_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_BROKER_CONFIG", text)
    assert load_settings({}).broker_config == {"a.b": "1", "c": "x=y"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BROKER_PORT", "70000"),
        ("BROKER_PORT", "x"),
        ("ONLY", "nothing"),
        ("BROKER_CONFIG", "novalue"),
        ("BROKER_CONFIG", "{"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"HEADGATE_{name}", value)
    with pytest.raises(SettingsError, match=name.lower()):
        load_settings({})


@pytest.mark.parametrize("text", ["a = ", "a = 1\na = 2", "[" * 5000])
def test_a_file_that_is_not_toml_is_refused_by_its_path(home: Path, text: str) -> None:
    path = write_project(home, text)
    with pytest.raises(SettingsError, match=str(path)):
        settings_files(Path.cwd(), {})


def test_a_table_named_like_a_command_sets_its_options(home: Path) -> None:
    write_user(home, "[topic.create]\npartitions = 2\nreplicas = 1\n[consume]\njson = true")
    write_project(home, 'bootstrap_server = "kafka:9092"\n[topic.create]\npartitions = 3')
    defaults = command_defaults(parser(), settings_files(Path.cwd(), os.environ))
    assert defaults["topic"]["create"] == {"partitions": 3, "replicas": 1, "bootstrap_server": "kafka:9092"}
    assert defaults["consume"] == {"json": True, "bootstrap_server": "kafka:9092"}
    assert defaults["up"] == {}


def test_options_of_a_file_or_the_environment_are_reported_with_their_source(home: Path) -> None:
    write_user(home, "[topic.create]\npartitions = 2\nreplicas = 1")
    project = write_project(home, "[topic.create]\npartitions = 3")
    environment = {"HOME": str(home), "HEADGATE_CONSUME_JSON": "1", "HEADGATE_BOOTSTRAP_SERVER": "a:1"}
    files = settings_files(Path.cwd(), environment)
    assert options_set(parser(), files, environment) == [
        ("consume.json", "1", "environment HEADGATE_CONSUME_JSON"),
        ("topic.create.partitions", 3, str(project)),
        ("topic.create.replicas", 1, str(home / ".config" / "headgate" / "config.toml")),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[topic.create]\npartition = 3", "no option 'partition'"),
        ("topic = 3", "topic is a command"),
        ("boostrap_server = 'a:1'", "did you mean bootstrap_server"),
        ("[tpic]", "neither a setting nor a command"),
    ],
)
def test_a_table_that_fits_no_command_is_refused(home: Path, text: str, complaint: str) -> None:
    write_project(home, text)
    with pytest.raises(SettingsError, match=complaint):
        command_defaults(parser(), settings_files(Path.cwd(), os.environ))


def test_the_settings_are_known_by_name_without_their_model() -> None:
    assert tuple(Settings.model_fields) == SETTING_NAMES


def test_shared_options_are_settings_of_the_same_name_and_default() -> None:
    assert set(Settings.model_fields) >= set(SHARED)
    assert load_settings({}).bootstrap_server == DEFAULT_BOOTSTRAP_SERVER
    assert load_settings({}).registry_url == DEFAULT_REGISTRY_URL


def test_services_are_started_as_the_settings_say() -> None:
    settings = load_settings(
        {"host": "::1", "broker_port": 7, "data_dir": "/d", "only": ["broker"], "broker_config": {"node.id": "3"}}
    )
    (broker,) = services(settings)
    assert broker.name == ServiceName.BROKER
    command = " ".join(broker.command[3:])
    assert command == "headgate.broker --stop-at-eof --listen [::1]:7 --data-dir /d/broker --set node.id=3"


def test_the_proxy_gets_the_addresses_of_started_services_or_of_the_settings() -> None:
    beside = services(load_settings({"broker_port": 7, "registry_port": 8, "proxy_port": 9}))[-1]
    assert " ".join(beside.command[3:]) == (
        "headgate.proxy --stop-at-eof --listen 127.0.0.1:9 "
        "--bootstrap-server 127.0.0.1:7 --registry-url http://127.0.0.1:8"
    )
    (alone,) = services(load_settings({"proxy_port": 9, "only": ["proxy"], "bootstrap_server": "kafka:1"}))
    assert alone.command[-4:] == ("--bootstrap-server", "kafka:1", "--registry-url", "http://127.0.0.1:8081")


def test_no_password_is_on_a_command_line() -> None:
    address = "http://ada:geheim@registry:8081"
    (alone,) = services(load_settings({"proxy_port": 9, "only": ["proxy"], "registry_url": address}))
    assert not any("geheim" in word for word in alone.command)
    assert alone.environment == {"HEADGATE_REGISTRY_URL": address}
    (alone,) = services(load_settings({"proxy_port": 9, "only": ["proxy"], "registry_url": "registry:8081"}))
    assert alone.command[-2:] == ("--registry-url", "http://registry:8081")
    assert alone.environment == {}


def test_the_kafka_config_reaches_the_proxy_unless_the_broker_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_KAFKA_CONFIG", "client.properties")
    (alone,) = services(load_settings({"proxy_port": 9, "only": ["proxy"]}))
    assert alone.environment == {"HEADGATE_KAFKA_CONFIG": "client.properties"}
    beside = services(load_settings({"broker_port": 7, "registry_port": 8, "proxy_port": 9}))[-1]
    assert beside.environment == {"HEADGATE_KAFKA_CONFIG": ""}


def test_names_and_proxies_reach_the_http_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_ALLOWED_HOSTS", "gateway.example, lb.example:8443")
    monkeypatch.setenv("HEADGATE_TRUSTED_PROXIES", "10.0.0.0/8")
    commands = {service.name: service.command for service in services(load_settings({}))}
    for name in ("registry", "proxy"):
        assert "allowed.hosts=gateway.example,lb.example:8443" in commands[name]
    assert "trusted.proxies=10.0.0.0/8" in commands["proxy"]
    assert not any("allowed.hosts" in word for word in commands["broker"])
