"""Reads and changes the configuration and modes of subjects and contexts, and deletes contexts."""

from collections.abc import Mapping
from typing import Any, Final

from headgate.registry import limits
from headgate.registry.errors import (
    CompatibilityNotConfigured,
    ContextNotEmpty,
    InvalidCompatibilityLevel,
    InvalidMode,
    ModeNotConfigured,
    OperationNotPermitted,
    ReferenceExists,
    SubjectNotFound,
)
from headgate.registry.model import Config, Mode
from headgate.registry.service.scopes import config_in_scope, mode_in_scope, overriding_mode
from headgate.registry.settings import RegistrySettings
from headgate.registry.storage.base import Deleted, Selection, StoreReader, StoreWriter
from headgate.registry.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject

TOP: Final = Subject(DEFAULT_CONTEXT, "")
"""The scope of /config and /mode without a subject: the default context."""


def get_config(store: StoreReader, settings: RegistrySettings, scope: Subject, *, default_to_global: bool) -> Config:
    if default_to_global:
        config = config_in_scope(store, settings, scope)
        return _shown(config, settings, store.config(scope) or Config())
    own = store.config(scope)
    if scope == TOP:
        return (own or Config()).over(Config(compatibility_level=settings.compatibility_level))
    if own is None:
        raise CompatibilityNotConfigured(scope.qualified)
    return own


def _shown(config: Config, settings: RegistrySettings, own: Config) -> Config:
    """The configuration without the defaults of the settings, but always with a level."""
    hidden: dict[str, Any] = {}
    for name in ("validate_fields", "validate_names"):
        if getattr(own, name) is None and getattr(config, name) == getattr(settings, name):
            hidden[name] = None
    return config.changed(hidden)


def change_config(store: StoreWriter, settings: RegistrySettings, scope: Subject, changes: Mapping[str, Any]) -> Config:
    """Change the configuration and return it."""
    _check_policy(store, settings, scope, changes)
    _check_writable(store, scope)
    config = (store.config(scope) or Config()).changed(changes)
    store.put_config(scope, config)
    return config


def _check_policy(store: StoreReader, settings: RegistrySettings, scope: Subject, changes: Mapping[str, Any]) -> None:
    """Reject a level and a policy that conflict, unless one of them is inherited.

    A wider scope may change later, so registration repeats this check.
    """
    given = {name: changes[name] for name in ("compatibility_level", "compatibility_policy") if name in changes}
    if not given or None in given.values():
        return
    config = config_in_scope(store, settings, scope).changed(given)
    conflict = config.logical_conflict(config.compatibility_level or settings.compatibility_level)
    if conflict is not None:
        raise InvalidCompatibilityLevel(conflict)


def delete_config(store: StoreWriter, settings: RegistrySettings, scope: Subject) -> Config:
    """Delete the configuration and return it."""
    config = store.config(scope)
    if config is None:
        if scope == TOP:
            return Config(compatibility_level=settings.compatibility_level)
        raise SubjectNotFound(scope.qualified)
    _check_writable(store, scope)
    store.remove_config(scope)
    if config.compatibility_level is None:
        return config.over(Config(compatibility_level=settings.compatibility_level))
    return config


def _check_writable(store: StoreReader, scope: Subject) -> None:
    if scope.name and mode_in_scope(store, scope).read_only:
        raise OperationNotPermitted(
            f"Subject {scope.qualified} in context {scope.qualified_context} is in read-only mode"
        )


def mode_named(text: str) -> Mode:
    try:
        return Mode(text.strip().upper())
    except ValueError:
        raise InvalidMode from None


def get_mode(store: StoreReader, scope: Subject, *, default_to_global: bool) -> Mode:
    if default_to_global:
        return mode_in_scope(store, scope)
    mode = overriding_mode(store, scope) or store.mode(scope)
    if mode is None:
        if scope == TOP:
            return Mode.READWRITE
        raise ModeNotConfigured(scope.qualified)
    return mode


def set_mode(store: StoreWriter, settings: RegistrySettings, scope: Subject, mode: Mode | None, *, force: bool) -> None:
    """Set the mode; None clears it.

    IMPORT requires a scope without live subjects, unless forced. It removes soft-deleted subjects.
    """
    _check_mode_changes(settings)
    if mode is None:
        if store.mode(scope) is not None:
            store.remove_mode(scope)
        return
    if mode is Mode.IMPORT and not force and mode_in_scope(store, scope) is not Mode.IMPORT:
        _empty(store, scope)
    store.put_mode(scope, mode)


def _empty(store: StoreWriter, scope: Subject) -> None:
    if scope.name:
        if store.has_subject(scope, deleted=False):
            raise OperationNotPermitted("Cannot import since found existing subjects")
        left = [scope]
    else:
        selection = Selection(None) if scope.context == GLOBAL_CONTEXT else Selection(scope.context)
        if store.subjects(selection, Deleted.HIDDEN, 0, 1):
            raise OperationNotPermitted("Cannot import since found existing subjects")
        left = store.subjects(selection, Deleted.ONLY, 0, limits.ID_MAX)
    doomed = [(subject, key.version) for subject in left for key in store.versions(subject)]
    for subject, version in doomed:
        if any(referrer.live for referrer in store.referrers(subject, version)):
            raise ReferenceExists(subject.qualified, version)
    for subject, version in doomed:
        store.remove_version(subject, version)


def delete_mode(store: StoreWriter, settings: RegistrySettings, scope: Subject, *, recursive: bool) -> Mode | None:
    """Delete the mode and return it. None: only subjects below the scope had a mode."""
    _check_mode_changes(settings)
    mode = store.mode(scope)
    if recursive and not scope.name:
        store.remove_modes_of_context(scope.context)
        return mode if mode is not None or scope != TOP else Mode.READWRITE
    if mode is None:
        if scope == TOP:
            return Mode.READWRITE
        raise SubjectNotFound(scope.qualified)
    store.remove_mode(scope)
    return mode


def _check_mode_changes(settings: RegistrySettings) -> None:
    if not settings.mode_changes_allowed:
        raise OperationNotPermitted("Mode changes are not allowed")


def delete_context(store: StoreWriter, context: str) -> None:
    if not store.context_is_empty(context):
        raise ContextNotEmpty(context)
    store.remove_context(context)
