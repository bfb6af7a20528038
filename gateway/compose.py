"""Which services a Headgate consists of, and how each is started from the settings."""

import sys
from importlib.util import find_spec

from gateway.settings.model import ServiceName, Settings
from gateway.supervisor import Service

# `make up` must be over 3 s after SIGTERM. The registry's store is safe at any moment, and an open event stream would
# hold it up; the broker flushes what nobody waited for, which a slow disk may stretch.
registry_stop_seconds_max = 2.0
broker_stop_seconds_max = 30.0


def services(settings: Settings) -> list[Service]:
    """The services asked for, in the order of their names in ServiceName."""
    return [_service(name, settings) for name in ServiceName if name in settings.only and find_spec(name) is not None]


def _service(name: ServiceName, settings: Settings) -> Service:
    # -P: a folder called `broker` in the working directory is not ours.
    command = [sys.executable, "-P", "-m", name.value, "--stop-at-eof", "--data-dir", str(settings.data_dir / name)]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    match name:
        case ServiceName.BROKER:
            command += ["--listen", f"{host}:{settings.broker_port}"]
            for config, value in settings.broker_config.items():
                command += ["--set", f"{config}={value}"]
            return Service(name, tuple(command), broker_stop_seconds_max)
        case ServiceName.REGISTRY:
            command += ["--listen", f"{host}:{settings.registry_port}"]
            return Service(name, tuple(command), registry_stop_seconds_max)


def port_of(name: str, settings: Settings) -> int:
    return settings.broker_port if name == ServiceName.BROKER else settings.registry_port
