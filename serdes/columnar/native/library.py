"""The machine code of this process: linked from the store, from the query plan, or from a child process that compiles.

Nothing here waits for the compiler, except `wait`.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Condition, Thread
from typing import IO, Final

from headgate.serdes.columnar.native.code_store import read_sealed, unseal
from headgate.serdes.columnar.native.signatures import SIGNATURES

Kernel = Callable[..., int]

CHILD_MODULE: Final = "headgate.serdes.columnar.native.compile_process"
NUMBA_SETTINGS: Final = {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""Compile for the baseline CPU. `compiler` optimizes each kernel once, so Numba need not optimize its parts."""
ERROR_CHARS_MAX: Final = 500

log = logging.getLogger(__name__)


class NotCompiled(RuntimeError):
    """The kernels cannot be compiled. The message contains the reason."""


class CodeLibrary:
    """The linked kernels of a process. Safe to share between threads and across a fork."""

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}
        self._sealed: dict[str, bytes] = {}
        self.reset()

    def reset(self) -> None:
        """Search and compile again: a forked process has the linked code, but not the thread that compiles."""
        self._changed = Condition()
        self._is_paused = False
        self._has_searched = False
        self._thread: Thread | None = None
        self._error = self._link_error = ""

    def get(self, kernel: str) -> Kernel | None:
        """The linked kernel. If it is not available yet, compile it in the background and return None."""
        found = self._kernels.get(kernel)
        if found is None:
            self._request()
            found = self._kernels.get(kernel)
        return found

    def wait(self, kernel: str) -> Kernel:
        """The linked kernel. Waits for the compiler. Raises `NotCompiled`."""
        found = self.get(kernel)
        if found is not None:
            return found
        with self._changed:
            self._changed.wait_for(lambda: kernel in self._kernels or self._error)
            if kernel not in self._kernels:
                raise NotCompiled(self._error)
            return self._kernels[kernel]

    def link(self, kernel: str, sealed: bytes) -> bool:
        """Link a kernel, unless it is linked already. Returns whether it is linked.

        Code that is damaged or does not fit is ignored. Code that cannot be linked must not fail a job, for example
        because the memory of the process is limited.
        """
        if kernel in self._kernels:
            return True
        code = unseal(kernel, sealed) if kernel in SIGNATURES else None
        if code is None:
            return False
        try:
            from headgate.serdes.columnar.native.machine_code import MachineKernel  # needs llvmlite

            linked = MachineKernel(kernel, code)
        except (ImportError, MemoryError, OSError, RuntimeError) as error:
            self._link_error = f"{kernel} cannot be linked: {error}"
            return False
        with self._changed:
            self._kernels[kernel] = linked
            self._sealed[kernel] = sealed
            self._changed.notify_all()
        return True

    def sealed(self, kernels: Iterable[str]) -> tuple[tuple[str, bytes], ...]:
        """The available code of these kernels, for other processes. Missing code is compiled in the background."""
        self._request()
        return tuple((kernel, self._sealed[kernel]) for kernel in kernels if kernel in self._sealed)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Link stored code, but do not compile. For a process that forks, which must not start threads."""
        self._is_paused = True
        try:
            yield
        finally:
            self.reset()

    def _request(self) -> None:
        with self._changed:
            if not self._has_searched:
                self._has_searched = True
                self._link_stored()
            missing = [kernel for kernel in SIGNATURES if kernel not in self._kernels]
            if missing and self._thread is None and not self._is_paused:
                self._thread = Thread(target=self._compile, args=(missing,), daemon=True)
                try:
                    self._thread.start()
                except RuntimeError as error:  # the limit of threads or memory
                    self._fail(error)

    def _link_stored(self) -> None:
        for kernel in SIGNATURES:
            sealed = read_sealed(kernel)
            if sealed is not None:
                self.link(kernel, sealed)

    def _compile(self, kernels: Iterable[str]) -> None:
        try:
            self._run_compiler(kernels)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        log.warning("Avro is decoded by plain Python, which is slow. No compiled code: %s", error)
        with self._changed:
            self._error = str(error) or type(error).__name__
            self._changed.notify_all()

    def _run_compiler(self, kernels: Iterable[str]) -> None:
        command = [sys.executable, "-P", "-W", "ignore", "-m", CHILD_MODULE, *kernels]
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_child_environment(),
            start_new_session=True,
        )
        with child:
            assert child.stdout is not None
            assert child.stderr is not None
            for kernel, sealed in _received(child.stdout):
                self.link(kernel, sealed)
            output = child.stderr.read().decode(errors="replace").split()
        if any(kernel not in self._kernels for kernel in kernels):
            status = f"the compiler ended with status {child.returncode}"
            raise NotCompiled(" ".join(output)[-ERROR_CHARS_MAX:] or self._link_error or status)


def _received(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    while header := stream.readline():
        kernel, size = header.split()
        yield kernel.decode(), stream.read(int(size))


def _child_environment() -> dict[str, str]:
    """The settings of Numba must not affect the code, and the modules must be found as in this process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return inherited | NUMBA_SETTINGS | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


LIBRARY: Final = CodeLibrary()
"""The library of this process."""

os.register_at_fork(after_in_child=LIBRARY.reset)
