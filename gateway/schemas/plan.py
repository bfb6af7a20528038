"""Compares a folder of schemas with a registry, or with an earlier state of the folder, and applies it to a registry.

Both comparisons use the compatibility checkers of the registry in this process. A registry cannot check a schema whose
references are not registered yet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from headgate.gateway.schemas.folder import LocalSchema
from headgate.gateway.schemas.registry_api import RegistryApi, RegistryRefused
from headgate.registry.compatibility import levels
from headgate.registry.compatibility.incompatibility import Policy
from headgate.registry.compatibility.levels import CheckResult, EarlierVersion
from headgate.registry.errors import InvalidSchema
from headgate.registry.languages import Languages
from headgate.registry.model import Level

DEFAULT_LEVEL: Final = Level.BACKWARD


class Action(StrEnum):
    NEW_SUBJECT = "new subject"
    NEW_VERSION = "new version"
    UNCHANGED = "unchanged"
    REMOVED = "not in the folder"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to one subject."""

    subject: str
    file: str
    action: Action
    level: Level | None = None
    """The level that the change must fulfil."""
    old_level: str | None = None
    """The current level of the subject, if the manifest changes it. "" if the subject uses the global level."""
    version: int | None = None
    """The registered version of an unchanged schema."""
    problem: str = ""
    result: CheckResult = levels.COMPATIBLE

    @property
    def is_rejected(self) -> bool:
        return bool(self.problem) or not self.result.compatible

    @property
    def is_change(self) -> bool:
        return self.action in (Action.NEW_SUBJECT, Action.NEW_VERSION) or self.old_level is not None


def compare_folders(languages: Languages, old: Iterable[LocalSchema], new: Iterable[LocalSchema]) -> Iterator[Step]:
    """The steps from one state of a folder to another."""
    before = {one.declared.subject: one for one in old}
    for one in new:
        declared, was = one.declared, before.pop(one.declared.subject, None)
        level = declared.level or DEFAULT_LEVEL
        if one.schema is None:
            yield Step(declared.subject, declared.file, Action.INVALID, level, problem=one.problem)
        elif was is None or was.schema is None:
            yield Step(declared.subject, declared.file, Action.NEW_SUBJECT, level)
        else:
            step = Step(declared.subject, declared.file, Action.NEW_VERSION, level)
            step = _checked(languages, step, level, Policy.STRICT, one, [EarlierVersion(0, was.schema)])
            same = (was.schema.canonical, was.declared.references) == (one.schema.canonical, declared.references)
            # An equal text can still differ through a reference, and then be incompatible.
            yield replace(step, action=Action.UNCHANGED) if same and not step.is_rejected else step
    for subject, was in before.items():
        yield Step(subject, was.declared.file, Action.REMOVED)


def _checked(
    languages: Languages, step: Step, level: Level, policy: Policy, one: LocalSchema, earlier: Iterable[EarlierVersion]
) -> Step:
    assert one.schema is not None
    try:
        return replace(step, result=levels.check(languages, level, policy, one.schema, earlier))
    except InvalidSchema as error:
        return replace(step, problem=str(error))


class Plan:
    """The steps from the state of a registry to a folder, in the order of references."""

    def __init__(self, api: RegistryApi, schemas: Sequence[LocalSchema]) -> None:
        self._api = api
        self._schemas = schemas
        self.versions: dict[str, int] = {}
        """Registered versions of the schemas in the folder."""
        self.steps: list[Step] = [self._step(one) for one in schemas]

    def _step(self, one: LocalSchema) -> Step:
        declared = one.declared
        if one.schema is None:
            return Step(declared.subject, declared.file, Action.INVALID, problem=one.problem)
        own = self._api.find("GET", "config", declared.subject) or {}
        config = self._api.ask("GET", "config", declared.subject, params={"defaultToGlobal": "true"})
        level = declared.level or Level(config.get("compatibilityLevel") or DEFAULT_LEVEL)
        old_level = str(own.get("compatibilityLevel") or "")
        changed_level = old_level if declared.level is not None and declared.level != old_level else None
        step = Step(declared.subject, declared.file, Action.NEW_SUBJECT, level, changed_level)
        numbers = self._api.find("GET", "subjects", declared.subject, "versions")
        if not numbers:
            return step
        body = self._body(one)
        found = None if body is None else self._api.find("POST", "subjects", declared.subject, json=body)
        if found is not None:
            self.versions[declared.subject] = found["version"]
            return replace(step, action=Action.UNCHANGED, version=found["version"])
        step = replace(step, action=Action.NEW_VERSION)
        if level is Level.NONE:
            return step
        policy = Policy(config.get("compatibilityPolicy") or Policy.STRICT)
        earlier = self._earlier(declared.subject, numbers if level.transitive else numbers[-1:])
        return _checked(self._api.languages, step, level, policy, one, earlier)

    def _earlier(self, subject: str, numbers: Sequence[int]) -> Iterator[EarlierVersion]:
        for number in reversed(numbers):
            stored = self._api.stored(subject, str(number))
            yield EarlierVersion(stored.version, stored.schema)

    def _body(self, one: LocalSchema) -> dict[str, Any] | None:
        """The body of a registration. None if a reference is not registered yet."""
        assert one.schema is not None
        declared = one.declared
        if any(target not in self.versions for target in declared.references.values()):
            return None
        body: dict[str, Any] = {"schema": one.schema.text, "schemaType": declared.type.value}
        if declared.references:
            body["references"] = [
                {"name": name, "subject": target, "version": self.versions[target]}
                for name, target in declared.references.items()
            ]
        return body

    def apply(self) -> "Iterator[Outcome]":
        """Execute the steps. After a failure, steps that do not depend on it continue."""
        for one, step in zip(self._schemas, self.steps, strict=True):
            if not step.is_change:
                yield Outcome(step, "unchanged")
                continue
            try:
                yield self._applied(one, step)
            except RegistryRefused as error:
                yield Outcome(step, "failed", problem=str(error))

    def _applied(self, one: LocalSchema, step: Step) -> "Outcome":
        if step.old_level is not None and step.level is not None:
            self._api.ask("PUT", "config", step.subject, json={"compatibility": step.level.value})
        if step.action is Action.UNCHANGED:
            return Outcome(step, "level set")
        body = self._body(one)
        if body is None:
            return Outcome(step, "failed", problem="a referenced schema was not registered")
        id = self._api.ask("POST", "subjects", step.subject, "versions", json=body)["id"]
        self.versions[step.subject] = self._api.ask("POST", "subjects", step.subject, json=body)["version"]
        return Outcome(step, "registered", id, self.versions[step.subject])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an applied step."""

    step: Step
    state: str
    id: int | None = None
    version: int | None = None
    problem: str = ""
