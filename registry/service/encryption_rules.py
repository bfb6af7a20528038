"""Defaults for encryption rules. Clients need the name of a KEK, and users often specify only a KMS key."""

import unicodedata
from dataclasses import replace
from typing import Final

from headgate.registry.model import Rule, RuleSet

_KEK_NAME: Final = "encrypt.kek.name"
_KMS_KEY_ID: Final = "encrypt.kms.key.id"
_KMS_TYPE: Final = "encrypt.kms.type"
_ARN: Final = "arn:"


def with_kms_defaults(rules: RuleSet | None) -> RuleSet | None:
    """Add a KEK name to rules with a KMS key id, and a KMS type for ARNs, as Confluent's registry does."""
    if rules is None:
        return None
    return replace(
        rules,
        domain_rules=tuple(map(_with_defaults, rules.domain_rules)),
        encoding_rules=tuple(map(_with_defaults, rules.encoding_rules)),
    )


def _with_defaults(rule: Rule) -> Rule:
    key_id = rule.params.get(_KMS_KEY_ID)
    if key_id is None:
        return rule
    params = dict(rule.params)
    params.setdefault(_KEK_NAME, _kek_name(key_id))
    if key_id.startswith(_ARN):
        params.setdefault(_KMS_TYPE, "aws-kms")
    return replace(rule, params=params)


def _kek_name(key_id: str) -> str:
    return "".join(char if _allowed(char) else "-" for char in key_id.removeprefix(_ARN))


def _allowed(char: str) -> bool:
    category = unicodedata.category(char)
    return category.startswith("L") or category == "Nd" or char in "_-"
