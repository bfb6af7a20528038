"""Links object code into this process and calls it. Needs llvmlite, but not Numba."""

import ctypes
from functools import cache
from itertools import count
from typing import Any, Final

import llvmlite.binding
import numpy as np

from headgate.serdes.columnar.native.signatures import INT, SIGNATURES, element_type, is_read_only, symbol

llvm: Any = llvmlite.binding  # has no types
_FUNCTION: Final = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_NUMBERS: Final = count()


class MachineKernel:
    """A kernel as machine code. Releases the GIL during a call."""

    def __init__(self, kernel: str, code: bytes) -> None:
        """Raises `RuntimeError` if the code cannot be linked."""
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(code).add_current_process().export_symbol(symbol(kernel))
        # The linker needs a new name for each library.
        self._library = builder.link(_linker(), f"{symbol(kernel)}_{next(_NUMBERS)}")
        self._function = _FUNCTION(self._library[symbol(kernel)])
        self._kinds = [
            (None, False) if kind == INT else (np.dtype(element_type(kind)), not is_read_only(kind))
            for kind in SIGNATURES[kernel]
        ]

    def __call__(self, *arguments: Any) -> int:
        """Raises `TypeError` for an array of another type: the code would access invalid memory."""
        words: list[int] = []
        for (dtype, is_written), argument in zip(self._kinds, arguments, strict=True):
            if dtype is None:
                words.append(int(argument))
                continue
            flags = argument.flags
            if argument.dtype != dtype or not flags.c_contiguous or (is_written and not flags.writeable):
                raise TypeError(f"a kernel needs a flat array of {dtype}, not {argument.dtype} {flags}")
            words += (argument.__array_interface__["data"][0], len(argument))
        packed = np.array(words, np.int64)
        return int(self._function(packed.__array_interface__["data"][0]))


@cache
def _linker() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    return llvm.create_lljit_compiler(machine)
