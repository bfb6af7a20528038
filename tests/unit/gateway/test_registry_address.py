"""Addresses of registries: default scheme, credentials, and no password in any output."""

import base64
from pathlib import Path

import pytest

from headgate.gateway.cli.app import run
from headgate.gateway.settings.masking import masked, masked_values
from headgate.gateway.settings.registry_address import (
    InvalidRegistryAddress,
    RegistryAddress,
    parse_address,
    with_scheme,
)
from tests.live.registry_credentials import registry_that_notes_credentials

ADDRESSES = [
    "http://user:geheim@registry:8081",
    "https://user:geheim/with@both@registry",
    "http://user:geheim?@registry",
    "http://user:12/geheim@registry",
    "http://[user:geheim@registry",
    "ftp://user:geheim@registry",
    "user:geheim@registry:8081",
    "user:geheim://geheim@registry",
    "http://:geheim@registry",
]


def test_an_address_without_a_scheme_is_http() -> None:
    assert with_scheme("localhost:8081") == "http://localhost:8081"
    assert with_scheme("https://a") == "https://a"
    assert with_scheme("user:a://b@host") == "http://user:a://b@host"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:8081", RegistryAddress("http://localhost:8081", None)),
        ("https://ada:p%2Fq@r:1/path", RegistryAddress("https://r:1/path", ("ada", "p/q"))),
        ("ada:a@b@[::1]:1", RegistryAddress("http://[::1]:1", ("ada", "a@b"))),
        ("http://ada@r", RegistryAddress("http://r", ("ada", ""))),
    ],
)
def test_credentials_are_separated_from_the_url(address: str, expected: RegistryAddress) -> None:
    assert parse_address(address) == expected


@pytest.mark.parametrize(
    "address", ["http://u:geheim/x@r", "http://u:geheim#@r", "u:geheim@r:no", "ftp://r", "http://"]
)
def test_an_invalid_address_is_refused_and_not_quoted(address: str) -> None:
    with pytest.raises(InvalidRegistryAddress, match="expected http") as refused:
        parse_address(address)
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("address", ADDRESSES)
def test_passwords_of_addresses_are_masked(address: str) -> None:
    shown = masked(f"cannot reach '{address}': no")
    assert "geheim" not in shown
    assert ":***@registry" in shown


@pytest.mark.parametrize("text", ["http://localhost:8081/subjects/a@b", "at 12:30 mail me@here", "a: b@c"])
def test_other_texts_stay_mostly_as_they_are(text: str) -> None:
    assert masked(text).endswith(text.rpartition("@")[2])


@pytest.mark.parametrize("text", ['{"email":"a@b"}', "mail me@here", "http://a:1 and http://b:2", "x=NAME@3"])
def test_text_without_credentials_is_not_masked(text: str) -> None:
    assert masked(text) == text


def test_secret_configs_are_masked_in_documents() -> None:
    assert masked_values("http://user:password=geheim@registry") == "http://user:***@registry"
    document = {
        "ssl.key.password": "geheim",
        "node.id": "1",
        "set": ["kafka.sasl.jaas.config=user=geheim x", "a=b", "basic.auth.user.info=a:geheim"],
    }
    assert masked_values(document) == {
        "ssl.key.password": "***",
        "node.id": "1",
        "set": ["kafka.sasl.jaas.config=***", "a=b", "basic.auth.user.info=***"],
    }


COMMANDS = [
    ["config", "show"],
    ["config", "show", "--json"],
    ["schema", "list"],
    ["schema", "list", "--help"],
    ["pipeline", "run", "--help"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("address", [*ADDRESSES, "http://user:geheim und-geheim@registry"])
def test_no_command_prints_the_password(
    arguments: list[str],
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    address = address.replace("registry:8081", "registry").replace("registry", "127.0.0.1:1")
    (tmp_path / "headgate.toml").write_text(
        f"registry_url = '{address}'\n[pipeline.run]\nset = ['registry.url={address}']\n"
    )
    run(arguments)
    printed = capsys.readouterr()
    assert "geheim" not in printed.out + printed.err
    assert "***" in printed.out + printed.err


@pytest.mark.parametrize("address", ADDRESSES[:2])
def test_errors_of_the_parser_mask_passwords(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "list", "orders", address]) == 2
    printed = capsys.readouterr().err
    assert "unexpected extra argument" in printed
    assert "geheim" not in printed


def test_the_registry_gets_the_credentials_of_its_address() -> None:
    with registry_that_notes_credentials() as (place, noted):
        assert run(["schema", "list", "--registry", f"ada:p%2Fq@{place}"]) == 0
    assert noted == [f"Basic {base64.b64encode(b'ada:p/q').decode()}"]
