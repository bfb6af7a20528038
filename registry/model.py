"""The data model: schemas, references, metadata, rules and configuration, as frozen dataclasses.

This module contains data only. `registry.formats` parses, `registry.service` decides, `registry.api` serves HTTP.
"""

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Self


class SchemaType(StrEnum):
    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Level(StrEnum):
    """The compatibility level of a subject."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")

    @property
    def backward(self) -> bool:
        """Whether the new schema must read data of earlier schemas."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def forward(self) -> bool:
        """Whether earlier schemas must read data of the new schema."""
        return self.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def takes_explicit_ids(self) -> bool:
        return self in (Mode.IMPORT, Mode.FORWARD)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name used inside a schema, and the registered version that defines it."""

    name: str
    subject: str
    version: int


CONFLUENT_VERSION: Final = "confluent:version"
RESERVED_FIELDS: Final = "confluent:reserved"


@dataclass(frozen=True, slots=True)
class Metadata:
    """Tags by path, properties, and the names of sensitive properties. Empty and absent are equal."""

    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()

    def merged(self, over: "Metadata | None") -> "Metadata":
        """These entries, overridden and extended by `over`."""
        if over is None:
            return self
        return Metadata(
            tags={**self.tags, **over.tags},
            properties={**self.properties, **over.properties},
            sensitive=tuple(sorted({*self.sensitive, *over.sensitive})),
        )

    def with_version(self, version: int) -> "Metadata":
        return replace(self, properties={**self.properties, CONFLUENT_VERSION: str(version)})

    def without_version(self) -> "Metadata":
        return replace(self, properties={k: v for k, v in self.properties.items() if k != CONFLUENT_VERSION})

    @property
    def empty(self) -> bool:
        return not (self.tags or self.properties or self.sensitive)

    def hashed(self) -> Iterator[str]:
        for path in sorted(self.tags):
            yield path
            yield from self.tags[path]
        for key in sorted(self.properties):
            yield key
            yield self.properties[key]
        yield from sorted(self.sensitive)


def merged_metadata(under: Metadata | None, over: Metadata | None) -> Metadata | None:
    return over if under is None else under.merged(over)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule for serializers. The registry checks its form; the client that executes it checks the expression."""

    name: str
    kind: str | None = None
    mode: str | None = None
    type: str | None = None
    doc: str | None = None
    tags: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False

    def hashed(self) -> Iterator[str]:
        yield from (v for v in (self.name, self.doc, self.kind, self.mode, self.type) if v is not None)
        yield from self.tags
        for key in sorted(self.params):
            yield key
            yield self.params[key]
        yield from (v for v in (self.expr, self.on_success, self.on_failure) if v is not None)
        yield "true" if self.disabled else "false"


@dataclass(frozen=True, slots=True)
class RuleSet:
    migration_rules: tuple[Rule, ...] = ()
    domain_rules: tuple[Rule, ...] = ()
    encoding_rules: tuple[Rule, ...] = ()
    enable_at: str | None = None
    """Where the rules run: ALL (same as None), CLIENT, GATEWAY, SERVER or NONE."""

    def __iter__(self) -> Iterator[Rule]:
        yield from self.migration_rules
        yield from self.domain_rules
        yield from self.encoding_rules

    def merged(self, over: "RuleSet | None") -> "RuleSet":
        """These rules, followed by the rules of `over`. A rule of the same name replaces the older one."""
        if over is None:
            return self
        return RuleSet(
            _merged_rules(self.migration_rules, over.migration_rules),
            _merged_rules(self.domain_rules, over.domain_rules),
            _merged_rules(self.encoding_rules, over.encoding_rules),
            over.enable_at or self.enable_at,
        )

    def without(self, names: frozenset[str]) -> "RuleSet":
        return RuleSet(
            tuple(rule for rule in self.migration_rules if rule.name not in names),
            tuple(rule for rule in self.domain_rules if rule.name not in names),
            tuple(rule for rule in self.encoding_rules if rule.name not in names),
            self.enable_at,
        )

    @property
    def empty(self) -> bool:
        return not (self.migration_rules or self.domain_rules or self.encoding_rules or self.enable_at)


def _merged_rules(under: tuple[Rule, ...], over: tuple[Rule, ...]) -> tuple[Rule, ...]:
    names = {rule.name for rule in over}
    return (*(rule for rule in under if rule.name not in names), *over)


def merged_rule_sets(under: RuleSet | None, over: RuleSet | None) -> RuleSet | None:
    return over if under is None else under.merged(over)


@dataclass(frozen=True, slots=True)
class Content:
    """The identity of a schema: text, references, metadata and rules. Id and guid depend on it."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    def fingerprint(self) -> bytes:
        """MD5, like the guid of Confluent's registry. It has no separators, so different contents can share it."""
        digest = hashlib.md5(self.text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
        for reference in self.references:
            digest.update(reference.name.encode("utf-8", "surrogatepass"))
            digest.update(reference.subject.encode("utf-8", "surrogatepass"))
            digest.update((reference.version & 0xFFFFFFFF).to_bytes(4, "big"))
        if self.metadata is not None:
            for part in self.metadata.hashed():
                digest.update(part.encode("utf-8", "surrogatepass"))
        if self.rule_set is not None:
            # An empty rule set differs from no rule set: a schema without a rule set inherits one.
            digest.update(b"ruleSet")
            for rule in self.rule_set:
                for part in rule.hashed():
                    digest.update(part.encode("utf-8", "surrogatepass"))
            if self.rule_set.enable_at is not None:
                digest.update(self.rule_set.enable_at.encode())
        return digest.digest()

    def unambiguous_fingerprint(self) -> bytes:
        """MD5 with separators, for a content whose `fingerprint` belongs to another content."""
        fields = json.dumps(asdict(self), sort_keys=True)
        return hashlib.md5(fields.encode(), usedforsecurity=False).digest()


def guid_of(fingerprint: bytes) -> str:
    return str(uuid.UUID(bytes=fingerprint))


_UNINHERITED: Final = frozenset({"alias", "alias_for_deks"})


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a subject, of a context, or of all contexts. None inherits from the next wider scope."""

    compatibility_level: Level | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_names: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_group: str | None = None
    compatibility_policy: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None

    def over(self, wider: "Config") -> "Config":
        """This configuration, with unset fields from `wider`. An alias is not inherited."""
        gaps: dict[str, Any] = {
            f.name: getattr(wider, f.name)
            for f in fields(self)
            if f.name not in _UNINHERITED and getattr(self, f.name) is None
        }
        return replace(self, **gaps)

    def changed(self, values: Mapping[str, Any]) -> Self:
        return replace(self, **values)

    def validates(self, type: SchemaType) -> bool:
        """Whether a new schema is parsed strictly and needs live references.

        `validateNewSchemas` applies to all languages. Its predecessor `validateNames` applies to Avro only.
        """
        if self.validate_new_schemas is not None:
            return self.validate_new_schemas
        return type is not SchemaType.AVRO or bool(self.validate_names)

    def logical_conflict(self, level: Level) -> str | None:
        """The conflict between `compatibilityPolicy` and `level`, or None. Iceberg tables only evolve backward."""
        if self.compatibility_policy != "LOGICAL" or level not in (Level.FORWARD, Level.FORWARD_TRANSITIVE):
            return None
        return (
            f"compatibilityPolicy=LOGICAL cannot be combined with compatibilityLevel={level}: "
            "Iceberg only supports backward-compatible schema evolution"
        )

    @property
    def merges_content(self) -> bool:
        """Whether registration may store a schema that differs from the submitted one."""
        return not (
            self.default_metadata is None
            and self.override_metadata is None
            and self.default_rule_set is None
            and self.override_rule_set is None
        )
