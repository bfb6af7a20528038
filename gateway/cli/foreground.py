"""Runs the services of `headgate up`: prints their addresses, forwards signals, explains failures."""

import asyncio
import signal
from pathlib import Path

from headgate.gateway.cli.errors import CommandError, ExitCode
from headgate.gateway.cli.output import print_json_line, say, say_heading
from headgate.gateway.compose import port_of, services
from headgate.gateway.port_owner import port_owner
from headgate.gateway.settings.model import Settings
from headgate.gateway.supervisor import Service, ServiceDied, Supervisor

# Recovery of a large log takes a while. Print a message, so that it does not look like a hang.
start_patience_seconds = 5.0
# Enough for the end of a traceback.
shown_lines_max = 10


def run_in_foreground(settings: Settings, *, json: bool) -> int:
    """Run until a signal arrives and return the exit code. Raises CommandError if a service exits by itself."""
    return asyncio.run(_Foreground(settings, json).run())


class _Foreground:
    def __init__(self, settings: Settings, json: bool) -> None:
        self._settings = settings
        self._json = json
        self._supervisor = Supervisor(services(settings), _pass_on)
        self._stopping = False
        self._insisted = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        _prepare(self._settings.data_dir)
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
            addresses = await starting
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


def _prepare(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = data_dir / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"cannot use data directory {data_dir}", why=str(error.strerror), next_step="choose another with --data-dir"
        ) from error


def _pass_on(service: Service, line: str) -> None:
    say(f"{service.name} | {line}")


def explained(death: ServiceDied, settings: Settings) -> CommandError:
    """Derive the cause of a failure from the last log lines of the service."""
    said = "\n".join(death.tail)
    name = death.service.name
    port = port_of(name, settings)
    if "Address already in use" in said:
        owner = port_owner(port)
        return CommandError(
            f"the {name} cannot listen on port {port}: it is in use",
            why=f"{owner} uses it" if owner else "another program uses it",
            next_step=f"stop it, or choose another port: --{name}-port {port + 10000 if port < 50000 else 0}",
        )
    if "is in use by another process" in said:
        return CommandError(
            f"the data directory {settings.data_dir} is in use",
            why="another Headgate runs on it",
            next_step="stop it, or choose another directory: --data-dir DIR",
        )
    last = "".join(f"\n    {line}" for line in death.tail[-shown_lines_max:])
    return CommandError(
        str(death), why=f"its last log lines:{last}" if last else "it logged nothing", next_step=_after(death, settings)
    )


def _after(death: ServiceDied, settings: Settings) -> str:
    steps = []
    if death.exit_code == -signal.SIGKILL:
        steps.append("check `dmesg`: the kernel kills processes when memory runs out")
    steps.append("correct the cause and run headgate up again")
    if others := [f"--only {name}" for name in settings.only if name != death.service.name]:
        steps.append(f"to run the other services without the {death.service.name}: headgate up {' '.join(others)}")
    return "; ".join(steps)


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
    say("Try in another terminal:")
    for line in lines:
        say(f"  {line}")
