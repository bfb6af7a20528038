"""Where this broker answers differently from Apache Kafka on purpose: the step, what is answered instead, and why.

docs/deviations.md tells the same to users. A deviation replaces parts of the golden answer, so that the new answer is
held to just as strictly.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Deviation:
    reason: str
    # Paths into the answer, such as "responses.0.error_code", and what stands there instead.
    instead: Mapping[str, Any]


# Keyed by area, scenario and step.
DEVIATIONS: Mapping[tuple[str, str, str], Deviation] = {}


def apply_deviations(area: str, scenario: str, golden: list[Any]) -> list[Any]:
    changed = copy.deepcopy(golden)
    for step in changed:
        deviation = DEVIATIONS.get((area, scenario, step["do"]))
        if deviation is not None:
            for path, value in deviation.instead.items():
                _replace(step, ["answer", *path.split(".")], value)
    return changed


def _replace(where: Any, path: list[str], value: Any) -> None:
    for part in path[:-1]:
        where = where[int(part)] if isinstance(where, list) else where[part]
    last = path[-1]
    if isinstance(where, list):
        where[int(last)] = value
    else:
        where[last] = value
