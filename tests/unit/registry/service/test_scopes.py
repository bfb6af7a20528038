"""Configuration, mode and alias of a subject come from the nearest scope that sets them."""

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.registry.model import Config, Level, Mode
from headgate.registry.service.scopes import (
    config_in_scope,
    mode_in_scope,
    overriding_mode,
    unaliased,
    unaliased_for_deks,
)
from headgate.registry.settings import RegistrySettings
from headgate.registry.subjects import Subject

GLOBAL = ":.__GLOBAL:"
SETTINGS = RegistrySettings(compatibility_level=Level.FULL)


def store_of(*, configs: dict[str, Config] | None = None, modes: dict[str, Mode] | None = None) -> Any:
    """A store with these configurations and modes, by subject. "" is the default context."""
    stored_configs = {Subject.parse(scope): config for scope, config in (configs or {}).items()}
    stored_modes = {Subject.parse(scope): mode for scope, mode in (modes or {}).items()}
    return SimpleNamespace(config=stored_configs.get, mode=stored_modes.get)


@pytest.mark.parametrize(
    ("scopes", "subject", "level"),
    [
        ([], "s", Level.FULL),
        ([GLOBAL], "s", Level.BACKWARD),
        ([GLOBAL, ""], "s", Level.FORWARD),
        ([GLOBAL, "", "s"], "s", Level.NONE),
        (["", "s"], "other", Level.BACKWARD),
        ([GLOBAL, ""], ":.c:s", Level.BACKWARD),
        ([GLOBAL, ":.c:"], ":.c:s", Level.FORWARD),
        ([""], ":.c:s", Level.FULL),
        ([GLOBAL, ":.c:"], ":.c:", Level.FORWARD),
        ([GLOBAL], ":.c:", Level.BACKWARD),
    ],
)
def test_the_nearest_configuration_counts(scopes: list[str], subject: str, level: Level) -> None:
    levels = (Level.BACKWARD, Level.FORWARD, Level.NONE)
    store = store_of(
        configs={scope: Config(compatibility_level=each) for scope, each in zip(scopes, levels, strict=False)}
    )
    assert config_in_scope(store, SETTINGS, Subject.parse(subject)).compatibility_level is level


def test_each_field_has_its_own_scope() -> None:
    store = store_of(
        configs={
            "s": Config(normalize=True),
            "": Config(compatibility_level=Level.NONE, normalize=False),
            GLOBAL: Config(compatibility_group="g", compatibility_level=Level.FORWARD),
        }
    )
    config = config_in_scope(store, SETTINGS, Subject.parse("s"))
    assert (config.normalize, config.compatibility_level, config.compatibility_group) == (True, Level.NONE, "g")


@pytest.mark.parametrize(
    ("modes", "subject", "mode"),
    [
        ({}, "s", Mode.READWRITE),
        ({"": Mode.READONLY}, "s", Mode.READONLY),
        ({"": Mode.READONLY, "s": Mode.IMPORT}, "s", Mode.IMPORT),
        ({GLOBAL: Mode.READONLY}, "s", Mode.READONLY),
        ({GLOBAL: Mode.READONLY, "": Mode.IMPORT}, "s", Mode.IMPORT),
        # The default context does not affect other contexts.
        ({"": Mode.READONLY}, ":.c:s", Mode.READWRITE),
        ({":.c:": Mode.READONLY}, ":.c:s", Mode.READONLY),
        ({":.c:": Mode.READONLY, GLOBAL: Mode.IMPORT}, ":.c:s", Mode.READONLY),
        ({GLOBAL: Mode.IMPORT}, ":.c:s", Mode.IMPORT),
        # READONLY_OVERRIDE of any wider scope has precedence, also that of the default context.
        ({"": Mode.READONLY_OVERRIDE, ":.c:s": Mode.IMPORT}, ":.c:s", Mode.READONLY_OVERRIDE),
        ({GLOBAL: Mode.READONLY_OVERRIDE, "s": Mode.READWRITE}, "s", Mode.READONLY_OVERRIDE),
        ({":.c:": Mode.READONLY_OVERRIDE}, "s", Mode.READWRITE),
    ],
)
def test_the_nearest_mode_counts_unless_a_wider_one_overrides_it(
    modes: dict[str, Mode], subject: str, mode: Mode
) -> None:
    store = store_of(modes=modes)
    assert mode_in_scope(store, Subject.parse(subject)) is mode
    overriding = overriding_mode(store, Subject.parse(subject))
    assert overriding is (Mode.READONLY_OVERRIDE if mode is Mode.READONLY_OVERRIDE else None)


@pytest.mark.parametrize(
    ("subject", "target", "target_of_keys"),
    [
        ("alias", "real", "alias"),
        ("keys", "keys", "real-keys"),
        ("real", "real", "real"),
        # An alias of an alias is not followed.
        ("chain", "alias", "chain"),
        (":.c:alias", ":.c:real", ":.c:alias"),
        ("empty", "empty", "empty"),
        ("", "", ""),
    ],
)
def test_an_alias_is_resolved_once(subject: str, target: str, target_of_keys: str) -> None:
    store = store_of(
        configs={
            "alias": Config(alias="real"),
            "chain": Config(alias="alias"),
            "keys": Config(alias_for_deks="real-keys"),
            "empty": Config(alias="", alias_for_deks=""),
            ":.c:alias": Config(alias="real"),
            "": Config(alias="never", alias_for_deks="never"),
        }
    )
    assert unaliased(store, Subject.parse(subject)).qualified == Subject.parse(target).qualified
    assert unaliased_for_deks(store, Subject.parse(subject)).qualified == Subject.parse(target_of_keys).qualified
