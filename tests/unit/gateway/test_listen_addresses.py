"""The addresses of `headgate up`: which one the broker advertises, and how a failure to listen is explained."""

import errno
import socket
from contextlib import nullcontext
from typing import Any

import pytest

from headgate.gateway import compose
from headgate.gateway.cli.start_errors import address_error
from headgate.gateway.settings.model import load_settings

PORTS = {"broker_port": 9092, "registry_port": 8081, "proxy_port": 8082}


@pytest.fixture
def listens(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Replaces the listening sockets. Returns the addresses that they had."""
    addresses: list[tuple[str, int]] = []

    class Probe(nullcontext[Any]):
        def __init__(self, address: tuple[str, int]) -> None:
            super().__init__(self)
            self.address = address

        def getsockname(self) -> tuple[str, int]:
            return self.address

    def listen(address: tuple[str, int], family: int) -> Probe:
        addresses.append(address)
        return Probe(address)

    monkeypatch.setattr(socket, "create_server", listen)
    return addresses


class Route(nullcontext[Any]):
    """A UDP socket whose route has a fixed source address, or no route."""

    def __init__(self, source: str | None) -> None:
        super().__init__(self)
        self.source = source

    def connect(self, address: tuple[str, int]) -> None:
        if self.source is None:
            raise OSError(errno.ENETUNREACH, "Network is unreachable")

    def getsockname(self) -> tuple[str, int]:
        assert self.source is not None
        return self.source, 1


def commands(settings: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {service.name: service.command for service in compose.services(load_settings(PORTS | settings))}


@pytest.mark.parametrize(
    ("host", "source", "advertised", "local"),
    [
        ("0.0.0.0", "10.1.2.3", "10.1.2.3:9092", "127.0.0.1"),
        ("::", "fd00::7", "[fd00::7]:9092", "[::1]"),
    ],
)
def test_a_broker_on_all_interfaces_advertises_the_address_of_the_route(
    monkeypatch: pytest.MonkeyPatch,
    listens: list[tuple[str, int]],
    host: str,
    source: str,
    advertised: str,
    local: str,
) -> None:
    monkeypatch.setattr(socket, "socket", lambda family, kind: Route(source))
    made = commands({"host": host})
    assert f"advertised.listeners=PLAINTEXT://{advertised}" in made["broker"]
    assert {f"{local}:9092", f"http://{local}:8081"} <= set(made["proxy"])
    assert listens == [(host, 9092), (host, 8081), (host, 8082)]


@pytest.mark.usefixtures("listens")
def test_an_advertised_address_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", lambda family, kind: Route(None))
    given = "PLAINTEXT://kafka.example:9092"
    made = commands({"host": "0.0.0.0", "broker_config": {"advertised.listeners": given}})
    assert [word for word in made["broker"] if "advertised" in word] == [f"advertised.listeners={given}"]


@pytest.mark.usefixtures("listens")
def test_one_address_is_advertised_as_it_is() -> None:
    assert not [word for word in commands({"host": "127.0.0.1"})["broker"] if "advertised" in word]


@pytest.mark.usefixtures("listens")
def test_all_interfaces_without_a_route_are_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", lambda family, kind: Route(None))
    settings = load_settings(PORTS | {"host": "0.0.0.0"})
    with pytest.raises(compose.NoReachableAddress) as caught:
        compose.services(settings)
    error = address_error(caught.value, settings)
    assert "Network is unreachable" in error.why
    assert "--set advertised.listeners=" in error.next_step


def test_two_services_on_one_port_are_refused() -> None:
    settings = load_settings({"broker_port": 0, "only": ["broker", "registry"], "registry_port": 0})
    ports = compose.services(settings)
    assert ports[0].command[-3] != ports[1].command[-3]  # free ports differ
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = load_settings(PORTS | {"broker_port": port, "registry_port": port})
    with pytest.raises(compose.CannotListen) as caught:
        compose.services(settings)
    error = address_error(caught.value, settings)
    assert error.what == f"the registry cannot listen on port {port}: it is in use"
    assert error.why == "another service of this command uses it"


def test_an_address_of_another_machine_is_refused_with_advice() -> None:
    settings = load_settings({"host": "203.0.113.9", "broker_port": 0})
    with pytest.raises(compose.CannotListen) as caught:
        compose.services(settings)
    error = address_error(caught.value, settings)
    assert error.what == "the broker cannot listen on 203.0.113.9"
    assert "--host 127.0.0.1" in error.next_step
