"""Changes JSON with a jq program, in a child process with limits on time, memory and output.

jq calculates with doubles. Integers that a double cannot represent pass through it as tagged strings, so that the
values which the program does not touch stay exact.
"""

import asyncio
import json
import re
import sys
from decimal import Decimal
from importlib.util import find_spec
from typing import Final, Self
from uuid import uuid4

from headgate.serdes import EncodeError, RedriveRefused
from headgate.serdes.json_text import dumps

PROGRAM_CHARS_MAX: Final = 10_000
SECONDS_MAX: Final = 5.0
"""Time for one letter, and for the start of the process."""
LINE_BYTES_MAX: Final = 256 * 1024 * 1024
"""Larger than every line of the worker, which has its own limit."""
_EXACT_INTEGER_MAX: Final = 2**53
_READS_FILES: Final = re.compile(r"\b(import|include)\s*\"")
_START_SECONDS_MAX: Final = 30.0


class InvalidPatch(ValueError):
    """The jq program cannot be compiled, or jq is not installed."""


class JqPatch:
    """Async context manager. Raises InvalidPatch when it is entered."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._tag = f"integer-{uuid4().hex}:"
        self._tagged = re.compile(f'"{self._tag}(-?[0-9]+)"')

    async def apply(self, text: bytes) -> bytes:
        """The only result of the program. Raises RedriveRefused."""
        line = self._protected(text)
        # A program that exceeded a limit has ended its process.
        process = self._process or await self._start()
        assert process.stdin is not None
        try:
            async with asyncio.timeout(SECONDS_MAX):
                process.stdin.write(line.encode() + b"\n")
                await process.stdin.drain()
                answer = await self._line(process)
        except TimeoutError as error:
            await self._stop()
            raise RedriveRefused(f"the patch did not end within {SECONDS_MAX:.0f} s") from error
        except ConnectionError:
            answer = b""
        if not answer:
            await self._stop()
            raise RedriveRefused("the patch exceeded its memory limit")
        if answer[:1] == b"-":
            raise RedriveRefused(f"the patch failed: {answer[1:301].decode(errors='replace')}")
        return self._tagged.sub(r"\1", answer[1:].decode()).encode()

    def _protected(self, text: bytes) -> str:
        """One line of JSON. Raises RedriveRefused."""

        def integer(digits: str) -> int | str:
            return self._tag + digits if abs(int(digits)) > _EXACT_INTEGER_MAX else int(digits)

        def number(digits: str) -> float:
            found = float(digits)
            if Decimal(repr(found)) != Decimal(digits):
                raise ValueError(f"{digits[:40]} has more digits than jq can calculate with")
            return found

        try:
            return dumps(json.loads(text, parse_int=integer, parse_float=number))
        except (ValueError, RecursionError, EncodeError) as error:
            raise RedriveRefused(f"the value cannot be patched: {str(error)[:200] or type(error).__name__}") from error

    async def _start(self) -> asyncio.subprocess.Process:
        """Raises InvalidPatch."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "headgate.proxy.dead_letters.jq_worker",
            self._program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=LINE_BYTES_MAX,
            env={"PYTHONPATH": ":".join(sys.path)},  # The program can read the environment, so it has no secrets.
        )
        try:
            async with asyncio.timeout(_START_SECONDS_MAX):
                answer = await self._line(self._process)
        except TimeoutError:
            answer = b"-the jq process did not start"
        if answer[:1] != b"+":
            await self._stop()
            raise InvalidPatch(f"the patch is not a jq program: {answer[1:301].decode(errors='replace')}")
        return self._process

    @staticmethod
    async def _line(process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        return (await process.stdout.readline()).rstrip(b"\n")

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def __aenter__(self) -> Self:
        if find_spec("jq") is None:
            raise InvalidPatch("a patch needs the package jq: pip install 'headgate[jq]'")
        if len(self._program) > PROGRAM_CHARS_MAX:
            raise InvalidPatch(f"the patch has more than {PROGRAM_CHARS_MAX} characters")
        if _READS_FILES.search(self._program):
            raise InvalidPatch("the patch must not import files")
        await self._start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stop()
