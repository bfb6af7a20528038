"""Other users of the machine cannot read the files that the servers store."""

import logging
import os
from pathlib import Path

import httpx
import pytest

from headgate.broker.log.directory import DataDirectory
from headgate.registry.api.server import open_registry
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.topics import create_topic


def modes(folder: Path) -> dict[str, str]:
    """Return the files and directories that other users can access, with their modes."""
    found = [folder, *folder.rglob("*")]
    return {str(path): oct(path.stat().st_mode & 0o777) for path in found if path.stat().st_mode & 0o077}


def test_only_the_owner_can_read_the_data_of_the_broker(tmp_path: Path) -> None:
    broker = HeadgateBroker(tmp_path)
    broker.start()
    create_topic(broker.address, "private")
    broker.stop()
    data = next(path for path in tmp_path.rglob("private-0"))
    assert any(data.iterdir())
    assert modes(data.parent) == {}


def test_only_the_owner_can_read_the_store_of_the_registry(tmp_path: Path) -> None:
    registry = HeadgateRegistry(tmp_path)
    registry.start()
    httpx.put(f"{registry.url}/config", json={"compatibility": "NONE"}, timeout=20).raise_for_status()
    files = {path.name for path in (tmp_path / "data").iterdir()}
    assert modes(tmp_path / "data") == {}
    registry.stop()
    assert {"registry.db", "registry.db-wal", "registry.db-shm"} <= files


def test_a_directory_that_others_can_read_is_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("broker", "registry"):
        folder = tmp_path / name
        folder.mkdir()
        os.chmod(folder, 0o750)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            if name == "broker":
                directory = DataDirectory(folder)
                directory.open()
                directory.close(clean=True)
            else:
                open_registry(folder).store.close()
        assert f"chmod -R go= {folder}" in caplog.text
        assert "0750" in caplog.text
