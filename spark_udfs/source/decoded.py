"""Decoding options of the data source, and the reader schema that they select."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.spark_udfs.driver.planning import plan_decoding
from headgate.spark_udfs.driver.reader_choice import ReaderChoice, ReaderError
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.source.errors import BadOption
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.registry_options import OptionError, RegistryOptions

DECODING_OPTIONS = (
    "subject",
    "value.subject",
    "version",
    "schema_id",
    "schema",
    "fields",
    "on_poison",
    "on_new_version",
    "on_registry_down",
)
SCHEMA_ID_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    choice: ReaderChoice
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    on_registry_down: OnRegistryDown = OnRegistryDown.WAIT

    def planned(self, registry: tuple[tuple[str, str], ...]) -> Decoding:
        """Fetches the reader schema from the registry, on the driver. Raises `BadOption`, `ReaderError`."""
        try:
            return plan_decoding(
                self.choice,
                dict(registry) or None,
                on_poison=self.on_poison,
                on_new_version=self.on_new_version,
                on_registry_down=self.on_registry_down,
            )
        except OptionError as error:
            raise BadOption("registry.*", str(error)) from None


def read_registry(options: tuple[tuple[str, str], ...]) -> RegistryOptions:
    """Raises `BadOption`."""
    try:
        return RegistryOptions.from_options(dict(options))
    except OptionError as error:
        raise BadOption("registry.*", str(error)) from None


def read_decoding_options(options: Mapping[str, str]) -> DecodingOptions | None:
    """Parses options with lower-case names. Returns None if no decoding option is set. Raises `BadOption`."""
    given = [name for name in DECODING_OPTIONS if name in options]
    if not given:
        return None
    if "subject" in options and options.get("value.subject", options["subject"]) != options["subject"]:
        raise BadOption("subject", "value.subject names another one; give one of the two")
    subject = options.get("subject", options.get("value.subject"))
    fields = _fields(options.get("fields"))
    try:
        choice = ReaderChoice(
            subject=subject,
            version=_number(options, "version", 2**31 - 1),
            schema_id=_number(options, "schema_id", SCHEMA_ID_MAX),
            schema=options.get("schema"),
            fields=fields,
        )
    except ReaderError as error:
        raise BadOption(given[0], str(error)) from None
    return DecodingOptions(
        choice,
        OnPoison(_word(options, "on_poison", tuple(OnPoison), OnPoison.DEAD_LETTER)),
        OnNewVersion(_word(options, "on_new_version", tuple(OnNewVersion), OnNewVersion.KEEP)),
        OnRegistryDown(_word(options, "on_registry_down", tuple(OnRegistryDown), OnRegistryDown.WAIT)),
    )


def _fields(text: str | None) -> tuple[str, ...] | None:
    """Parses a JSON array or a comma-separated list of names."""
    if text is None:
        return None
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadOption(
                "fields", f'it must be names such as id,items.price or ["id", "items.price"], not {text[:60]!r}'
            )
    else:
        names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise BadOption("fields", "it names no field")
    return tuple(names)


def _word(options: Mapping[str, str], name: str, words: tuple[str, ...], default: str) -> str:
    text = options.get(name, default).strip().upper()
    if text not in words:
        raise BadOption(name, f"it must be one of {', '.join(words)}, not {text[:60]!r}")
    return text


def _number(options: Mapping[str, str], name: str, most: int) -> int | None:
    text = options.get(name)
    if text is None or (name == "version" and text.strip().lower() == "latest"):
        return None
    number = text.strip()
    if not number.isascii() or not number.isdigit() or len(number) > 10 or int(number) > most:
        raise BadOption(name, f"it must be a whole number up to {most}, not {text[:60]!r}")
    return int(number)
