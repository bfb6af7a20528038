"""A broker, a registry and a REST proxy on free ports of loopback."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headgate.testing.faults import BrokerFaults
from headgate.testing.service import Service, free_port

BROKER_CONFIGS: Final = {
    # Without this, the first consumer of a group waits three seconds.
    "group.initial.rebalance.delay.ms": "0",
}


class Headgate:
    """Context manager. `broker`, `registry` and `proxy` can be killed, paused and restarted one by one.

    With `inject_faults`, `faults` makes the disk full, fsyncs slow, and requests fail. Data is in `folder`, or in a
    temporary folder that is removed at the end.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        broker_configs: Mapping[str, str] | None = None,
        inject_faults: bool = False,
    ) -> None:
        self._temporary = None if folder is not None else tempfile.TemporaryDirectory(prefix="headgate-")
        self.folder = folder if folder is not None else Path(self._temporary.name if self._temporary else "")
        broker, registry, proxy = (f"127.0.0.1:{free_port()}" for _ in range(3))
        configs = [
            word
            for name, value in {**BROKER_CONFIGS, **(broker_configs or {})}.items()
            for word in ("--set", f"{name}={value}")
        ]
        self._faults = BrokerFaults(self.folder / "faults.json") if inject_faults else None
        program = () if self._faults is None else ("headgate.testing.faulty_broker", str(self._faults.path))
        self.broker = Service(
            "broker", broker, ["--data-dir", str(self.folder / "broker"), *configs], self.folder, program
        )
        self.registry = Service("registry", registry, ["--data-dir", str(self.folder / "registry")], self.folder)
        self.proxy = Service(
            "proxy", proxy, ["--bootstrap-server", broker, "--registry-url", f"http://{registry}"], self.folder
        )

    @property
    def faults(self) -> BrokerFaults:
        """A full disk, slow fsyncs and error codes. Raises RuntimeError without `inject_faults`."""
        if self._faults is None:
            raise RuntimeError("start it with Headgate(inject_faults=True)")
        return self._faults

    @property
    def bootstrap_servers(self) -> str:
        return self.broker.address

    @property
    def registry_url(self) -> str:
        return f"http://{self.registry.address}"

    @property
    def proxy_url(self) -> str:
        return f"http://{self.proxy.address}"

    def start(self) -> None:
        """Raises ServiceFailed."""
        for service in self._services:
            service.launch()
        for service in self._services:
            service.wait_until_ready()

    def stop(self) -> None:
        for service in reversed(self._services):
            service.stop()
        if self._temporary is not None:
            self._temporary.cleanup()

    @property
    def _services(self) -> tuple[Service, ...]:
        return (self.broker, self.registry, self.proxy)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
