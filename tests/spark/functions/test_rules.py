"""Schemas with rules that must run on read. Headgate does not execute rules, so their payloads are poison."""

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headgate.spark_udfs import decode_frame
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_registry import HeadgateRegistry
from tests.live.topics import create_topic, produce
from tests.spark.functions.forms import FORMS
from tests.spark.functions.payloads import CUSTOMER_V2, encoded, frame_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBJECT = "ruled-value"
ENCRYPT = {"domainRules": [{"name": "e", "mode": "WRITEREAD", "type": "ENCRYPT"}]}
MIGRATE = {"migrationRules": [{"name": "m", "mode": "UPGRADE", "type": "JSONATA"}]}
ON_WRITE = {"domainRules": [{"name": "w", "mode": "WRITE", "type": "CEL"}]}
REASONS = [None, "RULES_NOT_EXECUTED", "RULES_NOT_EXECUTED", None]


@pytest.fixture(scope="module")
def payloads(registry: HeadgateRegistry) -> list[bytes]:
    """One payload per schema: without rules, and with each kind of rule."""
    made = []
    for doc, rules in (("", None), ("encrypted", ENCRYPT), ("migrated", MIGRATE), ("written", ON_WRITE)):
        schema: dict[str, Any] = {**CUSTOMER_V2, "doc": doc}
        subject = SUBJECT if rules is None else f"{doc}-{SUBJECT}"
        body = {"schema": json.dumps(schema), **({} if rules is None else {"ruleSet": rules})}
        answer = httpx.post(f"{registry.url}/subjects/{subject}/versions", json=body)
        made.append(encoded(schema, {"id": 1, "fullname": "Ada", "email": None}, answer.json()["id"]))
    return made


@pytest.mark.parametrize("decode", FORMS)
def test_payloads_with_rules_are_poison(
    spark: "SparkSession", registry: HeadgateRegistry, payloads: list[bytes], decode: Any
) -> None:
    rows = rows_of(decode(frame_of(spark, payloads), SUBJECT, registry=registry.url))
    assert [row.reason for row in rows] == REASONS
    assert [row.value and row.value.fullname for row in rows] == ["Ada", None, None, "Ada"]
    assert [row.raw for row in rows] == [None, payloads[1], payloads[2], None]


def test_payloads_with_rules_in_a_topic_are_poison(
    spark: "SparkSession", registry: HeadgateRegistry, headgate_broker: HeadgateBroker, payloads: list[bytes]
) -> None:
    create_topic(headgate_broker.address, "ruled")
    produce(headgate_broker.address, "ruled", payloads)
    options = {"bootstrap.servers": headgate_broker.address, "subscribe": "ruled", "registry.url": registry.url}
    df = spark.read.format("headgate").options(**options, subject=SUBJECT).load()
    assert [row.reason for row in rows_of(df, "offset")] == REASONS


def test_rules_of_the_reader_schema_apply_and_can_be_ignored(
    spark: "SparkSession", registry: HeadgateRegistry, payloads: list[bytes]
) -> None:
    def decoded(**options: str) -> "DataFrame":
        given = {"registry.url": registry.url, **options}
        return decode_frame(frame_of(spark, payloads), f"encrypted-{SUBJECT}", registry=given, details=True)

    rows = rows_of(decoded())
    assert {row.reason for row in rows} == {"RULES_NOT_EXECUTED"}
    assert "the rule e (ENCRYPT, WRITEREAD)" in rows[1].detail
    assert {row.reason for row in rows_of(decoded(**{"registry.rules": "ignore"}))} == {None}
