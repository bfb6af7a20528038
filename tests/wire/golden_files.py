"""The golden responses of Apache Kafka: one JSON file per area, one entry per scenario, one line per step.

`python -m tests.wire.golden_files [area ...]` starts Apache Kafka and records them again. `--at` uses a running broker.
"""

import argparse
import importlib
import inspect
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.live.apache_kafka import KafkaNode
from tests.wire.transcript import Scenario, run_scenario

GOLDEN = Path(__file__).with_name("golden")
AREAS = (
    "acls",
    "configs",
    "documented_deviations",
    "fetching",
    "framing",
    "groups",
    "metadata",
    "offset_lookups",
    "offsets",
    "placement",
    "producers",
    "producing",
    "rejected_batches",
    "static_members",
    "topics",
)
# Also recorded. test_broker_settings.py compares it setting by setting.
BROKER_SETTINGS = "broker_settings"
# Disable the initial rebalance delay: the scenarios join members one by one.
NODE_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
# Disable eligible leader replicas: with this feature, Kafka makes min.insync.replicas a dynamic setting.
FORMAT_ARGUMENTS = ("--feature", "eligible.leader.replicas.version=0")


def scenarios_of(area: str) -> dict[str, Scenario]:
    """Return the public functions of an area's module that take only a `wire`, in source order."""
    module = importlib.import_module(f"tests.wire.scenarios.{area}")
    found: dict[str, Scenario] = {}
    for name, function in vars(module).items():
        if name.startswith("_") or not inspect.isfunction(function) or function.__module__ != module.__name__:
            continue
        if list(inspect.signature(function).parameters) == ["wire"]:
            found[name] = function
    return found


def load(area: str) -> dict[str, Any]:
    path = GOLDEN / f"{area}.json"
    golden: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return golden


# A longer step, for example the description of all settings, uses one line per value.
STEP_LINE_CHARACTERS_MAX = 8000


def text_of(scenarios: dict[str, list[Any]]) -> str:
    """The text of a golden file. With one step per line, a diff shows the steps that changed."""
    blocks = []
    for name, steps in scenarios.items():
        lines = ",\n".join(_line_of(step) for step in steps)
        blocks.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _line_of(step: Any) -> str:
    line = json.dumps(step)
    return line if len(line) <= STEP_LINE_CHARACTERS_MAX else json.dumps(step, indent=1)


def record(address: str, area: str) -> None:
    answers = {name: run_scenario(address, name, scenario) for name, scenario in scenarios_of(area).items()}
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / f"{area}.json").write_text(text_of(answers), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record Apache Kafka's answers again.")
    parser.add_argument("areas", nargs="*", default=[*AREAS, BROKER_SETTINGS])
    parser.add_argument("--at", metavar="HOST:PORT", help="a Kafka 4.3.1 that runs already, fresh, with NODE_SETTINGS")
    arguments = parser.parse_args()
    if arguments.at:
        for area in arguments.areas:
            record(arguments.at, area)
        return
    with tempfile.TemporaryDirectory() as folder:
        node = KafkaNode(Path(folder), NODE_SETTINGS, format_arguments=FORMAT_ARGUMENTS)
        node.start()
        try:
            for area in arguments.areas:
                record(node.address, area)
        finally:
            node.stop()


if __name__ == "__main__":
    main()
