"""The JSON of Confluent's API, as sent, received and stored, and its conversion to and from the model.

This module checks the form of the JSON and of rule sets. `registry.service` makes decisions.
"""

import re
from typing import Any, Final

import msgspec

from headgate.registry import limits
from headgate.registry.errors import InvalidCompatibilityLevel, InvalidRuleSet, InvalidSchema, Unprocessable
from headgate.registry.model import Config, Level, Metadata, Reference, Rule, RuleSet

Scalar = str | int | float | bool | None
_RULE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_RULE_NAME_CHARS_MAX: Final = 64
_MIGRATION_MODES: Final = frozenset({"UPGRADE", "DOWNGRADE", "UPDOWN"})
_DOMAIN_MODES: Final = frozenset({"WRITE", "READ", "WRITEREAD"})
_KINDS: Final = frozenset({"TRANSFORM", "CONDITION"})
_ENVIRONMENTS: Final = ("ALL", "CLIENT", "GATEWAY", "SERVER", "NONE")
_POLICIES: Final = ("STRICT", "LENIENT", "LOGICAL")


class WireReference(msgspec.Struct, forbid_unknown_fields=True):
    name: str | None = None
    subject: str | None = None
    version: int | None = None


class WireMetadata(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    tags: dict[str, list[str] | None] | None = None
    properties: dict[str, Scalar] | None = None
    sensitive: list[str] | None = None


class WireRule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str | None = None
    doc: str | None = None
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, Scalar] | None = None
    expr: str | None = None
    onSuccess: str | None = None
    onFailure: str | None = None
    disabled: bool | None = None


class WireRuleSet(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    migrationRules: list[WireRule] | None = None
    domainRules: list[WireRule] | None = None
    encodingRules: list[WireRule] | None = None
    enableAt: str | None = None


class WireConfig(msgspec.Struct, forbid_unknown_fields=True):
    """A change of configuration. Absent fields stay unchanged; null fields are cleared."""

    compatibility: str | msgspec.UnsetType | None = msgspec.UNSET
    compatibilityLevel: str | msgspec.UnsetType | None = msgspec.UNSET
    alias: str | msgspec.UnsetType | None = msgspec.UNSET
    aliasForDeks: str | msgspec.UnsetType | None = msgspec.UNSET
    normalize: bool | msgspec.UnsetType | None = msgspec.UNSET
    validateFields: bool | msgspec.UnsetType | None = msgspec.UNSET
    validateNames: bool | msgspec.UnsetType | None = msgspec.UNSET
    validateNewSchemas: bool | msgspec.UnsetType | None = msgspec.UNSET
    validateRules: bool | msgspec.UnsetType | None = msgspec.UNSET
    compatibilityGroup: str | msgspec.UnsetType | None = msgspec.UNSET
    compatibilityPolicy: str | msgspec.UnsetType | None = msgspec.UNSET
    defaultMetadata: WireMetadata | msgspec.UnsetType | None = msgspec.UNSET
    overrideMetadata: WireMetadata | msgspec.UnsetType | None = msgspec.UNSET
    defaultRuleSet: WireRuleSet | msgspec.UnsetType | None = msgspec.UNSET
    overrideRuleSet: WireRuleSet | msgspec.UnsetType | None = msgspec.UNSET


def plain_text(error: Exception) -> str:
    """The message of a msgspec error without backticks."""
    return str(error).replace("`", "")


def references_of(wire: list[WireReference] | None) -> tuple[Reference, ...]:
    if not wire:
        return ()
    if len(wire) > limits.REFERENCES_MAX:
        raise InvalidSchema(f"The schema has {len(wire)} references; at most {limits.REFERENCES_MAX} are accepted")
    found = []
    for index, reference in enumerate(wire):
        place = f"/references/{index}"
        if not reference.name:
            raise InvalidSchema("A reference needs a name", place)
        if not reference.subject:
            raise InvalidSchema(f"The reference {reference.name} needs a subject", place)
        version = -1 if reference.version is None else reference.version
        if version != -1 and not 1 <= version <= limits.VERSION_MAX:
            raise InvalidSchema(f"The reference {reference.name} has no valid version: {version}", place)
        found.append(Reference(reference.name, reference.subject, version))
    return tuple(found)


def references_json(references: tuple[Reference, ...]) -> list[dict[str, Any]]:
    return [{"name": r.name, "subject": r.subject, "version": r.version} for r in references]


def metadata_of(wire: WireMetadata | None, *, merged: bool = False) -> Metadata | None:
    """`merged` skips the limit of one request, because metadata merged with configured entries may exceed it."""
    if wire is None:
        return None
    tags = wire.tags or {}
    properties = wire.properties or {}
    if not merged and len(tags) + len(properties) > limits.METADATA_ENTRIES_MAX:
        raise InvalidSchema(f"The metadata has more than {limits.METADATA_ENTRIES_MAX} entries")
    return Metadata(
        tags={path: tuple(sorted(set(tags[path] or ()))) for path in sorted(tags)},
        properties={key: _text(properties[key]) for key in sorted(properties)},
        sensitive=tuple(sorted(set(wire.sensitive or ()))),
    )


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def metadata_json(metadata: Metadata) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if metadata.tags:
        shown["tags"] = {path: list(tags) for path, tags in metadata.tags.items()}
    if metadata.properties:
        shown["properties"] = dict(metadata.properties)
    if metadata.sensitive:
        shown["sensitive"] = list(metadata.sensitive)
    return shown


def rule_set_of(wire: WireRuleSet | None, *, merged: bool = False) -> RuleSet | None:
    """Convert and check a rule set.

    Raises `InvalidRuleSet` for a rule without name or type, a mode of the wrong kind, a duplicate name, or an unknown
    `enableAt`.

    `merged` skips the checks that apply to one request: a configured rule may have the name of a rule in another list.
    """
    if wire is None:
        return None
    names: set[str] | None = None if merged else set()
    count = len(wire.migrationRules or ()) + len(wire.domainRules or ()) + len(wire.encodingRules or ())
    if not merged and count > limits.METADATA_ENTRIES_MAX:
        raise InvalidRuleSet(f"The rule set has {count} rules; at most {limits.METADATA_ENTRIES_MAX} are accepted")
    if wire.enableAt is not None and wire.enableAt not in _ENVIRONMENTS:
        raise InvalidRuleSet(f"Invalid enableAt '{wire.enableAt}'. Valid values are {', '.join(_ENVIRONMENTS)}")
    return RuleSet(
        _rules(wire.migrationRules, "Migration", _MIGRATION_MODES, "UPGRADE, DOWNGRADE, UPDOWN", names),
        _rules(wire.domainRules, "Domain", _DOMAIN_MODES, "WRITE, READ, WRITEREAD", names),
        _rules(wire.encodingRules, "Encoding", _DOMAIN_MODES, "WRITE, READ, WRITEREAD", names),
        wire.enableAt,
    )


def _rules(
    wire: list[WireRule] | None, label: str, modes: frozenset[str], listed: str, names: set[str] | None
) -> tuple[Rule, ...]:
    found = []
    for rule in wire or ():
        if not rule.name:
            raise InvalidRuleSet("Missing rule name")
        if len(rule.name) > _RULE_NAME_CHARS_MAX or not _RULE_NAME.match(rule.name):
            raise InvalidRuleSet(
                f"Invalid rule name '{rule.name}': letters, digits, _ and -, at most {_RULE_NAME_CHARS_MAX} of them"
            )
        if names is not None:
            if rule.name in names:
                raise InvalidRuleSet(f"Found rule with duplicate name '{rule.name}'")
            names.add(rule.name)
        if not rule.type:
            raise InvalidRuleSet(f"Missing rule type in rule '{rule.name}'")
        if rule.kind is not None and rule.kind not in _KINDS:
            raise InvalidRuleSet(f"Invalid kind '{rule.kind}' of rule '{rule.name}': TRANSFORM or CONDITION")
        if rule.mode is None:
            raise InvalidRuleSet(f"Missing rule mode in rule '{rule.name}'")
        if rule.mode not in modes:
            raise InvalidRuleSet(f"{label} rules can only be {listed}; '{rule.name}' is {rule.mode}")
        found.append(
            Rule(
                name=rule.name,
                doc=rule.doc,
                kind=rule.kind,
                mode=rule.mode,
                type=rule.type,
                tags=tuple(sorted(set(rule.tags or ()))),
                params={key: _text(value) for key, value in sorted((rule.params or {}).items())},
                expr=rule.expr,
                on_success=rule.onSuccess,
                on_failure=rule.onFailure,
                disabled=bool(rule.disabled),
            )
        )
    return tuple(found)


def _rule_json(rule: Rule) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": rule.name,
        "doc": rule.doc,
        "kind": rule.kind,
        "mode": rule.mode,
        "type": rule.type,
        "tags": list(rule.tags) or None,
        "params": dict(rule.params) or None,
        "expr": rule.expr,
        "onSuccess": rule.on_success,
        "onFailure": rule.on_failure,
        "disabled": rule.disabled,
    }
    return {key: value for key, value in shown.items() if value is not None}


def rule_set_json(rule_set: RuleSet) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "migrationRules": [_rule_json(rule) for rule in rule_set.migration_rules],
        "domainRules": [_rule_json(rule) for rule in rule_set.domain_rules],
        "encodingRules": [_rule_json(rule) for rule in rule_set.encoding_rules],
        "enableAt": rule_set.enable_at,
    }
    return {key: value for key, value in shown.items() if value}


def level_of(text: str) -> Level:
    try:
        return Level(text.strip().upper())
    except ValueError:
        raise InvalidCompatibilityLevel from None


def config_changes(wire: WireConfig) -> dict[str, Any]:
    """The fields of `Config` that the request sets or clears."""
    changes: dict[str, Any] = {}
    for level in (wire.compatibilityLevel, wire.compatibility):
        if not isinstance(level, msgspec.UnsetType):
            changes["compatibility_level"] = None if level is None else level_of(level)
    for theirs, ours in _CONFIG_SCALARS.items():
        value = getattr(wire, theirs)
        if value is not msgspec.UNSET:
            changes[ours] = value
    if changes.get("compatibility_policy") is not None:
        changes["compatibility_policy"] = _policy(changes["compatibility_policy"])
    for theirs, ours in _CONFIG_METADATA.items():
        value = getattr(wire, theirs)
        if value is not msgspec.UNSET:
            changes[ours] = metadata_of(value)
    for theirs, ours in _CONFIG_RULE_SETS.items():
        value = getattr(wire, theirs)
        if value is not msgspec.UNSET:
            changes[ours] = rule_set_of(value)
    return changes


def _policy(text: str) -> str:
    if text.upper() not in _POLICIES:
        raise Unprocessable(f"Invalid compatibility policy '{text}'. Valid values are {', '.join(_POLICIES)}")
    return text.upper()


_CONFIG_SCALARS: Final = {
    "alias": "alias",
    "aliasForDeks": "alias_for_deks",
    "normalize": "normalize",
    "validateFields": "validate_fields",
    "validateNames": "validate_names",
    "validateNewSchemas": "validate_new_schemas",
    "validateRules": "validate_rules",
    "compatibilityGroup": "compatibility_group",
    "compatibilityPolicy": "compatibility_policy",
}
_CONFIG_METADATA: Final = {"defaultMetadata": "default_metadata", "overrideMetadata": "override_metadata"}
_CONFIG_RULE_SETS: Final = {"defaultRuleSet": "default_rule_set", "overrideRuleSet": "override_rule_set"}


def config_json(config: Config, level_key: str = "compatibilityLevel") -> dict[str, Any]:
    """`level_key` is compatibilityLevel in responses to GET and DELETE, and compatibility in responses to PUT."""
    shown: dict[str, Any] = {theirs: getattr(config, ours) for theirs, ours in _CONFIG_SCALARS.items()}
    shown[level_key] = config.compatibility_level
    for theirs, ours in _CONFIG_METADATA.items():
        metadata = getattr(config, ours)
        shown[theirs] = None if metadata is None else metadata_json(metadata)
    for theirs, ours in _CONFIG_RULE_SETS.items():
        rule_set = getattr(config, ours)
        shown[theirs] = None if rule_set is None else rule_set_json(rule_set)
    return {key: value for key, value in shown.items() if value is not None}
