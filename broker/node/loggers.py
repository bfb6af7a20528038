"""The log levels of the broker's loggers. DescribeConfigs reads them, IncrementalAlterConfigs sets them (KIP-412).

The levels have Kafka's names. A logger without a level inherits the level of its parent. As in Kafka, a restart resets
all changes.
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
    """Return the names of the root logger and of all Headgate loggers."""
    known = logging.root.manager.loggerDict
    ours = [name for name in known if (name + ".").startswith(PREFIX + ".") and isinstance(known[name], logging.Logger)]
    return [ROOT, *sorted(ours)]


def level_of(name: str) -> str:
    effective = _logger(name).getEffectiveLevel()
    # Show a level between two named levels as the lower one.
    return max((level, text) for text, level in LEVELS.items() if level <= max(effective, LEVELS["TRACE"]))[1]


def set_level(name: str, level: str | None) -> None:
    """Set the level of a logger. With None, the logger inherits its level again."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)
