"""Runs the tables of tests/cases through the HTTP API at all compatibility levels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.registry.model import Level
from headgate.registry.settings import RegistrySettings
from tests.live.registry import RegistryApi

CASES = Path(__file__).parents[2] / "cases"
LANGUAGES = {"AVRO": "avro.json", "JSON": "json_schema.json", "PROTOBUF": "protobuf.json"}
LEVELS = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")


def table(language: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = json.loads((CASES / LANGUAGES[language]).read_text("utf-8"))
    return loaded


class Asked:
    """A registry with the original schema of each case of one language."""

    def __init__(self, api: RegistryApi, language: str) -> None:
        self.api = api
        self.language = language
        self.cases = table(language)
        self.references: dict[int, list[dict[str, Any]]] = {}
        for number, case in enumerate(self.cases):
            body = self._body(case["original"])
            body["references"] = self._registered(case, "original_references")
            self.references[number] = self._registered(case, "update_references")
            answer = api.post(f"/subjects/case-{number}/versions", body)
            assert answer.status_code == 200, f"{case['name']}: {answer.text}"

    def _body(self, schema: Any) -> dict[str, Any]:
        text = schema if self.language == "PROTOBUF" else json.dumps(schema)
        return {"schema": text, "schemaType": self.language}

    def _registered(self, case: dict[str, Any], side: str) -> list[dict[str, Any]]:
        references: list[dict[str, Any]] = []
        for name, schema in {**case.get("references", {}), **case.get(side, {})}.items():
            body = self._body(schema)
            body["references"] = list(references)
            answer = self.api.post(f"/subjects/{name.replace('/', '%2F').replace('#', '%23')}/versions", body)
            assert answer.status_code == 200, f"{case['name']}, {name}: {answer.text}"
            version = answer.json()["version"]
            references.append({"name": name, "subject": name, "version": version})
        return references

    def check(self, number: int, query: str = "?verbose=true", path: str = "/latest") -> dict[str, Any]:
        case = self.cases[number]
        body = {**self._body(case["update"]), "references": self.references[number]}
        answer = self.api.post(f"/compatibility/subjects/case-{number}/versions{path}{query}", body)
        assert answer.status_code == 200, f"{case['name']}: {answer.text}"
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture(scope="module", params=LANGUAGES)
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    api = RegistryApi(tmp_path_factory.mktemp("registry"), RegistrySettings(compatibility_level=Level.NONE))
    yield Asked(api, request.param)
    api.close()


@pytest.mark.parametrize("level", LEVELS)
def test_the_api_returns_the_results_of_the_table(asked: Asked, level: str) -> None:
    asked.api.config(compatibility=level)
    wrong = []
    step = {"BACKWARD": 1, "FORWARD": 1, "FULL": 3}.get(level, 12)
    for number in range(0, len(asked.cases), step):
        case = asked.cases[number]
        expected: list[str] = []
        if level.startswith(("BACKWARD", "FULL")):
            expected += [f"new-reads-old {one}" for one in case["backward"]]
        if level.startswith(("FORWARD", "FULL")):
            expected += [f"old-reads-new {one}" for one in case["forward"]]
        answer = asked.check(number)
        found = [f"{one['direction']} {one['kind']} {one['path']}" for one in answer.get("incompatibilities", ())]
        if sorted(found) != sorted(expected) or answer["is_compatible"] is bool(expected):
            wrong.append((case["name"], sorted(expected), sorted(found)))
    assert wrong == []


def test_registering_agrees_with_checking(asked: Asked) -> None:
    asked.api.config(compatibility="BACKWARD")
    for number in range(3, len(asked.cases), 23):
        case = asked.cases[number]
        compatible = asked.check(number, query="", path="")["is_compatible"]
        body = {**asked._body(case["update"]), "references": asked.references[number]}
        answer = asked.api.post(f"/subjects/case-{number}/versions", body)
        assert answer.status_code == (200 if compatible else 409), case["name"]
