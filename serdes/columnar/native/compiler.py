"""Compiles the kernels to object code with Numba. `compile_process` runs it in a child process.

The code uses the baseline instructions of the platform and refers only to memcpy and memset, so that each machine of
the platform can run it without Numba. A kernel is a function of one argument: the addresses, lengths and integers of
its arguments, 64 bits each. Only the functions of `word_overloads` differ from the plain kernels.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import llvmlite.binding
import llvmlite.ir
import numba
import numba.core.cgutils
import numba.core.compiler
from numba import extending, types
from numba.core import registry
from numba.core.compiler_lock import global_compiler_lock

from headgate.serdes.columnar.kernels import decode_rows, encode_rows, frames, primitives, records
from headgate.serdes.columnar.native import word_overloads  # noqa: F401  registers overloads
from headgate.serdes.columnar.native.code_key import KERNELS
from headgate.serdes.columnar.native.intrinsics import CellsType
from headgate.serdes.columnar.native.signatures import INT, SIGNATURES, element_type, is_read_only, symbol

# These modules have no types.
ir: Any = llvmlite.ir
llvm: Any = llvmlite.binding
cgutils: Any = numba.core.cgutils
compiler: Any = numba.core.compiler

FUNCTIONS: Final[dict[str, Callable[..., int]]] = {
    "decode_rows": decode_rows.decode_rows,
    "encode_rows": encode_rows.encode_rows,
    "scan_frames": frames.scan_frames,
    "scan_records": records.scan_records,
    "copy_spans": records.copy_spans,
    "find_headers": records.find_headers,
    "make_text": records.make_text,
}

OPTIMIZATION: Final = 2
LONG: Final[Any] = ir.IntType(64)


def _register_marked() -> None:
    for module in map(import_module, KERNELS):
        for function in vars(module).values():
            is_inline = getattr(function, primitives.INLINE_MARK, None)
            if is_inline is not None and function.__module__ == module.__name__:
                extending.register_jitable(forceinline=is_inline)(function)


_register_marked()


def numba_type(kind: str) -> Any:
    if kind == INT:
        return types.int64
    return CellsType(getattr(numba, element_type(kind)), readonly=is_read_only(kind))


def object_code(kernel: str) -> bytes:
    """The compiled kernel. Takes seconds."""
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    # The wrapper is part of the same module, so the module is not complete yet.
    flags.no_compile = True
    target = registry.cpu_target
    target.typing_context.refresh()
    target.target_context.refresh()
    arguments = tuple(map(numba_type, SIGNATURES[kernel]))
    with global_compiler_lock:
        result = compiler.compile_extra(
            target.typing_context, target.target_context, FUNCTIONS[kernel], arguments, types.int64, flags, {}
        )
        library = result.library
        _add_wrapper(library, result.target_context, result.fndesc, arguments, symbol(kernel))
        module = library._final_module
        for used in dict.fromkeys(library._linking_libraries):
            module.link_in(used._get_module_for_linking(), preserve=True)
        for function in module.functions:
            if not function.is_declaration and function.name != symbol(kernel):
                function.linkage = "internal"
        return _optimized(module)


def _add_wrapper(library: Any, context: Any, kernel: Any, arguments: tuple[Any, ...], name: str) -> None:
    """Add a function that unpacks the arguments and calls the kernel. The kernels raise no exceptions."""
    module = library.create_ir_module("wrapper")
    inner = cgutils.get_or_insert_function(
        module, context.call_conv.get_function_type(kernel.restype, kernel.argtypes), kernel.llvm_func_name
    )
    wrapper = ir.Function(module, ir.FunctionType(LONG, [LONG.as_pointer()]), name=name)
    builder = ir.IRBuilder(wrapper.append_basic_block())
    position = 0

    def next_word() -> Any:
        nonlocal position
        word = builder.load(builder.gep(wrapper.args[0], [LONG(position)]))
        position += 1
        return word

    values = [
        next_word() if kind is types.int64 else _array(context, builder, kind, next_word(), next_word())
        for kind in arguments
    ]
    _, result = context.call_conv.call_function(builder, inner, kernel.restype, kernel.argtypes, values)
    builder.ret(result)
    library.add_ir_module(module)


def _array(context: Any, builder: Any, kind: Any, address: Any, length: Any) -> Any:
    array = context.make_array(kind)(context, builder)
    item_bytes = LONG(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    array.data = builder.inttoptr(address, array.data.type)
    array.nitems = length
    array.itemsize = item_bytes
    array.shape = cgutils.pack_array(builder, [length])
    array.strides = cgutils.pack_array(builder, [item_bytes])
    array.meminfo = array.parent = ir.Constant(array.meminfo.type, None)
    return array._getvalue()


def _optimized(module: Any) -> bytes:
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(opt=OPTIMIZATION, reloc="pic", codemodel="small")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=OPTIMIZATION))
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code
