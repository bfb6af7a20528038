"""The log levels of the broker's loggers, which DescribeConfigs and IncrementalAlterConfigs read and set (KIP-412).

The levels have Kafka's names. A logger without a level has the level of its parent. As in Kafka, changes are lost at
the next start.
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
    """The root logger and all loggers of Headgate."""
    known = logging.root.manager.loggerDict
    ours = [name for name in known if (name + ".").startswith(PREFIX + ".") and isinstance(known[name], logging.Logger)]
    return [ROOT, *sorted(ours)]


def level_of(name: str) -> str:
    effective = _logger(name).getEffectiveLevel()
    # A level between two named levels is shown as the lower one.
    return max((level, text) for text, level in LEVELS.items() if level <= max(effective, LEVELS["TRACE"]))[1]


def set_level(name: str, level: str | None) -> None:
    """With None, the logger inherits its level again."""
    _logger(name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)
