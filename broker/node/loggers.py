"""The broker's loggers as a resource (KIP-412): their levels are read and changed while it runs.

Kafka's names of levels are used; a logger that sets none answers with the level it inherits. Levels are of the process,
not durable, as in Kafka.
"""

import logging
from collections.abc import Mapping

ROOT = "root"
PREFIX = "headgate"
LEVELS: Mapping[str, int] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def logger_names() -> list[str]:
    """The root and those of the broker that exist."""
    known = logging.root.manager.loggerDict
    ours = [name for name in known if (name + ".").startswith(PREFIX + ".") and isinstance(known[name], logging.Logger)]
    return [ROOT, *sorted(ours)]


def level_of(name: str) -> str:
    effective = _logger(name).getEffectiveLevel()
    # Levels between two names belong to the lower one.
    return max((level, text) for text, level in LEVELS.items() if level <= max(effective, LEVELS["TRACE"]))[1]


def set_level(name: str, level: str | None) -> None:
    """`None` makes the logger inherit its level again."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)
