"""The fixtures of `headgate.pytest_plugin` in a pytest run of a user, with two workers."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.live.installation import ROOT

PLUGINS = ("-p", "xdist", "-p", "headgate.pytest_plugin")
USER_TESTS = """
import httpx
import pytest
from headgate.serdes import Reason
from headgate.testing import assert_topic_contains

@pytest.mark.parametrize("number", range(4))
def test_produce(headgate, kafka_topic, number):
    records = {"records": [{"value": "aGk="}] * (number + 1)}
    media = {"Content-Type": "application/vnd.kafka.binary.v2+json"}
    answer = httpx.post(f"{headgate.proxy_url}/topics/{kafka_topic}", json=records, headers=media, timeout=60)
    assert answer.status_code == 200, answer.text
    assert_topic_contains(headgate.bootstrap_servers, kafka_topic, [b"hi"] * (number + 1), timeout_seconds=60)

def test_poison(schema_registry, kafka_topic, poison):
    assert poison(Reason.TRUNCATED).startswith(b"\\0")
    assert poison.good() != poison(Reason.TRAILING_BYTES)
"""


def test_the_fixtures_work_in_parallel(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(USER_TESTS, encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *PLUGINS, "test_user.py"],
        cwd=tmp_path,
        # Without autoload: the plugins of the other test tools are not part of a user's environment.
        env={**clean, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_finds_the_plugin_in_an_installation() -> None:
    (plugin,) = entry_points(group="pytest11", name="headgate")
    assert plugin.value == "headgate.pytest_plugin"


def test_the_plugin_loads_no_library_before_a_fixture_is_used() -> None:
    """pytest loads plugins in every run. Hypothesis, which kio imports, must not load before its own plugin."""
    code = """
import sys, headgate.pytest_plugin
print({"kio", "aiokafka", "hypothesis", "httpx"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
