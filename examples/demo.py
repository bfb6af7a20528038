"""A demo of all parts in under three minutes: records over HTTP, a Spark pipeline, a table and dead letters.

    python examples/demo.py [--no-wait]

Starts the servers on free ports, registers two versions of a schema, produces good and bad records with curl, runs a
declared pipeline on the topic, and prints the result of every record. The servers run until a key is pressed, so that
you can try the printed commands. `--no-wait` stops them at once.
"""

import argparse
import base64
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import termios
import tty
from collections import Counter
from pathlib import Path
from typing import Any

HEADGATE = [sys.executable, "-P", "-m", "headgate"]
HERE = Path(__file__).resolve().parent / "demo"
TOPIC, SUBJECT, DEAD_LETTERS = "orders", "orders-value", "orders.dead"
REGISTRY_V1 = "application/vnd.schemaregistry.v1+json"
SETTINGS = ("DEMO_FOLDER", "HEADGATE_BOOTSTRAP_SERVER", "HEADGATE_REGISTRY_URL")
REASON_HEADER = "headgate.dead_letter.reason"


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\x00" + schema_id.to_bytes(4) + body


class Demo:
    def __init__(self, folder: Path, addresses: dict[str, str]) -> None:
        self._folder = folder
        self._broker = addresses["broker"]
        self._registry = f"http://{addresses['registry']}"
        self._proxy = f"http://{addresses['proxy']}"
        self._cluster = ""
        self._environment = os.environ | {
            "DEMO_FOLDER": str(folder),
            "HEADGATE_BOOTSTRAP_SERVER": self._broker,
            "HEADGATE_REGISTRY_URL": self._registry,
        }

    def run(self) -> None:
        first, second = self._register("order-v1.avsc"), self._register("order-v2.avsc")
        self._produce_good(first, second)
        self._produce_bad(first)
        self._headgate("Show the plan of the pipeline.", "pipeline", "plan", str(HERE / "pipeline.toml"))
        self._headgate("Run the pipeline.", "pipeline", "run", str(HERE / "pipeline.toml"), "--once")
        self._show_table()
        self._show_dead_letters()
        self._show_places()

    def _register(self, file: str) -> int:
        say(f"Register {file}.")
        body = json.dumps({"schema": (HERE / file).read_text(encoding="utf-8")})
        answer = self._curl("POST", f"{self._registry}/subjects/{SUBJECT}/versions", REGISTRY_V1, body)
        print(json.dumps({"id": answer["id"], "version": answer.get("version")}), flush=True)
        return int(answer["id"])

    def _produce_good(self, first: int, second: int) -> None:
        say("Produce good records of both schema versions. The proxy validates each one.")
        old = [
            {"value": {"id": n, "customer": name, "total": "\u0004\u00d2", "items": ["tea", "cup"]}}
            for n, name in enumerate(("ada", "grace", "edsger"), start=1)
        ]
        new = [{"value": {"id": 4, "buyer": "barbara", "total": "\u0001\u00f4", "items": [], "currency": "USD"}}]
        for schema_id, records in ((first, old), (second, new)):
            self._produce("avro", {"value_schema_id": schema_id, "records": records})

    def _produce_bad(self, schema_id: int) -> None:
        say("Produce poison records as raw bytes, as other programs could.")
        good = framed(schema_id, b"\x0a\x06bob\x04\x03\xe8\x00")
        poison = {
            "text instead of Avro": b"this is not Avro",
            "an id that nobody registered": framed(4_000_000, b"\x02"),
            "cut off in the middle": good[:-3],
            "bytes left over": good + b"\x00\x00",
            "an array that says it has a billion items": framed(
                schema_id, b"\x0a\x06bob\x04\x03\xe8\x80\xa8\xd6\xb9\x07"
            ),
            "a customer that is not UTF-8": good.replace(b"bob", b"b\xffb"),
        }
        for what, payload in poison.items():
            print(f"#   {what}", file=sys.stderr)
            self._produce("binary", {"records": [{"value": base64.b64encode(payload).decode()}]})

    def _produce(self, kind: str, body: dict[str, Any]) -> None:
        answer = self._curl(
            "POST", f"{self._proxy}/topics/{TOPIC}", f"application/vnd.kafka.{kind}.v2+json", json.dumps(body)
        )
        faults = [each for each in answer["offsets"] if each["error_code"] is not None]
        if faults:
            raise SystemExit(f"the demo failed: {faults}")

    def _show_table(self) -> None:
        say("The table contains the good records of both versions.")
        with sqlite3.connect(self._folder / "sales.db") as database:
            rows = database.execute("SELECT id, buyer, total, currency, items FROM sales ORDER BY id").fetchall()
        for row in rows:
            print("  ".join(f"{value!s:10}" for value in row).rstrip())

    def _show_dead_letters(self) -> None:
        say("The dead letters by reason, read over HTTP. Each one has the original bytes, topic, partition and offset.")
        answer = self._curl("GET", f"{self._topics()}/{DEAD_LETTERS}/records?from=earliest&value_format=binary")
        reasons: Counter[str] = Counter()
        for record in answer["data"]:
            headers = {header["name"]: header["value"] for header in record["headers"]}
            reasons[base64.b64decode(headers[REASON_HEADER]).decode()] += 1
        for reason, count in sorted(reasons.items()):
            print(f"{count:3}  {reason}")

    def _show_places(self) -> None:
        say("Try these commands:")
        program = shutil.which("headgate", path=str(Path(sys.executable).parent)) or "python -m headgate"
        places = {
            "the decoded topic with poison rows": f"curl '{self._topics()}/{TOPIC}/records?from=earliest'",
            "the registered versions": f"curl {self._registry}/subjects/{SUBJECT}/versions",
            "the dead letters": f"{program} dead list {DEAD_LETTERS} -b {self._broker}",
            "one dead letter": f"{program} dead show {DEAD_LETTERS} 0:0 -b {self._broker}",
            "the pipeline": f"cat {HERE / 'pipeline.toml'}",
        }
        for what, command in places.items():
            print(f"  # {what}\n  {command}", flush=True)

    def _topics(self) -> str:
        if not self._cluster:
            self._cluster = self._curl("GET", f"{self._proxy}/v3/clusters")["data"][0]["cluster_id"]
        return f"{self._proxy}/v3/clusters/{self._cluster}/topics"

    def _curl(self, method: str, url: str, content_type: str = "", body: str = "") -> Any:
        """Print a curl command and run it, as a user would. Prints the output only if the command fails."""
        command = ["curl", "-sS", "--fail-with-body", "-X", method]
        if content_type:
            command += ["-H", f"Content-Type: {content_type}"]
        shown = shlex.join([*command, *(["-d", body] if body else []), url])
        print(f"$ {shown}", file=sys.stderr, flush=True)
        if body:
            command += ["-d", "@-"]
        done = subprocess.run([*command, url], input=body, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the demo ends here: curl ended with {done.returncode}: {done.stderr}{done.stdout}")
        return json.loads(done.stdout)

    def _headgate(self, words: str, *arguments: str) -> None:
        say(words)
        typed = shlex.join(["headgate", *arguments])
        settings = " ".join(f"{name}={self._environment[name]}" for name in SETTINGS)
        print(f"$ cd {self._folder} && {settings} {typed}", file=sys.stderr, flush=True)
        done = subprocess.run([*HEADGATE, *arguments], cwd=self._folder, env=self._environment, check=False)
        if done.returncode:
            raise SystemExit(f"the demo failed: {typed} exited with {done.returncode}")


def say(words: str) -> None:
    print(f"\n# {words}", file=sys.stderr, flush=True)


def wait_for_key() -> None:
    """Wait for a key, or for the end of standard input if it is not a terminal."""
    if not sys.stdin.isatty():
        sys.stdin.read()
        return
    previous = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        sys.stdin.read(1)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, previous)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-wait", action="store_true", help="stop the servers at the end, without waiting for a key")
    arguments = parser.parse_args()
    if shutil.which("curl") is None:
        raise SystemExit("the demo needs curl; install it and try again")
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as name:
        folder = Path(name)
        ports = [text for service in ("broker", "registry", "proxy") for text in (f"--{service}-port", "0")]
        command = ["up", "--json", *ports]
        say("Start the broker, the registry and the REST proxy on free ports, with a temporary data directory.")
        print(f"$ {shlex.join(['headgate', *command])}", file=sys.stderr, flush=True)
        process = subprocess.Popen([*HEADGATE, *command], stdout=subprocess.PIPE, text=True, cwd=folder)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise SystemExit("the servers did not start; see the error above")
            Demo(folder, json.loads(line)["services"]).run()
            if not arguments.no_wait:
                say("All servers are still running. Try the commands in another terminal. Press a key to stop.")
                wait_for_key()
        except KeyboardInterrupt:
            pass
        finally:
            process.terminate()
            process.communicate()


if __name__ == "__main__":
    main()
