"""Builds the command line of each service from the settings."""

import socket
import sys
from collections.abc import Mapping

from headgate.gateway.settings.model import ServiceName, Settings, environment_name
from headgate.gateway.settings.registry_address import with_scheme
from headgate.gateway.supervisor import Service

# The registry and the proxy can be killed at any time without loss, and open event streams would delay a clean stop.
# The broker flushes unsynced data at shutdown, which takes longer on a slow disk.
http_stop_seconds_max = 2.0
broker_stop_seconds_max = 30.0


def services(settings: Settings) -> list[Service]:
    """The selected services, in the order of ServiceName."""
    ports = {name: port_of(name, settings) or _free_port(settings.host) for name in ServiceName}
    return [_service(name, settings, ports) for name in ServiceName if name in settings.only]


def _service(name: ServiceName, settings: Settings, ports: Mapping[ServiceName, int]) -> Service:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    # -P: a folder called `headgate` in the working directory is not this package.
    command = [sys.executable, "-P", "-m", f"headgate.{name}", "--stop-at-eof", "--listen", f"{host}:{ports[name]}"]
    match name:
        case ServiceName.BROKER:
            command += ["--data-dir", str(settings.data_dir / name)]
            for config, value in settings.broker_config.items():
                command += ["--set", f"{config}={value}"]
            return Service(name, tuple(command), broker_stop_seconds_max)
        case ServiceName.REGISTRY:
            command += ["--data-dir", str(settings.data_dir / name)]
            command += _set("allowed.hosts", settings.allowed_hosts)
            return Service(name, tuple(command), http_stop_seconds_max)
        case ServiceName.PROXY:
            broker, registry = settings.bootstrap_server, with_scheme(settings.registry_url)
            if ServiceName.BROKER in settings.only:
                broker = f"{host}:{ports[ServiceName.BROKER]}"
            if ServiceName.REGISTRY in settings.only:
                registry = f"http://{host}:{ports[ServiceName.REGISTRY]}"
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


def _free_port(host: str) -> int:
    """A free port. It must be known before the service starts, because other services need it."""
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        port: int = probe.getsockname()[1]
        return port
