import subprocess
import sys

import pytest

from headgate.proxy.services import open_services
from headgate.proxy.settings import ProxySettings, UnknownSetting


@pytest.mark.parametrize("url", ["http://ada:gehe/im@r", "gehe:8081", ""])
def test_the_error_for_an_invalid_registry_url_does_not_contain_it(url: str) -> None:
    with pytest.raises(UnknownSetting, match=r"^schema\.registry\.url: ") as refused:
        open_services(ProxySettings(schema_registry_url=url))
    assert "gehe" not in str(refused.value)


def test_an_invalid_registry_url_in_the_environment_ends_the_process_without_a_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headgate.proxy", "--listen", "127.0.0.1:0"],
        env={"HEADGATE_REGISTRY_URL": "http://ada:gehe/im@r"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("proxy: schema.registry.url: ")
    assert done.stderr.count("\n") == 1
    assert "gehe" not in done.stderr
