"""Checks a schema against the compatibility level and the reserved fields of its subject."""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.registry.compatibility import levels
from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.levels import CheckResult, EarlierVersion
from headgate.registry.errors import InvalidSchema, VersionNotFound, WorkLimitExceeded
from headgate.registry.model import RESERVED_FIELDS, Config, Content, Level, Metadata
from headgate.registry.service.schema_queries import LATEST
from headgate.registry.service.scopes import config_in_scope
from headgate.registry.service.submitted_schema import (
    Environment,
    ParsedSubmission,
    SubmittedSchema,
    parse_submitted,
    stored_schema,
)
from headgate.registry.storage.base import StoredVersion, StoreReader
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """Limits for a check on the event loop. A check that exceeds them raises `WorkLimitExceeded`."""

    versions_max: int
    chars_max: int
    """The longest stored schema to compare with. A stored schema with references always exceeds the limit."""
    steps_max: int
    """Steps of one comparison."""

    def check(self, stored: StoredVersion) -> None:
        if len(stored.content.text) > self.chars_max or stored.content.references:
            raise WorkLimitExceeded(f"Version {stored.version} is too long for a quick comparison")


@dataclass(frozen=True, slots=True)
class LevelResult:
    result: CheckResult
    level: Level


def check_compatibility(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    submitted: SubmittedSchema,
    version: int | None,
    *,
    normalize: bool,
    work_limits: WorkLimits | None = None,
) -> LevelResult:
    """Check against one version, or (None) against all versions that the level selects, without registering.

    Any schema is compatible with an empty subject.
    """
    config = config_in_scope(store, environment.settings, subject)
    level = config.compatibility_level or environment.settings.compatibility_level
    against = None
    if version is not None:
        against = store.latest(subject) if version == LATEST else store.version(subject, version)
        if against is None or against.deleted:
            if version != LATEST:
                raise VersionNotFound(version)
            against = None
    if not submitted.text.strip():
        raise InvalidSchema("Empty schema")
    submission = parse_submitted(
        environment,
        store,
        subject,
        submitted,
        normalize=normalize or bool(config.normalize),
        strict=bool(config.validate_names if config.validate_new_schemas is None else config.validate_new_schemas),
    )
    if version is None:
        latest = store.latest(subject)
        return LevelResult(check_next_version(environment, store, config, submission, latest, work_limits), level)
    if against is None or level is Level.NONE:
        return LevelResult(levels.COMPATIBLE, level)
    earlier = [_earlier_version(environment, store, against, work_limits)]
    result = _compared(environment, config, level, submission, earlier, work_limits)
    return LevelResult(
        _result([*_policy_messages(config, level), *result.messages], result.found, config, level), level
    )


def check_next_version(
    environment: Environment,
    store: StoreReader,
    config: Config,
    submission: ParsedSubmission,
    latest: StoredVersion | None,
    work_limits: WorkLimits | None = None,
) -> CheckResult:
    """Check whether the schema may follow `latest`, by the level and the reserved fields of the subject."""
    level = config.compatibility_level or environment.settings.compatibility_level
    messages = _reserved_field_messages(environment, config, submission, latest)
    found: tuple[levels.Found, ...] = ()
    if level is not Level.NONE and latest is not None:
        earlier = _earlier_versions(environment, store, config, level, submission.content, latest, work_limits)
        result = _compared(environment, config, level, submission, earlier, work_limits)
        messages += _policy_messages(config, level)
        messages += result.messages
        found = result.found
    return _result(messages, found, config, level)


def _compared(
    environment: Environment,
    config: Config,
    level: Level,
    submission: ParsedSubmission,
    earlier: list[EarlierVersion] | Iterator[EarlierVersion],
    work_limits: WorkLimits | None,
) -> CheckResult:
    policy = Policy(config.compatibility_policy or Policy.STRICT)
    steps_max = None if work_limits is None else work_limits.steps_max
    return levels.check(environment.languages, level, policy, submission.parsed, earlier, steps_max)


def _policy_messages(config: Config, level: Level) -> list[str]:
    conflict = config.logical_conflict(level)
    return [] if conflict is None else [conflict]


def _result(messages: list[str], found: tuple[levels.Found, ...], config: Config, level: Level) -> CheckResult:
    if not messages:
        return levels.COMPATIBLE
    validates = "true" if config.validate_fields else "false"
    return CheckResult((*messages, f"{{validateFields: '{validates}', compatibility: '{level}'}}"), found)


def _earlier_version(
    environment: Environment, store: StoreReader, stored: StoredVersion, work_limits: WorkLimits | None
) -> EarlierVersion:
    if work_limits is not None:
        work_limits.check(stored)
    return EarlierVersion(stored.version, stored_schema(environment, store, stored))


def _earlier_versions(
    environment: Environment,
    store: StoreReader,
    config: Config,
    level: Level,
    content: Content,
    latest: StoredVersion,
    work_limits: WorkLimits | None,
) -> Iterator[EarlierVersion]:
    """The versions that the level selects, newest first. With a compatibility group: only versions of that group."""
    group = config.compatibility_group
    if group is None and not level.transitive:
        yield _earlier_version(environment, store, latest, work_limits)
        return
    for key in reversed(store.versions(latest.subject)):
        stored = None if key.deleted else store.version(latest.subject, key.version)
        if stored is None or (
            group is not None and _group(stored.content.metadata, group) != _group(content.metadata, group)
        ):
            continue
        yield _earlier_version(environment, store, stored, work_limits)
        if not level.transitive:
            return


def _group(metadata: Metadata | None, key: str) -> str | None:
    return None if metadata is None else metadata.properties.get(key)


def _reserved_fields(content: Content) -> list[str]:
    listed = (content.metadata or Metadata()).properties.get(RESERVED_FIELDS, "")
    return [name.strip() for name in listed.split(",") if name.strip()]


def _reserved_field_messages(
    environment: Environment, config: Config, submission: ParsedSubmission, latest: StoredVersion | None
) -> list[str]:
    if not config.validate_fields:
        return []
    new = _reserved_fields(submission.content)
    old = [] if latest is None else _reserved_fields(latest.content)
    messages = [
        f"The new schema has reserved field {name} removed from its metadata "
        "which is present in the old schema's metadata."
        for name in old
        if name not in new
    ]
    if new:
        used = environment.languages.top_level_fields(submission.parsed)
        messages += [
            f"The new schema has field that conflicts with the reserved field {name}." for name in new if name in used
        ]
    return messages
