"""The pages in docs/ that are written from the code."""

from pathlib import Path

import pytest

from headgate.broker.dispatch.handler_table import HANDLERS
from headgate.broker.reference.clients import CLIENTS, NEWEST_SENT
from headgate.broker.reference.handlers import deviations_in, served_apis
from headgate.broker.reference.pages import pages

DOCS = Path(__file__).resolve().parents[4] / "docs"


@pytest.mark.parametrize("name", sorted(pages()))
def test_a_page_is_what_the_code_says_now(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == pages()[name], "stale: run `python -m headgate.broker.reference`"


def test_every_api_that_is_served_is_on_the_page() -> None:
    assert {api.key: api.versions for api in served_apis()} == {
        key: versions for key, (versions, _) in HANDLERS.items()
    }


def test_every_client_finds_the_version_it_would_send_to_kafka() -> None:
    served = {api.key: api.versions for api in served_apis()}
    for key, versions in NEWEST_SENT.items():
        assert len(versions) == len(CLIENTS)
        for client, version in zip(CLIENTS, versions, strict=True):
            assert version is None or version in served[key], f"{client} sends API {key} version {version}"


@pytest.mark.parametrize(
    ("docstring", "listed"),
    [
        ("What it is.", ""),
        ("What it is.\n\nDeviations:\n- None.", ""),
        ("What it is.\n\nDeviations:\n- one\n  thing\n- Two.", "- One thing\n- Two."),
        ("What it is.\n\nDeviations from Kafka: all in one\nparagraph.", "- All in one paragraph."),
    ],
)
def test_deviations_are_read_from_docstrings(docstring: str, listed: str) -> None:
    assert deviations_in(docstring) == listed
