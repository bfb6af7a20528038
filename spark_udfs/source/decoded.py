"""Decoding options of the data source, and the reader schema that they select."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.spark_udfs.driver.planning import choice_of, plan_decoding
from headgate.spark_udfs.driver.reader_choice import AnyChoice, ReaderError
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.source.errors import BadOption
from headgate.spark_udfs.source.record_decoding import RecordDecoding
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.registry_options import OptionError, RegistryOptions

KEY_PREFIX = "key."
"""Prefix of the options for keys."""
_SCHEMA_OPTIONS = ("subject", "version", "schema_id", "schema", "fields")
_POLICIES = ("on_poison", "on_new_version", "on_registry_down")
DECODING_OPTIONS = ("value.subject", *_SCHEMA_OPTIONS, *(KEY_PREFIX + name for name in _SCHEMA_OPTIONS), *_POLICIES)
SCHEMA_ID_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """The readers of values and keys; None leaves them as bytes."""

    choice: AnyChoice | None
    key: AnyChoice | None = None
    on_poison: OnPoison = OnPoison.DEAD_LETTER
    on_new_version: OnNewVersion = OnNewVersion.KEEP
    on_registry_down: OnRegistryDown = OnRegistryDown.WAIT

    def planned(self, registry: tuple[tuple[str, str], ...]) -> RecordDecoding:
        """Fetches the reader schemas from the registry, on the driver. Raises `BadOption`, `ReaderError`."""
        return RecordDecoding(
            None if self.choice is None else self._planned(self.choice, registry),
            None if self.key is None else self._planned(self.key, registry, is_key=True),
        )

    def _planned(self, choice: AnyChoice, registry: tuple[tuple[str, str], ...], *, is_key: bool = False) -> Decoding:
        try:
            return plan_decoding(
                choice,
                dict(registry) or None,
                on_poison=self.on_poison,
                on_new_version=self.on_new_version,
                on_registry_down=self.on_registry_down,
                is_key=is_key,
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
    value = {name: options[name] for name in (*_SCHEMA_OPTIONS, "value.subject") if name in options}
    if "value.subject" in value:
        value["subject"] = value.pop("value.subject")
    key = {name: options[KEY_PREFIX + name] for name in _SCHEMA_OPTIONS if KEY_PREFIX + name in options}
    return DecodingOptions(
        _choice(value, "") if value or not key else None,
        _choice(key, KEY_PREFIX) if key else None,
        OnPoison(_word(options, "on_poison", tuple(OnPoison), OnPoison.DEAD_LETTER)),
        OnNewVersion(_word(options, "on_new_version", tuple(OnNewVersion), OnNewVersion.KEEP)),
        OnRegistryDown(_word(options, "on_registry_down", tuple(OnRegistryDown), OnRegistryDown.WAIT)),
    )


def _choice(options: Mapping[str, str], prefix: str) -> AnyChoice:
    try:
        return choice_of(
            _names(options, "subject", prefix, "subject such as orders-value"),
            version=_number(options, "version", 2**31 - 1, prefix),
            schema_id=_number(options, "schema_id", SCHEMA_ID_MAX, prefix),
            schema=options.get("schema"),
            fields=_names(options, "fields", prefix, "field such as id,items.price"),
        )
    except ReaderError as error:
        raise BadOption(prefix + next(iter(options), "subject"), str(error)) from None


def _names(options: Mapping[str, str], name: str, prefix: str, example: str) -> tuple[str, ...] | None:
    """Parses a JSON array or a comma-separated list of names."""
    text = options.get(name)
    if text is None:
        return None
    if text.lstrip().startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise BadOption(prefix + name, f'it must be names such as a,b or ["a", "b"], not {text[:60]!r}')
    else:
        names = [one.strip() for one in text.split(",") if one.strip()]
    if not names:
        raise BadOption(prefix + name, f"it names no {example}")
    return tuple(names)


def _word(options: Mapping[str, str], name: str, words: tuple[str, ...], default: str) -> str:
    text = options.get(name, default).strip().upper()
    if text not in words:
        raise BadOption(name, f"it must be one of {', '.join(words)}, not {text[:60]!r}")
    return text


def _number(options: Mapping[str, str], name: str, most: int, prefix: str) -> int | None:
    text = options.get(name)
    if text is None or (name == "version" and text.strip().lower() == "latest"):
        return None
    number = text.strip()
    if not number.isascii() or not number.isdigit() or len(number) > 10 or int(number) > most:
        raise BadOption(prefix + name, f"it must be a whole number up to {most}, not {text[:60]!r}")
    return int(number)
