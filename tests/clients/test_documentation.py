"""Runs every code block of README and docs, page by page, against one gateway. Pages must not affect each other."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.clients.cli.conftest import HEADGATE
from tests.clients.cli.up import ports, up
from tests.documentation import NOT_RUN, OTHER_PAGES, RUNNABLE, pages, run_page
from tests.live.installation import ROOT
from tests.live.registry import running_registry

PAGES = [page for page in pages() if page not in OTHER_PAGES]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    configs = ("--set", "group.initial.rebalance.delay.ms=0")
    with up(tmp_path_factory.mktemp("gateway"), *ports(), *configs) as (_, addresses):
        yield addresses


def contents(gateway: dict[str, str]) -> dict[str, object]:
    """Every topic with its end offsets, and every subject with its versions."""
    listed = subprocess.run(
        [*HEADGATE, "topic", "list", "--json", "-b", gateway["broker"]], capture_output=True, check=True
    )
    topics = {row["name"]: row for row in json.loads(listed.stdout)}
    registry = f"http://{gateway['registry']}"
    subjects = httpx.get(f"{registry}/subjects").json()
    return topics | {name: httpx.get(f"{registry}/subjects/{name}/versions").json() for name in subjects}


@pytest.mark.usefixtures("curl")
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_and_leave_other_pages_alone(
    gateway: dict[str, str], tmp_path: Path, page: str
) -> None:
    before = contents(gateway)
    fixtures = SimpleNamespace(
        bootstrap_servers=gateway["broker"],
        registry_url=f"http://{gateway['registry']}",
        proxy_url=f"http://{gateway['proxy']}",
    )
    names: dict[str, Any] = {
        "__name__": "examples",
        "headgate": fixtures,
        "kafka_topic": f"test-{Path(page).stem}",
        "tmp_path": tmp_path,
    }
    try:
        # tests/spark/test_guide.py runs the Spark block of the README.
        languages = ("console", "sh") if page == "README.md" else RUNNABLE
        run_page(ROOT / page, tmp_path, gateway, names, languages=languages)
    finally:
        if "client" in names:
            names["client"].close()
    after = contents(gateway)
    assert {name: after.get(name) for name in before} == before


def test_every_page_is_run_somewhere_and_every_omitted_block_has_a_reason() -> None:
    assert {"README.md", "docs/registry.md", "docs/serdes.md"} <= set(PAGES)
    assert set(OTHER_PAGES) <= set(pages())
    for page in (ROOT / "docs").rglob("*.md"):
        for reason in re.findall(rf"^{re.escape(NOT_RUN)}(.*)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert len(reason) > 10, page


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 5
    missing = [link for link in links if not link.startswith("http") and not (ROOT / link).exists()]
    assert missing == []


def test_the_example_of_dead_letters_runs(gateway: dict[str, str]) -> None:
    script = ROOT / "examples" / "poison_and_dead_letters.py"
    command = [sys.executable, str(script), f"http://{gateway['registry']}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    for line in (
        "0: {'sensor': 'roof', 'celsius': 21.5}",
        "2: UNKNOWN_SCHEMA",
        "3: BAD_MAGIC",
        "5: NULL",
        "4 goes back",
    ):
        assert line in done.stdout, done.stdout


def test_the_migration_from_another_registry_keeps_ids_and_versions(gateway: dict[str, str], tmp_path: Path) -> None:
    names: dict[str, Any] = {"__name__": "examples"}
    run_page(ROOT / "docs" / "from-confluent.md", tmp_path, gateway, names)
    schema = {"schema": '{"type": "record", "name": "Moved", "fields": []}'}
    with running_registry(tmp_path / "old") as old, running_registry(tmp_path / "new") as new:
        for subject in ("other-value", "moved-value"):
            body = schema if subject == "moved-value" else {"schema": '"string"'}
            httpx.post(f"{old.url}/subjects/{subject}/versions", json=body).raise_for_status()
        assert names["copy_schemas"](old.url, new.url) == 2
        path = "/subjects/moved-value/versions/1"
        assert httpx.get(new.url + path).json()["id"] == httpx.get(old.url + path).json()["id"] == 2
