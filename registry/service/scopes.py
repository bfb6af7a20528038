"""Which configuration and mode hold for a subject: its own, its context's, `:.__GLOBAL:`'s, the operator's default."""

from typing import Final

from headgate.registry.model import Config, Mode
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.base import StoreReader
from headgate.registry.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject

GLOBAL_SCOPE: Final = Subject(GLOBAL_CONTEXT, "")
_DEFAULT_SCOPE: Final = Subject(DEFAULT_CONTEXT, "")


def context_scope(subject: Subject) -> Subject:
    return Subject(subject.context, "")


def config_in_scope(store: StoreReader, settings: RegistrySettings, subject: Subject) -> Config:
    """Field by field, the nearest scope that sets it."""
    config = store.config(subject) or Config()
    for scope in _wider(subject):
        found = store.config(scope)
        if found is not None:
            config = config.over(found)
    return config.over(settings.defaults)


def _wider(subject: Subject) -> tuple[Subject, ...]:
    return (context_scope(subject), GLOBAL_SCOPE) if subject.name else (GLOBAL_SCOPE,)


def mode_in_scope(store: StoreReader, subject: Subject) -> Mode:
    """READONLY_OVERRIDE of a wider scope beats what narrower scopes say."""
    found: Mode | None = None
    for scope in dict.fromkeys((subject, *_wider(subject), _DEFAULT_SCOPE)):
        mode = store.mode(scope)
        if mode is Mode.READONLY_OVERRIDE:
            return mode
        if found is None and scope.context in (subject.context, GLOBAL_CONTEXT):
            found = mode
    return found or Mode.READWRITE


def overriding_mode(store: StoreReader, subject: Subject) -> Mode | None:
    """READONLY_OVERRIDE of a wider scope beats what narrower scopes say."""
    for scope in (GLOBAL_SCOPE, _DEFAULT_SCOPE, context_scope(subject)):
        if store.mode(scope) is Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
    return None


def unaliased(store: StoreReader, subject: Subject) -> Subject:
    """The subject that a name stands for: its alias, if it is configured to be one. Aliases do not chain."""
    if not subject.name:
        return subject
    config = store.config(subject)
    if config is None or not config.alias:
        return subject
    return subject.sibling(config.alias)


def unaliased_for_deks(store: StoreReader, subject: Subject) -> Subject:
    """The subject whose DEKs a subject uses: its `aliasForDeks`, if it is configured. Aliases do not chain."""
    config = store.config(subject) if subject.name else None
    if config is None or not config.alias_for_deks:
        return subject
    return subject.sibling(config.alias_for_deks)
