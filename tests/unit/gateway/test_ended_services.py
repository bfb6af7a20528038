"""How `headgate up` explains a service that ended."""

import sys

import pytest

from headgate.gateway.cli.start_errors import explained
from headgate.gateway.settings.model import load_settings
from headgate.gateway.supervisor import Service, ServiceDied

PROXY = Service("proxy", (sys.executable,), 1.0)


def test_the_error_contains_the_signal_the_last_lines_and_advice() -> None:
    error = explained(ServiceDied(PROXY, -9, ["one", "two"]), load_settings({}))
    assert error.what == "the proxy ended with exit code -9 (signal SIGKILL)"
    assert "one" in error.why
    assert "two" in error.why
    assert "dmesg" in error.next_step
    assert error.next_step.endswith("headgate up --only broker --only registry")


@pytest.mark.parametrize(("exit_code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-250, "exit code -250")])
def test_the_error_has_the_exit_code(exit_code: int, text: str) -> None:
    error = explained(ServiceDied(PROXY, exit_code, []), load_settings({"only": ["proxy"]}))
    assert error.what == f"the proxy ended with {text}"
    assert error.why == "it logged nothing"
    assert "dmesg" not in error.next_step
    assert "--only" not in error.next_step
