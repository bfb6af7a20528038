"""Find the registry options: explicit argument, column metadata, Spark configuration, environment, default address."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.spark_udfs.driver.laziness import is_lazy
from headgate.spark_udfs.spec.registry_options import METADATA_URL, OPTION_NAMES, RegistryOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONF_PREFIX = "spark.headgate."
"""Prefix of an option in Spark's configuration: `spark.headgate.registry.url`."""
ENV_PREFIX = "HEADGATE_"
"""Prefix of an option in the environment, in upper case with underscores: `HEADGATE_REGISTRY_URL`."""


def resolve(
    explicit: "RegistryOptions | Mapping[str, str] | str | None" = None,
    df: "DataFrame | None" = None,
    spark: "SparkSession | None" = None,
    *,
    column: str = "value",
) -> RegistryOptions:
    """The registry options of the first place that has them, in the order of the module docstring.

    A plain address uses the credentials of the configuration only if the configuration contains no other address:
    credentials must not reach a registry that they do not belong to.
    """
    if isinstance(explicit, RegistryOptions):
        return explicit
    if isinstance(explicit, Mapping):
        return RegistryOptions.from_options(explicit)
    configured = {**_environment(), **_configured(spark if spark is not None else _session_of(df))}
    url = explicit if explicit is not None else _url_of(df, column)
    if url is None:
        return RegistryOptions().with_options(configured)
    if configured.get("registry.url", url) != url:
        return RegistryOptions().with_options({"registry.url": url})
    return RegistryOptions().with_options({**configured, "registry.url": url})


def _environment() -> dict[str, str]:
    names = {name: ENV_PREFIX + name.upper().replace(".", "_") for name in OPTION_NAMES}
    return {name: os.environ[variable] for name, variable in names.items() if os.environ.get(variable)}


def _configured(spark: "SparkSession | None") -> dict[str, str]:
    if spark is None:
        return {}
    found = {name: spark.conf.get(CONF_PREFIX + name, None) for name in OPTION_NAMES}
    return {name: text for name, text in found.items() if text}


def _session_of(df: "DataFrame | None") -> "SparkSession | None":
    if df is not None:
        return df.sparkSession
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    return SparkSession.getActiveSession()


def _url_of(df: "DataFrame | None", column: str) -> str | None:
    # The metadata of a Spark Connect DataFrame needs a call to the server.
    if df is None or is_lazy(df) or column not in df.columns:
        return None
    url = df.schema[column].metadata.get(METADATA_URL)
    return url if isinstance(url, str) else None
