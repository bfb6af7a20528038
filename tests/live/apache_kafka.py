"""Apache Kafka 4.3.1 from Maven Central: its jars, one KRaft node, and its command-line tools.

Maven downloads the jars once into `.cache/` of the checkout. Tests and benchmarks both start nodes through this module.
If Java is missing, this module raises `JarsUnavailable`. The fixtures then skip the test, or fail it on CI.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.live.maven import CACHE, fetch, require_java
from tests.live.ports import accepts, free_port
from tests.live.process import ServerProcess

KAFKA_VERSION = "4.3.1"
FOLDER = CACHE / f"kafka-{KAFKA_VERSION}"
POM = Path(__file__).with_name("pom.xml")
LOG4J = Path(__file__).with_name("log4j2.properties")
TOOL_SECONDS_MAX = 90.0
CLUSTER_ID = "aGVhZGdhdGUtdGVzdHM0Mg"

# A tool runs for a second, and a test node runs for minutes with little load. The optimizing compiler and a parallel
# garbage collector would only slow down the start.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
LONG_LIVED = ("-XX:+UseG1GC",)
# Disable JVM logging: the JVM would warn about an unusable class archive on stdout, between the lines of the tool.
TOOL_FLAGS = (*SHORT_LIVED, "-Xmx256m", "-Xshare:auto", "-Xlog:disable")
# Class data sharing: the first tool writes the archive, and the next tools start in half the time.
CLASS_ARCHIVE = FOLDER / "tools.jsa"
ARCHIVED = "org.apache.kafka.tools."
SERVER = "kafka.Kafka"

# The settings that a single node requires. All other settings keep Kafka's defaults.
SINGLE_NODE: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class ToolFailed(AssertionError):
    """A Java tool exited with an error."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.splitlines() if line.strip()]


def install() -> Path:
    """Return the folder of Kafka's jars. Downloads them on the first call."""
    return fetch(POM, FOLDER, "Kafka's jars")


def java_command(main_class: str, *arguments: str, flags: Sequence[str] = TOOL_FLAGS) -> list[str]:
    # The server does not use the archive, so that benchmarks measure the default configuration.
    if main_class != SERVER and CLASS_ARCHIVE.exists():
        flags = (*flags, f"-XX:SharedArchiveFile={CLASS_ARCHIVE}")
    return [
        require_java(),
        *flags,
        f"-Dlog4j2.configurationFile={LOG4J}",
        "-cp",
        f"{install()}/*",
        main_class,
        *arguments,
    ]


def run_tool(
    main_class: str,
    *arguments: str,
    stdin: str | bytes = b"",
    seconds: float = TOOL_SECONDS_MAX,
    check: bool = True,
) -> ToolResult:
    """Run one of Kafka's tools until it exits. Raises ToolFailed on a non-zero exit code if `check` is true."""
    flags: tuple[str, ...] = TOOL_FLAGS
    made = CLASS_ARCHIVE.with_name(f"tools-{os.getpid()}.jsa")
    if main_class.startswith(ARCHIVED) and not CLASS_ARCHIVE.exists():
        flags = (*TOOL_FLAGS, f"-XX:ArchiveClassesAtExit={made}")
    done = subprocess.run(
        java_command(main_class, *arguments, flags=flags),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    if made.exists():
        made.replace(CLASS_ARCHIVE)
    result = ToolResult(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
    if check and result.code != 0:
        raise ToolFailed(
            f"{main_class} {arguments} ended with {result.code}\n{result.out[-4000:]}\n{result.err[-4000:]}"
        )
    return result


class KafkaNode:
    """One combined-mode KRaft node on loopback."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        heap_mb: int = 512,
        flags: Sequence[str] = LONG_LIVED,
        format_arguments: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.controller_port = free_port()
        self._settings = dict(settings or {})
        self._java_flags = (f"-Xmx{heap_mb}m", f"-Xms{heap_mb}m", *flags)
        self._format_arguments = tuple(format_arguments)
        self.process: ServerProcess | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = {
            **SINGLE_NODE,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.folder / "data"),
            **self._settings,
        }
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (self.folder / "server.properties").write_text(text, encoding="utf-8")
        where = str(self.folder / "server.properties")
        run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", where, *self._format_arguments)

    def start(self) -> None:
        if not (self.folder / "server.properties").exists():
            self.format()
        command = java_command(SERVER, str(self.folder / "server.properties"), flags=self._java_flags)
        # Without LOG_DIR, Kafka writes its logs to the working directory.
        self.process = ServerProcess(command, self.folder / "node.log", environment={"LOG_DIR": os.fspath(self.folder)})
        self.process.start(lambda: accepts(self.address))

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
