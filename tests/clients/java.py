"""The Java clients through Kafka's command-line tools. Consumers in groups keep running; other tools run to the end."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.clients.client import SESSION_TIMEOUT_MS
from tests.live.apache_kafka import ToolResult, java_command, run_tool
from tests.live.process import ServerProcess

TOOLS = "org.apache.kafka.tools"


class JavaTools:
    """Kafka's command-line tools, connected to one broker."""

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, name: str, *arguments: str, stdin: str = "", check: bool = True) -> ToolResult:
        main = f"{TOOLS}.{name}" if not name.startswith("kafka.") else name
        return run_tool(main, "--bootstrap-server", self._address, *arguments, stdin=stdin, check=check)

    def topics(self, *arguments: str, check: bool = True) -> ToolResult:
        return self.run("TopicCommand", *arguments, check=check)

    def groups(self, *arguments: str, check: bool = True) -> ToolResult:
        return self.run("consumer.group.ConsumerGroupCommand", *arguments, check=check)

    def configs(self, *arguments: str, check: bool = True) -> ToolResult:
        return self.run("kafka.admin.ConfigCommand", *arguments, check=check)

    def produce(self, topic: str, lines: Sequence[str], *properties: str, reader: Sequence[str] = ()) -> None:
        """Send lines to ConsoleProducer. `properties` configure the producer, `reader` configures its line reader."""
        arguments = ["--topic", topic]
        for one in properties:
            arguments += ["--command-property", one]
        for one in reader:
            arguments += ["--reader-property", one]
        self.run("ConsoleProducer", *arguments, stdin="".join(f"{line}\n" for line in lines))

    def consume(self, topic: str, count: int, *arguments: str, show: Sequence[str] = ()) -> list[str]:
        """Return the lines of ConsoleConsumer. `show` lists the fields to print in addition to the value."""
        more = [word for part in show for word in ("--formatter-property", f"print.{part}=true")]
        return self.run(
            "consumer.ConsoleConsumer", "--topic", topic, "--max-messages", str(count), *more, *arguments
        ).lines

    def table(self, result: ToolResult) -> list[dict[str, str]]:
        """Parse the rows below the header line of a tool that prints a table."""
        lines = [line for line in result.lines if line.strip()]
        start = next(i for i, line in enumerate(lines) if line.split()[0] == "GROUP")
        names = lines[start].split()
        return [dict(zip(names, line.split(), strict=False)) for line in lines[start + 1 :]]


class JavaMember:
    """Kafka's VerifiableConsumer: a group member that logs its assignments and records, line by line."""

    def __init__(self, address: str, folder: Path, label: str, group: str, topic: str, *arguments: str) -> None:
        self._log = folder / f"{label}.log"
        command = java_command(
            f"{TOOLS}.VerifiableConsumer",
            *("--bootstrap-server", address, "--group-id", group, "--topic", topic),
            *("--session-timeout", str(SESSION_TIMEOUT_MS), "--reset-policy", "earliest", "--verbose", *arguments),
        )
        self._process = ServerProcess(command, self._log)
        self._process.start(lambda: any(event["name"] == "startup_complete" for event in self.events()))

    def events(self) -> list[dict[str, Any]]:
        if not self._log.exists():
            return []
        lines = self._log.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("{")]

    def assignment(self) -> frozenset[int]:
        held: set[int] = set()
        for event in self.events():
            parts = {part["partition"] for part in event.get("partitions", []) if isinstance(part, dict)}
            if event["name"] == "partitions_assigned":
                held |= parts
            elif event["name"] == "partitions_revoked":
                held -= parts
        return frozenset(held)

    def rebalances(self) -> int:
        return sum(event["name"] in {"partitions_assigned", "partitions_revoked"} for event in self.events())

    def values(self) -> set[str]:
        return {event["value"] for event in self.events() if event["name"] == "record_data"}

    def close(self) -> None:
        self._process.stop()
