"""Runs the services of `headgate up`: prints their addresses, forwards signals, explains failures."""

import asyncio
import signal

from headgate.gateway.cli.errors import ExitCode
from headgate.gateway.cli.output import print_json_line, say, say_heading
from headgate.gateway.cli.start_errors import address_error, explained, need_server_extra, prepare_data_dir
from headgate.gateway.compose import CannotListen, NoReachableAddress, is_loopback, reachable_host, services
from headgate.gateway.settings.model import Settings
from headgate.gateway.supervisor import Service, ServiceDied, Supervisor

# Recovery of a large log takes a while. Print a message, so that it does not look like a hang.
start_patience_seconds = 5.0


def run_in_foreground(settings: Settings, *, json: bool) -> int:
    """Run until a signal arrives and return the exit code. Raises CommandError if a service exits by itself."""
    return asyncio.run(_Foreground(settings, json).run())


class _Foreground:
    def __init__(self, settings: Settings, json: bool) -> None:
        self._settings = settings
        self._json = json
        need_server_extra()
        try:
            self._supervisor = Supervisor(services(settings), _pass_on)
        except (CannotListen, NoReachableAddress) as error:
            raise address_error(error, settings) from error
        self._stopping = False
        self._insisted = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        prepare_data_dir(self._settings.data_dir)
        task = asyncio.create_task(self._start_and_watch())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number, task)
        try:
            await task
        except asyncio.CancelledError:
            pass
        except ServiceDied as death:
            say(f"{death}; stopping the other services")
            await self._supervisor.stop()
            raise explained(death, self._settings) from death
        killed = await self._supervisor.stop()
        if self._insisted:
            return ExitCode.INTERRUPTED
        for name in killed:
            say(f"the {name} took too long and was killed; it recovers at the next start")
        say("stopped")
        return ExitCode.DONE

    async def _start_and_watch(self) -> None:
        starting = asyncio.create_task(self._supervisor.start())
        try:
            done, _ = await asyncio.wait([starting], timeout=start_patience_seconds)
            if not done:
                say("still starting: after a crash or on a busy machine this takes longer")
            addresses = _reachable(await starting, self._settings)
        except asyncio.CancelledError:
            starting.cancel()
            raise
        if self._json:
            print_json_line({"data_dir": str(self._settings.data_dir), "services": addresses})
        _announce(addresses, self._settings)
        await self._supervisor.watch()

    def _on_signal(self, number: signal.Signals, task: "asyncio.Task[None]") -> None:
        if self._stopping:
            # Only SIGINT kills: make forwards a SIGTERM that has already arrived here.
            if number == signal.SIGINT:
                self._insisted = True
                self._supervisor.kill()
            return
        self._stopping = True
        say("stopping (press Ctrl-C again to kill)")
        task.cancel()


def _pass_on(service: Service, line: str) -> None:
    say(f"{service.name} | {line}")


def _reachable(addresses: dict[str, str], settings: Settings) -> dict[str, str]:
    """The addresses with a host that clients connect to, instead of 0.0.0.0."""
    try:
        host = reachable_host(settings.host)
    except NoReachableAddress:
        host = "127.0.0.1"  # advertised.listeners is set: the broker's clients use that
    host = f"[{host}]" if ":" in host else host
    return {name: f"{host}:{address.rpartition(':')[2]}" for name, address in addresses.items()}


def _announce(addresses: dict[str, str], settings: Settings) -> None:
    """Print the addresses and the first commands to try, to stderr."""
    broker, registry, proxy = (addresses.get(name) for name in ("broker", "registry", "proxy"))
    rows: list[tuple[str, str]] = []
    lines: list[str] = []
    if broker:
        rows.append(("broker", broker))
        there = "" if broker == "127.0.0.1:9092" else f" -b {broker}"
        lines += [
            f"headgate topic create orders -p 3{there}",
            f"echo hello | headgate produce orders{there}",
            f"headgate consume orders -e{there}",
        ]
    if registry:
        rows.append(("registry", f"http://{registry}"))
        lines.append(f"curl http://{registry}/subjects")
    if proxy:
        rows.append(("proxy", f"http://{proxy}"))
        lines.append(f"curl http://{proxy}/topics")
    rows.append(("data", str(settings.data_dir)))
    say_heading("Headgate is up. Ctrl-C stops it.")
    say("")
    for name, value in rows:
        say(f"  {name:<10}{value}")
    say("")
    if not is_loopback(settings.host):
        say("There is no authentication: everyone who reaches these addresses can read and write.")
        if broker:
            say(f"Kafka clients connect to {_advertised(broker, settings)}. To change this:")
            say("  --set advertised.listeners=PLAINTEXT://HOST:PORT")
        say("")
    say("Try in another terminal:")
    for line in lines:
        say(f"  {line}")


def _advertised(broker: str, settings: Settings) -> str:
    return settings.broker_config.get("advertised.listeners", broker).rpartition("://")[2]
