"""docs/proxy.md lists every setting, and its links work."""

import re
from dataclasses import fields

from headgate.proxy.settings import ProxySettings
from tests.live.installation import ROOT

TEXT = (ROOT / "docs" / "proxy.md").read_text(encoding="utf-8")


def test_every_setting_is_listed_with_its_default() -> None:
    rows = re.findall(r"^\| `([a-z.]+)` \| `?([^`|]*?)`? \| (.*) \|$", TEXT, re.MULTILINE)
    listed = {name: default for name, default, _ in rows}
    assert all(meaning for *_, meaning in rows)
    for field in fields(ProxySettings):
        if field.name == "security":  # The properties of Kafka's clients: docs/kafka-security.md.
            continue
        default = "" if field.default in (None, "") else str(field.default)
        if isinstance(field.default, bool):
            default = default.lower()
        assert listed.get(field.name.replace("_", ".")) == default.strip(), field.name


def test_every_link_has_a_target() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (ROOT / "docs" / link).exists(), link
