"""Runs `headgate schema` in this process."""

import io
import json
import sys
from typing import Any

import pytest

from headgate.gateway.cli.app import run as run_command
from tests.live.registry import RegistryProcess


class Terminal(io.StringIO):
    """Standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.err = ""

    def __call__(
        self, live: RegistryProcess, *arguments: str, code: int = 0, input: str = "", terminal: bool = False
    ) -> str:
        stdin = Terminal(input) if terminal else io.TextIOWrapper(io.BytesIO(input.encode()))
        self._monkeypatch.setattr(sys, "stdin", stdin)
        got = run_command(["schema", *arguments, "--registry", live.url.removeprefix("http://")])
        printed = self._capsys.readouterr()
        self.err = printed.err
        assert got == code, printed
        return printed.out

    def json(self, live: RegistryProcess, *arguments: str, code: int = 0, input: str = "") -> Any:
        return json.loads(self(live, *arguments, "--json", code=code, input=input))
