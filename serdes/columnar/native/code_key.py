"""The key of compiled code. Code with another key does not fit this process: it is ignored and compiled again.

The key covers the sources and constants of the kernels (code with other opcodes would corrupt memory), the versions of
Python and of the compiler, and the platform. The code uses only instructions that every CPU of the platform has.
Instructions of newer CPUs make no measurable difference. Therefore all machines of a cluster can use the same code.
"""

import sys
import sysconfig
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

KERNELS: Final = tuple(
    f"headgate.serdes.columnar.kernels.{name}"
    for name in ("decode_opcodes", "decode_rows", "encode_opcodes", "encode_rows", "frames", "primitives", "records")
)
COMPILER: Final = tuple(
    f"headgate.serdes.columnar.native.{name}" for name in ("compiler", "intrinsics", "signatures", "word_overloads")
)
"""All modules that contribute functions to the compiled code."""

PACKAGES: Final = ("numba", "llvmlite")


@cache
def code_key() -> str:
    digest = sha256()
    for part in (sysconfig.get_platform(), sys.implementation.cache_tag, *map(_version, PACKAGES)):
        digest.update(f"{part}\n".encode())
    for name in (*KERNELS, *COMPILER):
        digest.update(sha256(_source(name)).digest())
    for name in KERNELS:
        digest.update(_constants(name).encode())
    return digest.hexdigest()


def _constants(name: str) -> str:
    """The numbers of a kernel module, which may come from other modules."""
    found = vars(import_module(name)).items()
    return ",".join(sorted(f"{constant}={value:d}" for constant, value in found if isinstance(value, int)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _source(name: str) -> bytes:
    """The bytes of a module file, also in a zip archive. Does not import the module."""
    spec = find_spec(name)
    read = getattr(spec and spec.loader, "get_data", None)
    if spec is None or read is None or spec.origin is None:
        raise ImportError(f"the source of {name} is not available")
    data: bytes = read(spec.origin)
    return data
