"""A tour of Headgate in under a minute, on free ports and in a temporary folder.

    python examples/tour.py

The narration goes to stderr, and the output of the commands goes to stdout. You can run every step yourself.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HEADGATE = [sys.executable, "-P", "-m", "headgate"]
SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
INCOMPATIBLE = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'


class Tour:
    def __init__(self, folder: Path, addresses: dict[str, str]) -> None:
        self._folder = folder
        self._environment = os.environ | {
            "HEADGATE_BOOTSTRAP_SERVER": addresses["broker"],
            "HEADGATE_REGISTRY_URL": f"http://{addresses['registry']}",
        }

    def step(self, words: str, *arguments: str, stdin: str = "", expected_code: int = 0) -> None:
        """Print one command, then run it."""
        typed = shlex.join(["headgate", *arguments])
        print(f"\n# {words}\n$ {typed}" + (" < ..." if stdin else ""), file=sys.stderr, flush=True)
        done = subprocess.run(
            [*HEADGATE, *arguments],
            input=stdin,
            text=True,
            cwd=self._folder,
            env=self._environment,
            check=False,
        )
        if done.returncode != expected_code:
            raise SystemExit(f"the tour failed: {typed} exited with {done.returncode}, not {expected_code}")

    def walk(self) -> None:
        orders = "".join(json.dumps({"key": f"customer-{n % 3}", "value": {"id": n}}) + "\n" for n in range(6))
        self.step("Create a topic with three partitions.", "topic", "create", "orders", "-p", "3")
        self.step(
            "Produce six records with keys. The output shows partition and offset.",
            "produce",
            "orders",
            "-J",
            "--json",
            stdin=orders,
        )
        self.step("Read all records in a custom format.", "consume", "orders", "-e", "-f", r"%p/%o  %k  %s\n")
        self.step(
            "Read four records with a consumer group, which commits its offsets.",
            "consume",
            "orders",
            "-g",
            "billing",
            "-n",
            "4",
        )
        self.step("Show the lag of the group: two records.", "group", "describe", "billing")
        self.step(
            "Reset the offsets of the group. Without --execute, this is a dry run.",
            "group",
            "reset",
            "billing",
            "--to-earliest",
        )
        self.step("Register a schema for the values.", "schema", "register", "orders-value", "-", stdin=SCHEMA)
        self.step(
            "Check whether a change of the schema is compatible. It is not: exit code 3.",
            *("schema", "check", "orders-value", "-"),
            stdin=INCOMPATIBLE,
            expected_code=3,
        )
        self.step("List all topics, including internal ones.", "topic", "list", "--internal")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-tour-") as name:
        folder = Path(name)
        print("# Start all servers on free ports, with a temporary data directory.", file=sys.stderr)
        command = [
            "up",
            "--json",
            "--broker-port",
            "0",
            "--registry-port",
            "0",
            "--proxy-port",
            "0",
            "--set",
            "group.initial.rebalance.delay.ms=0",
        ]
        print(f"$ {shlex.join(['headgate', *command])}", file=sys.stderr, flush=True)
        process = subprocess.Popen([*HEADGATE, *command], stdout=subprocess.PIPE, text=True, cwd=folder)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit("the servers did not start; see the error above")
            Tour(folder, json.loads(line)["services"]).walk()
        finally:
            print("\n# Ctrl-C stops all servers.", file=sys.stderr, flush=True)
            process.terminate()
            process.communicate()


if __name__ == "__main__":
    main()
