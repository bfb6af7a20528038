import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from headgate.gateway.port_owner import port_owner
from tests.clients.cli.conftest import HEADGATE, Cli
from tests.clients.cli.launcher import Launcher
from tests.clients.cli.up import ports, up
from tests.live.ports import accepts, free_port
from tests.live.registry_credentials import registry_that_notes_credentials


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def process_on(address: str) -> int:
    owner = port_owner(int(address.rpartition(":")[2]))
    if owner is None:
        pytest.skip("no /proc to find a process in")
    return int(owner.split()[1])


def test_everything_starts_answers_and_keeps_its_data(tmp_path: Path, launcher: Launcher) -> None:
    arguments = ports()
    with up(tmp_path, *arguments) as (process, addresses):
        cli = Cli(addresses["broker"], tmp_path, launcher)
        cli("produce", "kept", "-v", "still here")
        assert httpx.get(f"http://{addresses['registry']}/subjects").json() == []
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.02)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0
        talk = err.decode()
        assert "Headgate is up" in talk
        assert f"headgate produce orders -b {addresses['broker']}" in talk
        assert talk.endswith("stopped\n")
    assert (tmp_path / ".headgate" / "broker" / "clean-shutdown").exists()
    with up(tmp_path, *arguments, "--only", "broker") as (process, addresses):
        assert list(addresses) == ["broker"]
        assert Cli(addresses["broker"], tmp_path, launcher)("consume", "kept", "-e").lines == ["still here"]
        inside = tmp_path / ".headgate"
        other = str(free_port())
        said = cli("up", "--only", "broker", "--data-dir", str(inside), "--broker-port", other, code=1).err
        assert f"the data directory {inside} is in use" in said
        port = addresses["broker"].rpartition(":")[2]
        elsewhere = str(tmp_path / "other")
        said = cli("up", "--only", "broker", "--data-dir", elsewhere, "--broker-port", port, code=1).err
        assert f"cannot listen on port {port}" in said
        assert "-m headgate.broker" in said
        assert "--broker-port" in said
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_nothing_outlives_a_killed_supervisor_and_all_is_flushed(tmp_path: Path) -> None:
    with up(tmp_path, *ports()) as (process, addresses):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        eventually(lambda: not any(accepts(address) for address in addresses.values()))
    eventually((tmp_path / ".headgate" / "broker" / "clean-shutdown").exists)


def test_a_second_ctrl_c_insists(tmp_path: Path) -> None:
    with up(tmp_path, *ports(), "--only", "broker") as (process, addresses):
        os.kill(process_on(addresses["broker"]), signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while b"stopping" not in (line := process.stderr.readline()):
            assert line, "it ended before the stop signal"
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert not accepts(addresses["broker"])


def test_a_service_that_dies_takes_the_others_down(tmp_path: Path) -> None:
    with up(tmp_path, *ports()) as (process, addresses):
        os.kill(process_on(addresses["registry"]), signal.SIGKILL)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 1
        assert "the registry ended with exit code -9" in err.decode()
        assert not accepts(addresses["broker"])


def test_missing_permissions_are_explained(tmp_path: Path) -> None:
    # Root may use every port and folder, so these capabilities are removed.
    dropped = ("setpriv", "--bounding-set", "-net_bind_service,-dac_override,-dac_read_search")
    command = [*(dropped if os.geteuid() == 0 else ()), *HEADGATE, "up", "--only", "broker"]
    environment = Cli("unused:1", tmp_path).environment

    def refused(*options: str) -> list[str]:
        done = subprocess.run(
            [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1, done.stderr
        return done.stderr.splitlines()

    what, why, step = refused("--broker-port", "90", "--ephemeral")
    assert what == "error: the broker cannot listen on port 90: permission denied"
    assert "below 1024" in why
    assert "--broker-port 10090" in step
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "broker").mkdir(mode=0o500)
    what, why, step = refused("--broker-port", "0", "--data-dir", "data")
    assert what == "error: cannot use data directory data"
    assert "data/broker is not writable" in why
    assert "--data-dir" in step


def test_invalid_settings_prevent_the_start(tmp_path: Path, launcher: Launcher) -> None:
    cli = Cli("unused:1", tmp_path, launcher)
    assert "--set" in cli("up", "--set", "novalue", code=2).err
    assert "HEADGATE_BROKER_PORT" in cli("up", HEADGATE_BROKER_PORT="many", code=2).err
    assert "broker_port" in cli("up", HEADGATE_BROKER_PORT="70000", code=2).err
    bad = ("--set", "num.partitions=none", "--broker-port", str(free_port()))
    assert "num.partitions" in cli("up", "--only", "broker", *bad, code=1).err


def test_the_proxy_gets_a_password_without_showing_it_to_other_users(tmp_path: Path) -> None:
    with registry_that_notes_credentials() as (place, noted):
        (tmp_path / "headgate.toml").write_text(f"registry_url = 'ada:geheim@{place}'\n")
        with up(tmp_path, *ports(), "--only", "proxy") as (_, addresses):
            command = Path(f"/proc/{process_on(addresses['proxy'])}/cmdline").read_bytes()
            assert b"proxy" in command
            assert b"geheim" not in command
            assert httpx.get(f"http://{addresses['proxy']}/health", timeout=30).json()["registry"] == {"status": "UP"}
    assert noted == ["Basic YWRhOmdlaGVpbQ=="]


def test_an_ephemeral_gateway_has_free_ports_and_leaves_nothing(
    tmp_path: Path, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with up(tmp_path, "--ephemeral", "--ports", "auto") as (process, addresses):
        ports_used = {int(address.rpartition(":")[2]) for address in addresses.values()}
        assert len(ports_used - {9092, 8081, 8082}) == 3
        Cli(addresses["broker"], tmp_path, launcher)("produce", "gone", "-v", "soon")
        assert len(list(temporary.glob("headgate-*/broker"))) == 1
        process.terminate()
        process.wait(60)
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / ".headgate").exists()
