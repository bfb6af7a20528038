"""Downloads jars from Maven Central into `.cache/` of the checkout, once. Safe for concurrent processes.

If Java, Maven or a jar is missing, this module raises `JarsUnavailable`. The fixtures then skip the test, or fail it
on CI.
"""

import fcntl
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache"
FETCH_SECONDS_MAX = 600


class JarsUnavailable(RuntimeError):
    """Java or Maven is missing, or the download failed. The message states the cause."""


def require_java() -> str:
    java = shutil.which("java")
    if java is None:
        raise JarsUnavailable("java is not installed (make system installs it)")
    return java


def fetch(pom: Path, folder: Path, what: str) -> Path:
    """Download the dependencies of `pom` to `folder/libs`. Maven runs on the first call only."""
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
