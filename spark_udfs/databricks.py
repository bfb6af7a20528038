"""`from_avro` with the parameters of Databricks, to run existing code with another import.

The result is the decoded value. `from_registry_avro` also returns the reason of each bad row.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.spark_udfs.extra import need_spark
from headgate.spark_udfs.functions import from_registry_avro
from headgate.spark_udfs.spec.registry_options import PREFIX, OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column

CLIENT_PREFIX = "confluent.schema.registry."
CREDENTIALS_SOURCE = "basic.auth.credentials.source"
_ON_POISON = {"FAILFAST": "FAIL", "PERMISSIVE": "NULL"}
_ON_NEW_VERSION = {"none": "KEEP", "restart": "RESTART"}


def from_avro(
    data: "Column | str",
    jsonFormatSchema: str | None = None,
    options: Mapping[str, str] | None = None,
    subject: str | None = None,
    schemaRegistryAddress: str | None = None,
) -> "Column":
    """Decode payloads with a schema id to their values.

    `jsonFormatSchema` is the reader schema, by default the latest version of the subject. Options are `mode` (FAILFAST,
    the default, or PERMISSIVE: null), `avroSchemaEvolutionMode` (`none`, the default, or `restart`), and the registry
    options with the prefix `confluent.schema.registry.` or `registry.`. Raises `OptionError` for others.
    """
    need_spark()
    registry, on_poison, on_new_version = read_options(options or {}, schemaRegistryAddress)
    if subject is None and jsonFormatSchema is None:
        raise OptionError("subject is required; without a registry, use from_avro of pyspark.sql.avro.functions")
    decoded = from_registry_avro(
        data,
        subject,
        registry=registry or None,
        schema=jsonFormatSchema,
        on_poison=on_poison,
        on_new_version=on_new_version,
    )
    return decoded.getField("value")


def read_options(options: Mapping[str, str], address: str | None) -> tuple[dict[str, str], str, str]:
    """The registry options, `on_poison` and `on_new_version`. Raises `OptionError`."""
    registry: dict[str, str] = {} if address is None else {"registry.url": address}
    on_poison, on_new_version = "FAIL", "KEEP"
    for name, text in options.items():
        if name.lower() == "mode":
            on_poison = _choice(name, text.upper(), _ON_POISON)
        elif name.lower() == "avroschemaevolutionmode":
            on_new_version = _choice(name, text.lower(), _ON_NEW_VERSION)
        elif name == CLIENT_PREFIX + CREDENTIALS_SOURCE:
            if text.upper() != "USER_INFO":
                raise OptionError(f"{name} must be USER_INFO, not {text!r}")
        elif name.startswith(CLIENT_PREFIX):
            registry[PREFIX + name.removeprefix(CLIENT_PREFIX)] = text
        elif name.startswith(PREFIX):
            registry[name] = text
        else:
            raise OptionError(
                f"unknown option {name!r}; supported are mode, avroSchemaEvolutionMode and {CLIENT_PREFIX}*"
            )
    return registry, on_poison, on_new_version


def _choice(option: str, text: str, modes: Mapping[str, str]) -> str:
    if text not in modes:
        raise OptionError(f"{option} must be one of {', '.join(modes)}, not {text!r}")
    return modes[text]
