"""The settings files: where they are and what they say.

`headgate.toml` is looked for in the working directory and upwards; `~/.config/headgate/config.toml` is the user's own.
A file's top level holds settings (`gateway.settings.model`), and a table named like a command holds values for that
command's options: `[topic.create]` `partitions = 3`. Light on purpose: every command reads this, few need the model.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT_FILE = "headgate.toml"

# The fields of `gateway.settings.model`, which takes longer to import than most commands take to run.
SETTING_NAMES = (
    "bootstrap_server",
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

# What nobody writes by hand is not a settings file.
file_bytes_max = 1024 * 1024


class SettingsError(Exception):
    """A settings file or an environment variable makes no sense; the message names it."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    path: Path
    values: Mapping[str, Any]


def project_file(start: Path) -> Path | None:
    """The nearest headgate.toml, from `start` upwards."""
    for folder in (start, *start.parents):
        path = folder / PROJECT_FILE
        if path.is_file():
            return path
    return None


def user_file(environment: Mapping[str, str]) -> Path | None:
    """The user's file if there is one; the XDG base directory specification says where."""
    configured = environment.get("XDG_CONFIG_HOME", "")
    home = environment.get("HOME", "")
    if not configured and not home:
        return None
    base = Path(configured) if os.path.isabs(configured) else Path(home) / ".config"
    path = base / "headgate" / "config.toml"
    return path if path.is_file() else None


def settings_files(start: Path, environment: Mapping[str, str]) -> list[SettingsFile]:
    """The project's file and the user's, where they exist: the first that says something wins. Raises SettingsError."""
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
    folder = values.get("data_dir")
    if isinstance(folder, str):
        # A project found upwards means its own folder, wherever the command is run.
        values["data_dir"] = str(path.parent / folder)
    configs = values.get("broker_config")
    if isinstance(configs, dict):
        values["broker_config"] = dict(flattened(configs))
    return values


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Kafka's dotted names are nested tables in TOML unless quoted: `log.retention.ms = 1` means what it says."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from flattened(value, f"{name}.")
        elif isinstance(value, list):
            yield name, ",".join(config_text(item) for item in value)
        else:
            yield name, config_text(value)


def config_text(value: object) -> str:
    """A TOML value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
