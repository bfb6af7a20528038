"""Finds the configuration and mode of a subject: subject, context, `:.__GLOBAL:`, then the defaults of the settings."""

from typing import Final

from headgate.registry.errors import OperationNotPermitted
from headgate.registry.model import Config, Mode
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.base import StoreReader
from headgate.registry.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject

GLOBAL_SCOPE: Final = Subject(GLOBAL_CONTEXT, "")
_DEFAULT_SCOPE: Final = Subject(DEFAULT_CONTEXT, "")


def context_scope(subject: Subject) -> Subject:
    return Subject(subject.context, "")


def config_in_scope(store: StoreReader, settings: RegistrySettings, subject: Subject) -> Config:
    """Each field comes from the nearest scope that sets it."""
    config = store.config(subject) or Config()
    for scope in _wider(subject):
        found = store.config(scope)
        if found is not None:
            config = config.over(found)
    return config.over(settings.defaults)


def _wider(subject: Subject) -> tuple[Subject, ...]:
    return (context_scope(subject), GLOBAL_SCOPE) if subject.name else (GLOBAL_SCOPE,)


def mode_in_scope(store: StoreReader, subject: Subject) -> Mode:
    """The mode of the nearest scope. READONLY_OVERRIDE of a wider scope has precedence."""
    found: Mode | None = None
    for scope in dict.fromkeys((subject, *_wider(subject), _DEFAULT_SCOPE)):
        mode = store.mode(scope)
        if mode is Mode.READONLY_OVERRIDE:
            return mode
        if found is None and scope.context in (subject.context, GLOBAL_CONTEXT):
            found = mode
    return found or Mode.READWRITE


def overriding_mode(store: StoreReader, subject: Subject) -> Mode | None:
    """READONLY_OVERRIDE if a wider scope sets it."""
    for scope in (GLOBAL_SCOPE, _DEFAULT_SCOPE, context_scope(subject)):
        if store.mode(scope) is Mode.READONLY_OVERRIDE:
            return Mode.READONLY_OVERRIDE
    return None


def unaliased(store: StoreReader, subject: Subject) -> Subject:
    """The alias target of the subject, or the subject. An alias of an alias is not followed."""
    if not subject.name:
        return subject
    config = store.config(subject)
    if config is None or not config.alias:
        return subject
    return subject.sibling(config.alias)


def unaliased_for_deks(store: StoreReader, subject: Subject) -> Subject:
    """The subject that has the DEKs: the configured `aliasForDeks`, or the subject.

    An alias of an alias is not followed.
    """
    config = store.config(subject) if subject.name else None
    if config is None or not config.alias_for_deks:
        return subject
    return subject.sibling(config.alias_for_deks)


def check_writable(store: StoreReader, subject: Subject) -> None:
    if mode_in_scope(store, subject).read_only:
        raise OperationNotPermitted(
            f"Subject {subject.qualified} in context {subject.qualified_context} is in read-only mode"
        )
