import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headgate.gateway.supervisor import Service, ServiceDied, Supervisor

LISTENS = "import sys; print('listening on http://127.0.0.1:7', flush=True); sys.stdin.read(); print('bye')"
DEAF = (
    "import signal, sys, time; signal.signal(15, signal.SIG_IGN); print('listening on a:1', flush=True); time.sleep(60)"
)


def service(code: str, stop_seconds_max: float = 20.0) -> Service:
    return Service("thing", (sys.executable, "-c", code), stop_seconds_max)


def test_ready_when_it_says_where_it_listens_and_gone_when_stopped() -> None:
    async def run() -> None:
        supervisor = Supervisor([service(LISTENS)], lambda service, line: None)
        assert await supervisor.start() == {"thing": "127.0.0.1:7"}
        assert await supervisor.stop() == []

    asyncio.run(run())


def test_a_service_that_ends_before_it_is_ready_is_reported_with_its_last_words() -> None:
    lines: list[str] = []

    async def run() -> None:
        supervisor = Supervisor(
            [service("print('no'); raise SystemExit(3)"), service(LISTENS)], lambda _, line: lines.append(line)
        )
        with pytest.raises(ServiceDied) as caught:
            await supervisor.start()
        assert (caught.value.exit_code, caught.value.tail) == (3, ("no",))
        await supervisor.stop()

    asyncio.run(run())
    assert "no" in lines


def test_one_that_ends_later_ends_the_watch() -> None:
    code = "import time; print('listening on a:1', flush=True); time.sleep(0.2); raise SystemExit(5)"

    async def run() -> None:
        supervisor = Supervisor([service(LISTENS), service(code)], lambda service, line: None)
        await supervisor.start()
        with pytest.raises(ServiceDied, match="exit code 5"):
            await supervisor.watch()
        await supervisor.stop()

    asyncio.run(run())


def test_the_last_one_stops_first_and_the_others_wait_for_it() -> None:
    """The proxy needs the broker to finish its in-flight requests."""
    said: list[str] = []
    slow = (
        "import signal, sys, time; signal.signal(15, lambda *_: (time.sleep(0.3), print('{0} ends', flush=True), "
        "sys.exit(0))); print('listening on a:1', flush=True); time.sleep(60)"
    )

    async def run() -> None:
        supervisor = Supervisor([service(slow.format(name)) for name in "abc"], lambda _, line: said.append(line))
        await supervisor.start()
        await supervisor.stop()

    asyncio.run(run())
    assert said == ["c ends", "b ends", "a ends"]


def test_one_that_will_not_stop_is_killed_and_named() -> None:
    async def run() -> None:
        supervisor = Supervisor([service(DEAF, stop_seconds_max=0.1)], lambda service, line: None)
        await supervisor.start()
        assert await supervisor.stop() == ["thing"]

    asyncio.run(run())


def test_a_line_without_end_is_dropped_and_the_next_one_read() -> None:
    lines: list[str] = []
    code = "print('x' * 300_000); print('after'); print('listening on a:1', flush=True); input()"

    async def run() -> None:
        supervisor = Supervisor([service(code)], lambda _, line: lines.append(line))
        await supervisor.start()
        await supervisor.stop()

    asyncio.run(run())
    assert "after" in lines


def test_children_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    witness = tmp_path / "ended"
    child = f"import sys; print('listening on a:1', flush=True); sys.stdin.read(); open({str(witness)!r}, 'w').close()"
    parent = f"""
import asyncio, sys
from headgate.gateway.supervisor import Service, Supervisor
async def run():
    supervisor = Supervisor([Service("thing", (sys.executable, "-c", {child!r}), 9.0)], print)
    await supervisor.start()
    print("up", flush=True)
    await supervisor.watch()
asyncio.run(run())
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"up\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 30
    while not witness.exists():
        assert time.monotonic() < deadline, "the child outlived its supervisor"
        time.sleep(0.02)


def test_the_environment_of_a_service_reaches_the_child() -> None:
    lines: list[str] = []
    code = f"import os; print(os.environ['SECRET'], 'PATH' in os.environ); {LISTENS}"
    child = Service("thing", (sys.executable, "-c", code), 20.0, {"SECRET": "geheim"})
    assert "geheim" not in repr(child)

    async def run() -> None:
        supervisor = Supervisor([child], lambda _, line: lines.append(line))
        await supervisor.start()
        await supervisor.stop()

    asyncio.run(run())
    assert lines[0] == "geheim True"
