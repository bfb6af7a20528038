"""What the configured compatibility level, and the reserved fields, have against a schema."""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.registry.compatibility import levels
from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.levels import Earlier, Verdict
from headgate.registry.errors import TakesLonger
from headgate.registry.model import RESERVED_FIELDS, Config, Content, Level, Metadata
from headgate.registry.service.candidates import Environment, Understood, stored_schema
from headgate.registry.storage.base import StoredVersion, StoreReader


@dataclass(frozen=True, slots=True)
class Patience:
    """How much comparing is granted: `TakesLonger` says that it is not enough."""

    versions_max: int
    chars_max: int
    """Of each version that is compared with; one with references is long in any case."""
    steps_max: int
    """Of each comparison."""

    def check(self, stored: StoredVersion) -> None:
        if len(stored.content.text) > self.chars_max or stored.content.references:
            raise TakesLonger(f"Version {stored.version} is long to compare with")


def judge(
    environment: Environment,
    store: StoreReader,
    config: Config,
    understood: Understood,
    latest: StoredVersion | None,
    patience: Patience | None = None,
) -> Verdict:
    """What the configured level has against the schema after `latest`, and after what came before it."""
    level = config.compatibility_level or environment.settings.compatibility_level
    messages = _reserved_messages(environment, config, understood, latest)
    found: tuple[levels.Found, ...] = ()
    if level is not Level.NONE and latest is not None:
        verdict = levels.judge(
            environment.languages,
            level,
            Policy(config.compatibility_policy or Policy.STRICT),
            understood.parsed,
            _earlier(environment, store, config, level, understood.content, latest, patience),
            None if patience is None else patience.steps_max,
        )
        messages += policy_messages(config, level)
        messages += verdict.messages
        found = verdict.found
    return verdict_of(messages, found, config, level)


def policy_messages(config: Config, level: Level) -> list[str]:
    conflict = config.logical_conflict(level)
    return [] if conflict is None else [conflict]


def verdict_of(messages: list[str], found: tuple[levels.Found, ...], config: Config, level: Level) -> Verdict:
    if not messages:
        return levels.COMPATIBLE
    validates = "true" if config.validate_fields else "false"
    return Verdict((*messages, f"{{validateFields: '{validates}', compatibility: '{level}'}}"), found)


def _earlier(
    environment: Environment,
    store: StoreReader,
    config: Config,
    level: Level,
    content: Content,
    latest: StoredVersion,
    patience: Patience | None,
) -> Iterator[Earlier]:
    """The versions that the level looks at, newest first: of the schema's group, if there are groups."""
    group = config.compatibility_group
    if group is None and not level.transitive:
        if patience is not None:
            patience.check(latest)
        yield Earlier(latest.version, stored_schema(environment, store, latest))
        return
    for key in reversed(store.versions(latest.subject)):
        stored = None if key.deleted else store.version(latest.subject, key.version)
        if stored is None or (
            group is not None and _group(stored.content.metadata, group) != _group(content.metadata, group)
        ):
            continue
        if patience is not None:
            patience.check(stored)
        yield Earlier(stored.version, stored_schema(environment, store, stored))
        if not level.transitive:
            return


def _group(metadata: Metadata | None, key: str) -> str | None:
    return None if metadata is None else metadata.properties.get(key)


def _reserved(content: Content) -> list[str]:
    listed = (content.metadata or Metadata()).properties.get(RESERVED_FIELDS, "")
    return [name.strip() for name in listed.split(",") if name.strip()]


def _reserved_messages(
    environment: Environment, config: Config, understood: Understood, latest: StoredVersion | None
) -> list[str]:
    if not config.validate_fields:
        return []
    ours = _reserved(understood.content)
    theirs = [] if latest is None else _reserved(latest.content)
    messages = [
        f"The new schema has reserved field {name} removed from its metadata "
        "which is present in the old schema's metadata."
        for name in theirs
        if name not in ours
    ]
    if ours:
        used = environment.languages.top_level_fields(understood.parsed)
        messages += [
            f"The new schema has field that conflicts with the reserved field {name}." for name in ours if name in used
        ]
    return messages
