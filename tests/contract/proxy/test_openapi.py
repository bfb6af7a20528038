"""The OpenAPI documents match the routes, and generated requests get documented responses."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok

from headgate.openapi.documents import document
from headgate.proxy.api.app import create_app
from headgate.proxy.settings import ProxySettings
from tests.live.headgate import HeadgateBroker
from tests.live.headgate_proxy import HeadgateProxy
from tests.rounds import rounds

DOCUMENTS: dict[str, dict[str, Any]] = {name: yaml.safe_load(document(f"proxy_{name}")) for name in ("v2", "v3")}
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}
# Routes that the fast path handles before FastAPI. A test checks that the live proxy serves them.
FAST_PATH = {
    ("POST", "/topics/{}"),
    ("POST", "/topics/{}/partitions/{}"),
    ("POST", "/v3/clusters/{}/topics/{}/records"),
    ("POST", "/v3/clusters/{}/topics/{}/records:batch"),
}
TOPIC = "orders"
GROUP = "readers"
# Replaces generated timeouts, to keep the test fast.
WAIT_MS_MAX = 50
# The documents cannot express all rules of a broker, for example valid configs, replica counts and existing offsets.
BEYOND_DOCUMENTS = [schemathesis.checks.positive_data_acceptance]


def unnamed(path: str) -> str:
    """Remove the names of path parameters, because modules may use different names for the same parameter."""
    return re.sub(r"{\w+}", "{}", path)


def documented() -> set[tuple[str, str]]:
    return {
        (method.upper(), unnamed(path))
        for each in DOCUMENTS.values()
        for path, operations in each["paths"].items()
        for method in operations
        if method in METHODS
    }


def routed() -> set[tuple[str, str]]:
    return {
        (method, unnamed(route.path))
        for route in create_app(ProxySettings()).routes
        for method in route.methods or ()
        if method != "HEAD" and not (len(route.path) > 1 and route.path.endswith("/"))
    }


def test_every_route_is_documented_and_every_documented_route_exists() -> None:
    assert routed() | FAST_PATH == documented()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_operation_has_a_name_a_tag_and_a_summary(name: str) -> None:
    operations = [operation for path in DOCUMENTS[name]["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    tags = {tag["name"] for tag in DOCUMENTS[name]["tags"]}
    assert all(operation["summary"] and set(operation["tags"]) <= tags for operation in operations)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_parameter_is_declared(name: str) -> None:
    for path, operations in DOCUMENTS[name]["paths"].items():
        for operation in operations.values():
            declared = {
                parameter["$ref"].rpartition("/")[2]
                for parameter in operation.get("parameters", ())
                if "$ref" in parameter
            }
            assert set(re.findall(r"{(\w+)}", path)) <= declared, path


@pytest.mark.parametrize("name", DOCUMENTS)
def test_all_references_in_a_document_have_a_target(name: str) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    used = set(references(DOCUMENTS[name]))
    there = {
        f"#/components/{kind}/{entry}" for kind, entries in DOCUMENTS[name]["components"].items() for entry in entries
    }
    assert used <= there
    assert {entry for entry in there - used if "/responses/" not in entry} == set()


@pytest.fixture(scope="module")
def live(headgate_broker: HeadgateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a proxy whose broker has a topic and a group with offsets for that topic."""
    proxy = HeadgateProxy(tmp_path_factory.mktemp("proxy"), headgate_broker.address)
    proxy.start()
    client = httpx.Client(base_url=proxy.url, timeout=30)
    base = f"/v3/clusters/{client.get('/v3/clusters').json()['data'][0]['cluster_id']}"
    client.headers["x-base"] = base
    for body, path in (
        ({"topic_name": TOPIC, "partitions_count": 2}, f"{base}/topics"),
        ({"records": [{"value": "aGVsbG8="}]}, f"/topics/{TOPIC}"),
        ({"to": "earliest", "topics": [{"topic_name": TOPIC}]}, f"{base}/consumer-groups/{GROUP}/offsets:reset"),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code in (200, 201, 400), answer.text
    yield client
    client.close()
    assert proxy.stop() == 0, proxy.process.tail() if proxy.process else ""


@pytest.mark.parametrize(("method", "path"), sorted(FAST_PATH))
def test_routes_of_the_fast_path_respond(live: httpx.Client, method: str, path: str) -> None:
    base = live.headers["x-base"]
    real = path.replace("/v3/clusters/{}", base).replace("topics/{}", f"topics/{TOPIC}").replace("{}", "0")
    answer = live.request(method, real, content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code not in (404, 405, 500), answer.text


def asked(case: Any, live: httpx.Client) -> None:
    """Send a generated request and validate the response. Half of the requests use an existing topic or group."""
    places = case.path_parameters
    if "cluster_id" in places:
        places["cluster_id"] = live.headers["x-base"].rpartition("/")[2]
    for names, real in ((("topic", "topic_name"), TOPIC), (("consumer_group_id", "group"), GROUP)):
        for name in names:
            if name in places and len(str(places[name])) % 2 == 0 and case.method != "DELETE":
                places[name] = real
    query = case.query or {}
    query.pop("follow", None)
    if "timeout" in query:
        query["timeout"] = WAIT_MS_MAX
    if "topics" in query:
        # A group stream ends only when the client disconnects, so use a topic that does not exist.
        query["topics"] = "nowhere"
    case.call_and_validate(base_url=str(live.base_url), excluded_checks=BEYOND_DOCUMENTS, timeout=20)


OPERATIONS: dict[str, Any] = {
    f"{name} {operation.label}": operation
    for name, contents in DOCUMENTS.items()
    for result in schemathesis.openapi.from_dict(contents).get_all_operations()
    if isinstance(result, Ok)
    for operation in [result.ok()]
}
BOUNDS = settings(
    max_examples=rounds(5, 100),
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_every_documented_operation_is_tested() -> None:
    assert len(OPERATIONS) == sum(
        method in METHODS for each in DOCUMENTS.values() for path in each["paths"].values() for method in path
    )


# Do not use schemathesis' parametrization: its tests share one name, and pytest-xdist runs one test per name.
@pytest.mark.parametrize("name", OPERATIONS)
def test_generated_requests_get_documented_responses(name: str, live: httpx.Client) -> None:
    @BOUNDS
    @given(OPERATIONS[name].as_strategy())
    def ask(case: Any) -> None:
        asked(case, live)

    ask()
