"""Jars from Maven Central, by name, into the checkout's `.cache/`: fetched once, safe for several processes at once.

What a test does when Java, Maven or a jar is missing (skip, or fail on CI) is the fixtures' matter: here it is
`JarsUnavailable`.
"""

import fcntl
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
FETCH_SECONDS_MAX = 600


class JarsUnavailable(RuntimeError):
    """No Java, no Maven, or the jars could not be fetched; the message says which."""


def require_java() -> str:
    java = shutil.which("java")
    if java is None:
        raise JarsUnavailable("java is not installed (make system installs it)")
    return java


def fetch(pom: Path, folder: Path, what: str) -> Path:
    """The dependencies that `pom` lists, as files in `folder/libs`; Maven runs on the first call only."""
    require_java()
    libs, complete = folder / "libs", folder / "complete"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return libs
        maven = shutil.which("mvn")
        if maven is None:
            raise JarsUnavailable("mvn is not installed (make system installs it)")
        command = [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={libs}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired as error:
            raise JarsUnavailable(f"mvn did not fetch {what} in {FETCH_SECONDS_MAX} s") from error
        if done.returncode != 0:
            raise JarsUnavailable(f"mvn could not fetch {what}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        complete.touch()
    return libs
