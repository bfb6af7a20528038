"""Masks passwords in `--help`, which shows the values of settings files as defaults."""

from collections.abc import Callable
from typing import Any

from headgate.gateway.cli.environment_variables import options
from headgate.gateway.settings.masking import masked, masked_value


def mask_help(command: Any) -> None:
    """For every option of `command` and of the commands below it."""
    for option in options(command):
        option.get_help_record = _masking(option, option.get_help_record)
    for inner in getattr(command, "commands", {}).values():
        mask_help(inner)


def _masking(
    option: Any, record_of: Callable[[Any], tuple[str, str] | None]
) -> Callable[[Any], tuple[str, str] | None]:
    # Masks before the parser wraps lines: wrapping can split a password.
    def get_help_record(context: Any) -> tuple[str, str] | None:
        record = record_of(context)
        if record is None:
            return None
        name, text = record
        default = option.get_default(context, call=False)
        for value in default if isinstance(default, (list, tuple)) else (default,):
            if isinstance(value, str) and value:
                text = text.replace(value, masked_value(value))
        return name, masked(text)

    return get_help_record
