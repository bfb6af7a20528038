"""May this schema become the next version? The same question as registering asks, without registering."""

from dataclasses import dataclass

from headgate.registry.compatibility import levels
from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.levels import Earlier, Verdict
from headgate.registry.errors import InvalidSchema, VersionNotFound
from headgate.registry.model import Level
from headgate.registry.service.candidates import Candidate, Environment, stored_schema, understand
from headgate.registry.service.judging import Patience, judge, policy_messages, verdict_of
from headgate.registry.service.reading import LATEST
from headgate.registry.service.scopes import config_in_scope
from headgate.registry.storage.base import StoreReader
from headgate.registry.subjects import Subject


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Verdict
    level: Level


def check(
    environment: Environment,
    store: StoreReader,
    subject: Subject,
    candidate: Candidate,
    version: int | None,
    *,
    normalize: bool,
    patience: Patience | None = None,
) -> Answer:
    """Against one version, or (None) against all that the subject's level asks for. An empty subject takes anything."""
    config = config_in_scope(store, environment.settings, subject)
    level = config.compatibility_level or environment.settings.compatibility_level
    against = None
    if version is not None:
        against = store.latest(subject) if version == LATEST else store.version(subject, version)
        if against is None or against.deleted:
            if version != LATEST:
                raise VersionNotFound(version)
            against = None
    if not candidate.text.strip():
        raise InvalidSchema("Empty schema")
    understood = understand(
        environment,
        store,
        subject,
        candidate,
        normalize=normalize or bool(config.normalize),
        strict=bool(config.validate_names if config.validate_new_schemas is None else config.validate_new_schemas),
    )
    if version is None:
        return Answer(judge(environment, store, config, understood, store.latest(subject), patience), level)
    if against is None or level is Level.NONE:
        return Answer(levels.COMPATIBLE, level)
    if patience is not None:
        patience.check(against)
    verdict = levels.judge(
        environment.languages,
        level,
        Policy(config.compatibility_policy or Policy.STRICT),
        understood.parsed,
        [Earlier(against.version, stored_schema(environment, store, against))],
        None if patience is None else patience.steps_max,
    )
    messages = [*policy_messages(config, level), *verdict.messages]
    return Answer(verdict_of(messages, verdict.found, config, level), level)
