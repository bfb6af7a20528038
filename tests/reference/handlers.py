"""Reads API names, versions, summaries and deviations from the handler modules and their docstrings."""

import inspect
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from kio.index import load_request_schema

from headgate.broker.dispatch.handler_table import MODULES

_DEVIATIONS = "\nDeviations:\n"
_DEVIATION = re.compile(r"(?P<input>.*?)\s+Kafka: (?P<kafka>.*?)\s+Headgate: (?P<headgate>.*)", re.DOTALL)


class Deviation(NamedTuple):
    """An input that the broker handles differently from Kafka."""

    input: str
    kafka: str
    headgate: str


@dataclass(frozen=True, slots=True)
class ServedApi:
    key: int
    name: str
    versions: range
    summary: str
    deviations: tuple[Deviation, ...]


def served_apis() -> list[ServedApi]:
    return sorted((_described(module) for module in MODULES), key=lambda api: api.key)


def _described(module: Any) -> ServedApi:
    docstring = inspect.cleandoc(module.__doc__ or "")
    name = api_name(module.API_KEY, module.VERSIONS[-1])
    start = f"{name} v{span(module.VERSIONS)}: "
    if not docstring.startswith(start):
        raise ValueError(f"The docstring of {module.__name__} does not start with {start!r}")
    summary = docstring.split("\n\n")[0].removeprefix(start)
    return ServedApi(module.API_KEY, name, module.VERSIONS, _on_one_line(summary), deviations_in(docstring))


def deviations_in(docstring: str) -> tuple[Deviation, ...]:
    """Parse the list after `Deviations:`. Each item is an input, `Kafka: <behaviour>` and `Headgate: <behaviour>`."""
    _, _, listed = docstring.partition(_DEVIATIONS)
    items = re.split(r"^- ", listed, flags=re.MULTILINE)
    if items[0].strip():
        raise ValueError(f"Text before the first deviation: {items[0].strip()!r}")
    return tuple(_deviation(item) for item in items[1:])


def _deviation(item: str) -> Deviation:
    match = _DEVIATION.fullmatch(item)
    if match is None:
        raise ValueError(f"A deviation needs an input, Kafka: and Headgate: {item!r}")
    return Deviation(*(_on_one_line(part) for part in match.groups()))


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def span(versions: range) -> str:
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])


def api_name(api_key: int, version: int) -> str:
    """Kafka's name of the API, for example `DescribeConfigs`."""
    return load_request_schema(api_key, version).__name__.removesuffix("Request")
