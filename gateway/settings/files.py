"""Finds and reads the settings files.

The project file `headgate.toml` is in the working directory or a parent directory. The user file is
`~/.config/headgate/config.toml`. The top level of a file contains settings (`gateway.settings.model`). A table named
after a command contains its options: `[topic.create]` `partitions = 3`. Every command imports this module, so it does
not import the pydantic model.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT_FILE = "headgate.toml"

# The fields of `gateway.settings.model`, which is slow to import.
SETTING_NAMES = (
    "bootstrap_server",
    "kafka_config",
    "registry_url",
    "host",
    "broker_port",
    "registry_port",
    "proxy_port",
    "data_dir",
    "only",
    "broker_config",
    "allowed_hosts",
    "trusted_proxies",
)

# Larger files are not settings files.
file_bytes_max = 1024 * 1024


class SettingsError(Exception):
    """A settings file or an environment variable is invalid. The message names it."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    path: Path
    values: Mapping[str, Any]


def project_file(start: Path) -> Path | None:
    """The nearest headgate.toml in `start` or its parents."""
    for folder in (start, *start.parents):
        path = folder / PROJECT_FILE
        if path.is_file():
            return path
    return None


def user_file(environment: Mapping[str, str]) -> Path | None:
    """The user file, if it exists. Follows the XDG base directory specification."""
    configured = environment.get("XDG_CONFIG_HOME", "")
    home = environment.get("HOME", "")
    if not configured and not home:
        return None
    base = Path(configured) if os.path.isabs(configured) else Path(home) / ".config"
    path = base / "headgate" / "config.toml"
    return path if path.is_file() else None


def settings_files(start: Path, environment: Mapping[str, str]) -> list[SettingsFile]:
    """The existing project and user files, in order of precedence. Raises SettingsError."""
    paths = (project_file(start), user_file(environment))
    return [SettingsFile(path, _read(path)) for path in paths if path is not None]


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > file_bytes_max:
            raise SettingsError(f"{path} is larger than {file_bytes_max} bytes")
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from error
    for name in ("data_dir", "kafka_config"):
        if isinstance(values.get(name), str):
            # Relative to the file, not to the working directory.
            values[name] = str(path.parent / values[name])
    configs = values.get("broker_config")
    if isinstance(configs, dict):
        values["broker_config"] = dict(flattened(configs))
    return values


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested tables: TOML parses an unquoted dotted name such as `log.retention.ms` as nested tables."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flattened(value, f"{name}.")
        elif isinstance(value, list):
            yield name, ",".join(config_text(item) for item in value)
        else:
            yield name, config_text(value)


def config_text(value: object) -> str:
    """A TOML value in Kafka's notation."""
    return str(value).lower() if isinstance(value, bool) else str(value)
