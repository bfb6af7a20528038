"""Installs npm packages into `.cache/` of the checkout, once. Safe for concurrent processes."""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.live.maven import CACHE

SCHEMA_REGISTRY = "@confluentinc/schemaregistry@1.10.1"
INSTALL_SECONDS_MAX = 600
RUN_SECONDS_MAX = 120


class NodeUnavailable(RuntimeError):
    """Node.js or npm is missing, or the installation failed. The message states the cause."""


def install(package: str) -> Path:
    """Return the folder whose `node_modules` contains the package. npm runs on the first call only."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NodeUnavailable(f"{program} is not installed (make system installs it)")
    folder = CACHE / "npm" / package.strip("@").replace("/", "-")
    complete = folder / "complete"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return folder
        # Ignore install scripts, so that no package code runs during the installation.
        command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", package]
        try:
            done = subprocess.run(
                [*command, "--prefix", str(folder)],
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NodeUnavailable(f"npm did not install {package} in {INSTALL_SECONDS_MAX} s") from error
        if done.returncode != 0:
            raise NodeUnavailable(f"npm could not install {package}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        complete.touch()
    return folder


def run(folder: Path, script: Path, argument: Any) -> Any:
    """Run a script with `argument` as JSON and the packages of `folder`. Return its JSON output."""
    done = subprocess.run(
        ["node", str(script), json.dumps(argument)],
        # Do not pass proxy settings: the registry is on loopback.
        env={"PATH": os.environ["PATH"], "NODE_PATH": str(folder / "node_modules")},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
