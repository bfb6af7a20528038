"""The settings, with defaults, bounds and sources.

Options of single commands are not settings. They are defined with their command, which determines their environment
variable and their table in the settings files.
"""

import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from headgate.gateway.settings.files import SettingsError, SettingsFile, flattened, settings_files

ENVIRONMENT_PREFIX = "HEADGATE_"


class ServiceName(StrEnum):
    BROKER = "broker"
    REGISTRY = "registry"
    PROXY = "proxy"


def _names(value: object) -> object:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _configs(value: object) -> object:
    """Parse an environment variable: a JSON object, or `name=value` pairs separated by spaces."""
    if isinstance(value, str):
        if value.lstrip().startswith("{"):
            value = json.loads(value)
        else:
            pairs = value.split()
            if wrong := [pair for pair in pairs if "=" not in pair]:
                raise ValueError(f"{wrong[0]!r} is not NAME=VALUE")
            value = dict(pair.split("=", 1) for pair in pairs)
    return dict(flattened(value)) if isinstance(value, dict) else value


Port = Annotated[int, Field(ge=0, le=65535)]
Services = Annotated[tuple[ServiceName, ...], NoDecode, BeforeValidator(_names)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
Configs = Annotated[dict[str, str], NoDecode, BeforeValidator(_configs)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, env_ignore_empty=True, frozen=True, extra="ignore")

    bootstrap_server: str = Field("127.0.0.1:9092", description="Kafka cluster of the commands and the proxy.")
    kafka_config: Path | None = Field(
        None,
        description="Properties file with the TLS and SASL settings of the Kafka cluster. In a file, relative to it.",
    )
    registry_url: str = Field("http://127.0.0.1:8081", description="Schema registry of the commands and the proxy.")
    host: str = Field("127.0.0.1", min_length=1, description="Address that `headgate up` listens on.")
    broker_port: Port = Field(9092, description="The broker's port; 0 takes a free one.")
    registry_port: Port = Field(8081, description="The registry's port; 0 takes a free one.")
    proxy_port: Port = Field(8082, description="The REST proxy's port; 0 takes a free one.")
    data_dir: Path = Field(
        Path(".headgate"), description="Data directory of `headgate up`. In a file, relative to that file."
    )
    only: Services = Field(tuple(ServiceName), min_length=1, description="Services that `headgate up` starts.")
    broker_config: Configs = Field(
        default_factory=dict, description="Kafka broker configs; see broker-configuration.md for their names."
    )
    allowed_hosts: Names = Field(
        (),
        description="Further host names of registry and proxy, such as a load balancer's.",
    )
    trusted_proxies: Names = Field(
        (), description="Addresses and networks whose `Forwarded` and `X-Forwarded-*` headers the proxy uses."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        files = settings_files(Path.cwd(), os.environ)
        return (
            init_settings,
            EnvSettingsSource(settings_cls),
            *(InitSettingsSource(settings_cls, _known(cls, file)) for file in files),
        )


def load_settings(flags: Mapping[str, Any], flag_sources: Mapping[str, str] | None = None) -> Settings:
    """`flags` are the options of the command. `flag_sources` names the source of each that a file sets.

    Raises SettingsError, which names the source of every invalid value.
    """
    try:
        return Settings(**flags)
    except ValidationError as error:
        sources = origins(Settings, settings_files(Path.cwd(), os.environ), os.environ)
        sources |= dict.fromkeys(flags, "command line") | dict(flag_sources or {})
        problems = []
        for each in error.errors():
            setting = ".".join(str(part) for part in each["loc"])
            source = sources.get(str(each["loc"][0]), "unknown source") if each["loc"] else "unknown source"
            problems.append(f"{setting}: {each['msg'].removeprefix('Value error, ')} (set by {source})")
        raise SettingsError("; ".join(problems)) from error


def environment_name(setting: str) -> str:
    return ENVIRONMENT_PREFIX + setting.upper()


def origins(settings: type[Settings], files: list[SettingsFile], environment: Mapping[str, str]) -> dict[str, str]:
    """The source of each setting, except flags: `environment HEADGATE_HOST`, the path of a file, or `default`."""
    found: dict[str, str] = {}
    for name in settings.model_fields:
        sources = [f"environment {environment_name(name)}"] if environment.get(environment_name(name)) else []
        sources += [str(file.path) for file in files if name in file.values]
        # Tables are merged by key, so every source with this table counts.
        found[name] = " + ".join(sources if name == "broker_config" else sources[:1]) or "default"
    return found


def _known(settings: type[BaseSettings], file: SettingsFile) -> dict[str, Any]:
    return {name: value for name, value in file.values.items() if name in settings.model_fields}
