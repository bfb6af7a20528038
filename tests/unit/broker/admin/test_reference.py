"""The generated reference pages in docs/."""

import pytest

from headgate.broker.dispatch.handler_table import HANDLERS
from tests.reference.broker_pages import deviations_page
from tests.reference.clients import CLIENTS, NEWEST_SENT
from tests.reference.handlers import Deviation, ServedApi, deviations_in, served_apis


def test_page_lists_every_supported_api() -> None:
    assert {api.key: api.versions for api in served_apis()} == {
        key: handler.versions for key, handler in HANDLERS.items()
    }


def test_broker_supports_the_versions_that_clients_send_to_kafka() -> None:
    served = {api.key: api.versions for api in served_apis()}
    for key, versions in NEWEST_SENT.items():
        assert len(versions) == len(CLIENTS)
        for client, version in zip(CLIENTS, versions, strict=True):
            assert version is None or version in served[key], f"{client} sends API {key} version {version}"


def test_deviations_are_parsed_from_docstrings() -> None:
    docstring = """Produce v3-13: Appends.

Deviations:
- An unknown
  codec
  Kafka: UNKNOWN_SERVER_ERROR
  Headgate: INVALID_RECORD
- Two batches
  Kafka: Appends
  one.
  Headgate: Rejects
  both.
"""
    assert deviations_in(docstring) == (
        Deviation("An unknown codec", "UNKNOWN_SERVER_ERROR", "INVALID_RECORD"),
        Deviation("Two batches", "Appends one.", "Rejects both."),
    )


def test_a_docstring_without_deviations_has_none() -> None:
    assert deviations_in("Heartbeat v0-4: Keeps a member alive.") == ()


@pytest.mark.parametrize(
    "listed",
    ["Text without an item.\n", "- An input\n  Headgate: Only one side.\n", "- An input\n  Kafka: Only one side.\n"],
)
def test_an_incomplete_deviation_is_an_error(listed: str) -> None:
    with pytest.raises(ValueError, match="deviation"):
        deviations_in(f"Summary.\n\nDeviations:\n{listed}")


def test_deviations_are_rendered_as_a_table() -> None:
    api = ServedApi(0, "Produce", range(3, 14), "Appends.", (Deviation("a | b", "Kafka's way.", "Another way."),))
    page = deviations_page([api])
    assert "## Produce (0)\n\n| input | Kafka | Headgate |\n|---|---|---|\n" in page
    assert "| a \\| b | Kafka's way. | Another way. |\n" in page
