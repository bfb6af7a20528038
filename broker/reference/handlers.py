"""What the handlers say of themselves: API, versions, and the deviations that their docstrings list."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kio.index import load_request_schema

from headgate.broker import handlers

_DEVIATIONS = re.compile(r"^Deviations(?: from Kafka)?:\s*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ServedApi:
    key: int
    name: str
    versions: range
    summary: str
    deviations: str
    """Markdown; empty when there are none."""


def served_apis() -> list[ServedApi]:
    return sorted((_described(module) for module in _modules()), key=lambda api: api.key)


def _modules() -> Iterator[Any]:
    for found in pkgutil.iter_modules(handlers.__path__):
        module = importlib.import_module(f"{handlers.__name__}.{found.name}")
        if hasattr(module, "VERSIONS"):
            yield module


def _described(module: Any) -> ServedApi:
    docstring = inspect.cleandoc(module.__doc__ or "")
    if not docstring:
        raise ValueError(f"{module.__name__} has no docstring")
    first_paragraph = docstring.split("\n\n")[0]
    summary = first_paragraph.split(": ", 1)[-1]
    return ServedApi(
        module.API_KEY,
        api_name(module.API_KEY, module.VERSIONS[-1]),
        module.VERSIONS,
        _sentence(summary),
        deviations_in(docstring),
    )


def deviations_in(docstring: str) -> str:
    """What follows `Deviations:`, as a list in Markdown, each item on one line."""
    parts = _DEVIATIONS.split(docstring, maxsplit=1)
    text = parts[1].strip() if len(parts) > 1 else ""
    if not text or text.removeprefix("- ").lower().startswith("none"):
        return ""
    if not text.startswith("- "):
        text = "- " + text
    items = re.split(r"^- ", text, flags=re.MULTILINE)[1:]
    return "\n".join(f"- {_sentence(item)}" for item in items)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[0].upper() + text[1:]


def api_name(api_key: int, version: int) -> str:
    """Kafka's name of the API, e.g. `DescribeConfigs`."""
    return load_request_schema(api_key, version).__name__.removesuffix("Request")
