"""Which configuration and mode hold for a subject: its own, its context's, `:.__GLOBAL:`'s, the operator's default."""

from registry.model import Config, Mode
from registry.settings import RegistrySettings
from registry.storage.base import StoreReader
from registry.subjects import GLOBAL_CONTEXT, Subject

GLOBAL_SCOPE = Subject(GLOBAL_CONTEXT, "")


def context_scope(subject: Subject) -> Subject:
    return Subject(subject.context, "")


def config_in_scope(store: StoreReader, settings: RegistrySettings, subject: Subject) -> Config:
    """Field by field, the nearest scope that sets it."""
    config = store.config(subject) or Config()
    for scope in _wider(subject):
        wider = store.config(scope)
        if wider is not None:
            config = config.over(wider)
    return config.over(
        Config(
            compatibility_level=settings.compatibility_level,
            validate_fields=settings.validate_fields,
            validate_names=settings.validate_names,
        )
    )


def _wider(subject: Subject) -> tuple[Subject, ...]:
    return (context_scope(subject), GLOBAL_SCOPE) if subject.name else (GLOBAL_SCOPE,)


def mode_in_scope(store: StoreReader, subject: Subject) -> Mode:
    overriding = overriding_mode(store, subject)
    if overriding is not None:
        return overriding
    for scope in (subject, *_wider(subject)):
        mode = store.mode(scope)
        if mode is not None:
            return mode
    return Mode.READWRITE


def overriding_mode(store: StoreReader, subject: Subject) -> Mode | None:
    """READONLY_OVERRIDE of a wider scope beats what narrower scopes say."""
    for scope in (GLOBAL_SCOPE, Subject(".", ""), context_scope(subject)):
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
