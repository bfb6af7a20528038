"""Rules of a registered schema (Confluent's data contracts): encryption, conditions, transformations, migrations.

Headgate stores rules but does not execute them. A value that skips its rules is wrong: plain text instead of
ciphertext, or ciphertext that looks like a valid value. Therefore a schema with rules for an operation prevents that
operation. Writing raises `RulesNotExecuted`. Reading returns poison with `Reason.RULES_NOT_EXECUTED`. With
`RulePolicy.IGNORE`, the user chooses to continue without rules.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

_SECTIONS: Final = ("domainRules", "encodingRules", "migrationRules")
_MIGRATION_MODES: Final = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_WRITE_MODES: Final = frozenset({"WRITE", "WRITEREAD"})
_READ_MODES: Final = frozenset({"READ", "WRITEREAD"})
_OTHER_ENVIRONMENTS: Final = ("GATEWAY", "SERVER", "NONE")
"""Values of `enableAt` whose rules do not run in clients."""
_KNOWN_MODES: Final = _MIGRATION_MODES | _WRITE_MODES | _READ_MODES


class RulePolicy(StrEnum):
    FAIL = "fail"
    """Raise on write, and return poison on read, if the schema has rules that must run."""
    IGNORE = "ignore"
    """Write and read as if the schema had no rules."""


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """An enabled rule: the fields that decide whether it applies, and its name."""

    name: str
    type: str
    mode: str

    def __str__(self) -> str:
        return f"{self.name} ({self.type}, {self.mode})"

    @property
    def applies_on_write(self) -> bool:
        # An unknown mode may mean anything, so it always applies.
        return self.mode in _WRITE_MODES or self.mode not in _KNOWN_MODES

    @property
    def applies_on_read(self) -> bool:
        return self.mode in _READ_MODES or self.mode not in _KNOWN_MODES

    @property
    def applies_on_migration(self) -> bool:
        return self.mode in _MIGRATION_MODES or self.mode not in _KNOWN_MODES


Rules = tuple[SchemaRule, ...]


def parse_rules(rule_set: object) -> Rules:
    """The rules of a `ruleSet` in a registry response that are enabled and run in clients.

    Raises TypeError for another structure.
    """
    if rule_set is None:
        return ()
    if not isinstance(rule_set, dict):
        raise TypeError("ruleSet is not an object")
    if rule_set.get("enableAt") in _OTHER_ENVIRONMENTS:
        return ()
    return tuple(rule for section in _SECTIONS for rule in _enabled(rule_set.get(section)))


def _enabled(rules: Any) -> Iterable[SchemaRule]:
    for rule in rules or ():
        if not isinstance(rule, dict):
            raise TypeError("a rule is not an object")
        if rule.get("disabled") is not True:
            yield SchemaRule(*(str(rule.get(part) or "unknown") for part in ("name", "type", "mode")))


def rule_on_write(rules: Rules) -> SchemaRule | None:
    return next((rule for rule in rules if rule.applies_on_write), None)


def rule_on_read(rules: Rules) -> SchemaRule | None:
    return next((rule for rule in rules if rule.applies_on_read), None)


def rule_on_migration(rules: Rules) -> SchemaRule | None:
    return next((rule for rule in rules if rule.applies_on_migration), None)


def read_advice(rule: SchemaRule | str) -> str:
    return (
        f"the schema has the rule {rule}, which must run on read, and Headgate does not execute rules; "
        "read with a client that executes them, or set rules=ignore to read the value as it is stored"
    )


class RulesNotExecuted(ValueError):
    """The schema has a rule that must run on write. Nothing was written."""

    def __init__(self, rule: SchemaRule, schema_id: int | None) -> None:
        super().__init__(
            f"Schema {schema_id} has the rule {rule}, which must run on write, and Headgate does not execute rules. "
            "Nothing was written. Write with a client that executes them, or set rules=ignore to write without them."
        )
        self.rule = rule


def check_writable(rules: Rules, schema_id: int | None) -> None:
    """Raises `RulesNotExecuted`."""
    rule = rule_on_write(rules)
    if rule is not None:
        raise RulesNotExecuted(rule, schema_id)
