"""Run the commands of the production guide on a standalone cluster: `make spark-guide`.

The commands are the shell blocks in the section "Packaging" of docs/spark.md. They run in an empty folder, with these
replacements: the package is the wheel of this repository, the master is a local one, and `--once` ends the pipeline.
The cluster has two worker processes. Neither has Headgate: the executors use the environment that the commands pack.
"""

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from examples.pipelines.fill import ORDERS, POISON, fill
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.installation import ROOT
from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

PAGE = ROOT / "docs" / "spark.md"
COMMAND_SECONDS_MAX = 3600
WORKERS = 2
REFUSED = "Cluster deploy mode is currently not supported for python applications on standalone clusters"
PIPELINE = """
checkpoint = "{folder}/state"
[kafka]
bootstrap.servers = "{broker}"
[registry]
url = "{registry}"
[spark]
sql.shuffle.partitions = 2
[sources.orders]
type = "topic"
options = {{ minPartitions = 4 }}
[sinks.lake]
type = "parquet"
from = "orders"
path = "{folder}/lake"
[dead_letters]
type = "parquet"
path = "{folder}/letters"
"""


def blocks() -> list[str]:
    """The shell blocks of the section, in order."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("### Packaging") : text.index("### Sizing")]
    return re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


class Cluster:
    """A master and two workers that know nothing of Headgate."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.master = f"spark://127.0.0.1:{self.port}"
        environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": "", "PYSPARK_PYTHON": ""}
        run = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy."]
        master = [run[0], f"{run[1]}master.Master", "--host", "127.0.0.1", "--port", str(self.port)]
        commands = [[*master, "--webui-port", str(free_port())]]
        for number in range(WORKERS):
            worker = [run[0], f"{run[1]}worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            place = ["--work-dir", str(folder / f"worker-{number}"), "--webui-port", str(free_port())]
            commands.append([*worker, *place, self.master])
        self.processes = [
            ServerProcess(command, folder / f"cluster-{number}.log", cwd=folder, environment=environment)
            for number, command in enumerate(commands)
        ]

    def start(self) -> None:
        self.processes[0].start(lambda: accepts(f"127.0.0.1:{self.port}"), 180)
        for worker in self.processes[1:]:
            worker.start(lambda worker=worker: "Successfully registered" in worker.tail(), 180)  # type: ignore[misc]

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.stop()

    def environments(self) -> list[Path]:
        """The Python of each executor, unpacked from the archive."""
        return sorted(self.folder.glob("worker-*/app-*/*/env/bin/python"))


def shell(command: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    started = time.monotonic()
    print(f"$ {command.strip()}", flush=True)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )
    print(f"  exit code {done.returncode} after {time.monotonic() - started:.0f} s", flush=True)
    return done


def rows(folder: Path) -> int:
    import pyarrow.parquet

    parquet_file: Any = pyarrow.parquet.ParquetFile
    return sum(parquet_file(file).metadata.num_rows for file in folder.rglob("*.parquet"))


def check(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert done.returncode == 0, done.stdout[-5000:]
    assert rows(folder / "lake") == len(ORDERS)
    assert rows(folder / "letters") == len(POISON)
    for name in ("lake", "letters", "state"):
        shutil.rmtree(folder / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use its environment again")
    given = parser.parse_args().folder
    folder = given or Path(tempfile.mkdtemp(prefix="spark-guide-"))
    folder.mkdir(exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for name in ("python", "python3"):
        if not (folder / "bin" / name).exists():
            (folder / "bin" / name).symlink_to(base)
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "JAVA_HOME") if name in os.environ}
    environment = {**kept, "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"}
    broker, registry = HeadgateBroker(folder / "broker"), HeadgateRegistry(folder / "registry")
    broker.start()
    registry.start()
    cluster: Cluster | None = None
    try:
        asyncio.run(fill(broker.address, registry.url))
        settings = {"folder": folder, "broker": broker.address, "registry": registry.url}
        (folder / "orders.toml").write_text(PIPELINE.format(**settings), encoding="utf-8")
        pack, submit, in_cluster = blocks()
        if not (folder / "env.tar.gz").exists():
            subprocess.run(
                [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True
            )
            (wheel,) = folder.glob("*.whl")
            done = shell(
                pack.replace("'headgate[spark]'", f"'headgate[spark] @ {wheel.as_uri()}'"), folder, environment
            )
            assert done.returncode == 0, done.stdout[-5000:]
        (home,) = folder.glob("env/lib/python*/site-packages/pyspark")
        cluster = Cluster(folder, home)
        cluster.start()

        def local(command: str) -> str:
            assert "spark://host:7077" in command
            return command.replace("spark://host:7077", cluster.master).replace("orders.toml", "orders.toml --once")

        check(shell(local(submit), folder, environment), folder)
        workers = {path.relative_to(folder).parts[0] for path in cluster.environments()}
        assert len(workers) == WORKERS, workers
        refused = shell(local(in_cluster), folder, environment)
        assert REFUSED in refused.stdout, refused.stdout[-3000:]
        print("every command of the guide works")
    finally:
        if cluster is not None:
            cluster.stop()
        registry.stop()
        broker.stop()
        if given is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
