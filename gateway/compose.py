"""Builds the command line of each service from the settings."""

import ipaddress
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack

from headgate.gateway.settings.model import ServiceName, Settings, environment_name
from headgate.gateway.settings.registry_address import with_scheme
from headgate.gateway.supervisor import Service

# The registry and the proxy can be killed at any time without loss, and open event streams would delay a clean stop.
# The broker flushes unsynced data at shutdown, which takes longer on a slow disk.
http_stop_seconds_max = 2.0
broker_stop_seconds_max = 30.0


class CannotListen(Exception):
    """A service cannot listen on its address. The cause is an OSError."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(name, port)
        self.name = name
        self.port = port


class NoReachableAddress(Exception):
    """The broker listens on all interfaces, and this machine has no address that other machines reach."""


def services(settings: Settings) -> list[Service]:
    """The selected services, in the order of ServiceName. Raises CannotListen, NoReachableAddress."""
    selected = [name for name in ServiceName if name in settings.only]
    ports = _ports(settings, selected)
    return [_service(name, settings, ports) for name in selected]


def _service(name: ServiceName, settings: Settings, ports: Mapping[ServiceName, int]) -> Service:
    host, local = _bracketed(settings.host), _bracketed(_loopback(settings.host))
    # -P: a folder called `headgate` in the working directory is not this package.
    command = [sys.executable, "-P", "-m", f"headgate.{name}", "--stop-at-eof", "--listen", f"{host}:{ports[name]}"]
    match name:
        case ServiceName.BROKER:
            command += ["--data-dir", str(settings.data_dir / name)]
            configs = settings.broker_config
            if is_wildcard(settings.host) and "advertised.listeners" not in configs:
                address = f"{_bracketed(reachable_host(settings.host))}:{ports[name]}"
                configs = configs | {"advertised.listeners": f"PLAINTEXT://{address}"}
            for config, value in configs.items():
                command += ["--set", f"{config}={value}"]
            return Service(name, tuple(command), broker_stop_seconds_max)
        case ServiceName.REGISTRY:
            command += ["--data-dir", str(settings.data_dir / name)]
            command += _set("allowed.hosts", settings.allowed_hosts)
            return Service(name, tuple(command), http_stop_seconds_max)
        case ServiceName.PROXY:
            broker, registry = settings.bootstrap_server, with_scheme(settings.registry_url)
            if ServiceName.BROKER in settings.only:
                broker = f"{local}:{ports[ServiceName.BROKER]}"
            if ServiceName.REGISTRY in settings.only:
                registry = f"http://{local}:{ports[ServiceName.REGISTRY]}"
            command += ["--bootstrap-server", broker]
            environment = {}
            if settings.kafka_config is not None:
                # The embedded broker has no TLS and no SASL.
                is_embedded = ServiceName.BROKER in settings.only
                environment[environment_name("kafka_config")] = "" if is_embedded else str(settings.kafka_config)
            if "@" in registry:
                # The address contains a password, and other users can read command lines.
                environment[environment_name("registry_url")] = registry
            else:
                command += ["--registry-url", registry]
            command += _set("allowed.hosts", settings.allowed_hosts)
            command += _set("trusted.proxies", settings.trusted_proxies)
            return Service(name, tuple(command), http_stop_seconds_max, environment)


def _set(name: str, values: tuple[str, ...]) -> list[str]:
    return ["--set", f"{name}={','.join(values)}"] if values else []


def port_of(name: str, settings: Settings) -> int:
    ports = {
        ServiceName.BROKER: settings.broker_port,
        ServiceName.REGISTRY: settings.registry_port,
        ServiceName.PROXY: settings.proxy_port,
    }
    return ports[ServiceName(name)]


def is_wildcard(host: str) -> bool:
    """Whether a server on this host listens on all interfaces."""
    return (address := _address(host)) is not None and address.is_unspecified


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    return host == "localhost" or ((address := _address(host)) is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def reachable_host(host: str) -> str:
    """The address that other machines connect to. On all interfaces, the address of the default route.

    Raises NoReachableAddress.
    """
    if not is_wildcard(host):
        return host
    family, elsewhere = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))  # selects the route; UDP sends nothing here
            return str(probe.getsockname()[0])
    except OSError as error:
        raise NoReachableAddress(str(error.strerror)) from error


def _loopback(host: str) -> str:
    """The address that a service on this machine connects to."""
    return ("::1" if ":" in host else "127.0.0.1") if is_wildcard(host) else host


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ports(settings: Settings, selected: list[ServiceName]) -> dict[ServiceName, int]:
    """Listen on each address for a moment: finds free ports, and errors before a service starts. Raises CannotListen.

    All ports must be known before the first service starts, because other services need them.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    ports = {}
    with ExitStack() as probes:
        for name in selected:
            port = port_of(name, settings)
            try:
                probe = probes.enter_context(socket.create_server((settings.host, port), family=family))
            except OSError as error:
                raise CannotListen(name, port) from error
            ports[name] = probe.getsockname()[1]
    return ports
