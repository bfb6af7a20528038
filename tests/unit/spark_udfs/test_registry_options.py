import pickle

import pytest

from headgate.serdes import BasicAuth, BearerAuth
from headgate.spark_udfs.driver.registry_resolution import resolve
from headgate.spark_udfs.spec.registry_options import OptionError, RegistryOptions


def test_options_have_confluents_names_with_a_prefix() -> None:
    options = RegistryOptions.from_options(
        {
            "registry.url": "http://a:1, http://b:2",
            "registry.basic.auth.user.info": "ada:secret:with:colons",
            "registry.ssl.ca.location": "/etc/ca.pem",
            "registry.timeout.ms": "2500",
            "registry.retries": "0",
            "registry.wait.ms": "90000",
            "subscribe": "orders",
        }
    )
    settings = options.settings()
    assert settings.urls == ("http://a:1", "http://b:2")
    assert settings.auth == BasicAuth("ada", "secret:with:colons")
    assert (settings.tls.ca_file, settings.timeout_seconds, settings.attempts_max) == ("/etc/ca.pem", 2.5, 1)
    assert options.wait_seconds_max == 90.0


def test_a_bearer_token_is_an_option() -> None:
    assert RegistryOptions.from_options({"registry.bearer.auth.token": "t"}).settings().auth == BearerAuth("t")


def test_option_names_are_case_insensitive() -> None:
    assert RegistryOptions.from_options({"Registry.URL": "http://a:1"}).urls == ("http://a:1",)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"registry.urls": "http://a:1"}, "registry.urls"),
        ({"registry.url": "a:1"}, "registry.url"),
        ({"registry.url": " , "}, "registry.url"),
        ({"registry.timeout.ms": "soon"}, "registry.timeout.ms"),
        ({"registry.timeout.ms": "0"}, "registry.timeout.ms"),
        ({"registry.retries": "-1"}, "registry.retries"),
        ({"registry.basic.auth.user.info": "ada"}, "registry.basic.auth.user.info"),
        (
            {"registry.basic.auth.user.info": "a:b", "registry.bearer.auth.token": "t"},
            "registry.bearer.auth.token",
        ),
    ],
)
def test_an_invalid_option_is_reported(options: dict[str, str], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        RegistryOptions.from_options(options)


def test_credentials_are_not_shown() -> None:
    options = RegistryOptions(("http://ada:secret@host:1/path",), user_info="ada:secret", key_password="secret")
    assert "secret" not in repr(options)
    assert options.addresses == "http://host:1/path"


def test_options_are_picklable() -> None:
    options = RegistryOptions(("http://a:1",), token="t")
    assert pickle.loads(pickle.dumps(options)) == options
    assert hash(pickle.loads(pickle.dumps(options))) == hash(options)


def test_environment_variables_are_used_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_REGISTRY_URL", "http://env:1")
    monkeypatch.setenv("HEADGATE_REGISTRY_BASIC_AUTH_USER_INFO", "ada:secret")
    assert resolve().urls == ("http://env:1",)
    assert resolve().user_info == "ada:secret"


def test_credentials_are_not_sent_to_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_REGISTRY_URL", "http://env:1")
    monkeypatch.setenv("HEADGATE_REGISTRY_BASIC_AUTH_USER_INFO", "ada:secret")
    assert resolve("http://other:1").user_info is None
    assert resolve("http://env:1").user_info == "ada:secret"


def test_credentials_without_an_address_are_used_with_the_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_REGISTRY_URL", raising=False)
    monkeypatch.setenv("HEADGATE_REGISTRY_BEARER_AUTH_TOKEN", "t")
    assert resolve("http://other:1").token == "t"


def test_the_default_is_a_local_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_REGISTRY_URL", raising=False)
    assert resolve().urls == ("http://127.0.0.1:8081",)


def test_explicit_options_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_REGISTRY_BEARER_AUTH_TOKEN", "t")
    assert resolve({"registry.url": "http://a:1"}).token is None
    assert resolve(RegistryOptions(("http://a:1",))) == RegistryOptions(("http://a:1",))
