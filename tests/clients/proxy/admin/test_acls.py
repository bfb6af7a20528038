"""Access rules on brokers without an authorizer: Kafka's refusal, in Confluent's code."""

from typing import Any

import pytest

from tests.clients.proxy.admin.conftest import Api, error_of

RULE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}
SEARCH = "resource_type=TOPIC&pattern_type=ANY&operation=ANY&permission=ANY"


def test_without_an_authorizer_every_question_is_refused(any_api: Api) -> None:
    for method, path, body in (
        ("GET", "acls", None),
        ("GET", "acls?resource_type=topic&principal=User:alice", None),
        ("POST", "acls", RULE),
        ("POST", "acls:batch", {"data": [RULE]}),
        ("DELETE", f"acls?{SEARCH}", None),
    ):
        answer = any_api.ask(method, path, body)
        assert error_of(answer) == (400, 40002), (method, path)
        assert answer.json()["message"].startswith("No Authorizer is configured")


@pytest.mark.parametrize(
    "change",
    [{"operation": "FLY"}, {"pattern_type": "MATCH"}, {"resource_type": "ANY"}, {"permission": 3}, {"host": None}],
)
def test_rules_that_cannot_be_are_refused_before_the_broker_is_asked(api: Api, change: dict[str, Any]) -> None:
    assert error_of(api.ask("POST", "acls", {**RULE, **change})) == (400, 400)
    assert error_of(api.ask("POST", "acls:batch", {"data": [{**RULE, **change}]})) == (400, 400)


def test_deleting_must_say_what(api: Api) -> None:
    assert error_of(api.ask("DELETE", "acls")) == (400, 400)
    assert error_of(api.ask("DELETE", f"acls?{SEARCH.replace('TOPIC', 'PLANET')}")) == (400, 400)
