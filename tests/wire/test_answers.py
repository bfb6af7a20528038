"""The broker and Apache Kafka 4.3.1 must return the same responses to the same requests.

golden/ contains the recorded responses of Kafka, and every run compares ours with them. One test checks the recording
against a live Kafka. deviations.py lists the intended differences with their reasons. Each must match exactly.
"""

import json

import pytest

from tests.live.headgate import HeadgateBroker
from tests.wire.deviations import DEVIATIONS, apply_deviations
from tests.wire.golden_files import AREAS, BROKER_SETTINGS, load, scenarios_of
from tests.wire.transcript import differences, run_scenario

SCENARIOS = [(area, name) for area in AREAS for name in scenarios_of(area)]
SHOWN_MAX = 40


def disagreements(area: str, name: str, address: str, *, ours: bool) -> list[str]:
    golden = load(area).get(name)
    if golden is None:
        return [f"{area}/{name} has no golden answer; record it with python -m tests.wire.golden_files {area}"]
    # Convert through JSON, like the golden responses.
    got = json.loads(json.dumps(run_scenario(address, name, scenarios_of(area)[name])))
    if ours:
        golden = apply_deviations(area, name, golden)
    lines: list[str] = []
    for i, (expected, actual) in enumerate(zip(golden, got, strict=False)):
        lines.extend(f"step {i} ({expected['do']}){line}" for line in differences(expected, actual))
    if len(golden) != len(got):
        lines.append(f"{len(golden)} steps expected, {len(got)} taken")
    return lines


@pytest.mark.parametrize(("area", "name"), SCENARIOS, ids=[f"{area}-{name}" for area, name in SCENARIOS])
def test_the_broker_answers_as_kafka_does(area: str, name: str, headgate_broker: HeadgateBroker) -> None:
    lines = disagreements(area, name, headgate_broker.address, ours=True)
    assert not lines, "\n".join(lines[:SHOWN_MAX])


@pytest.mark.kafka
@pytest.mark.parametrize("area", [*AREAS, BROKER_SETTINGS])
def test_the_golden_answers_are_kafkas(area: str, apache_kafka: str) -> None:
    lines = [line for name in scenarios_of(area) for line in disagreements(area, name, apache_kafka, ours=False)]
    assert not lines, "\n".join(lines[:SHOWN_MAX])


def test_every_golden_answer_belongs_to_a_scenario() -> None:
    stale = [f"{area}/{name}" for area in AREAS for name in load(area) if name not in scenarios_of(area)]
    assert stale == []


def test_every_deviation_belongs_to_a_step() -> None:
    steps = {(area, name, step["do"]) for area in AREAS for name, golden in load(area).items() for step in golden}
    assert [key for key in DEVIATIONS if key not in steps] == []
