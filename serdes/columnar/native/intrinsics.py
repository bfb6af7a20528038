"""Memory access in compiled code: arrays without index checks, and eight bytes at a time at any address.

Numba supports negative indexes and therefore checks each index. The kernels never use them (tests run them on arrays
that reject negative indexes), so `CellsType` omits the check. This saves 20 % of the decoding time.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils


def intrinsic(function: Callable[..., Any]) -> Any:
    """Numba's decorator with the correct type: the result has another signature."""
    return extending.intrinsic(function)


def lowering(operation: Any, *kinds: Any) -> Callable[[Callable[..., Any]], Any]:
    """Define how compiled code executes an operation on values of these types."""
    register: Any = extending.lower_builtin
    decorator: Callable[[Callable[..., Any]], Any] = register(operation, *kinds)
    return decorator


class CellsType(types.Array):
    """A flat array of numbers."""

    def __init__(self, kind: Any, *, readonly: bool = False) -> None:
        name = f"cells({kind}, {'in' if readonly else 'out'})"
        super().__init__(kind, 1, "C", readonly=readonly, name=name)


extending.register_model(CellsType)(extending.models.ArrayModel)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [context.cast(builder, index, index_type, types.intp)])


@lowering(operator.getitem, CellsType, types.Integer)
def _get(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array_type, index_type = signature.args
    return builder.load(_cell(context, builder, array_type, arguments[0], index_type, arguments[1]))


@lowering(operator.setitem, CellsType, types.Integer, types.Any)
def _set(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array_type, index_type, value_type = signature.args
    value = context.cast(builder, arguments[2], value_type, array_type.dtype)
    builder.store(value, _cell(context, builder, array_type, arguments[0], index_type, arguments[1]))
    return context.get_dummy_value()


def _eight(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """A pointer to eight bytes in a byte array."""
    llvm: Any = ir
    place = _cell(context, builder, array_type, array, types.intp, index)
    return builder.bitcast(place, llvm.IntType(64).as_pointer())


@intrinsic
def load_eight(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_eight(context, builder, signature.args[0], *arguments))
        word.align = 1
        return word

    return types.uint64(array, types.int64), generate


@intrinsic
def store_eight(typing_context: Any, array: Any, index: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store = builder.store(arguments[2], _eight(context, builder, signature.args[0], *arguments[:2]))
        store.align = 1
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), generate


@intrinsic
def copy_block(typing_context: Any, target: Any, at: Any, source: Any, pos: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        into = _cell(context, builder, signature.args[0], arguments[0], types.intp, arguments[1])
        out_of = _cell(context, builder, signature.args[2], arguments[2], types.intp, arguments[3])
        raw_memcpy: Any = cgutils.raw_memcpy
        raw_memcpy(builder, into, out_of, arguments[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def low_zeros(typing_context: Any, word: Any) -> Any:
    """The number of trailing zero bits of a word that is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.int64(types.uint64), generate


@intrinsic
def as_big_endian(typing_context: Any, word: Any) -> Any:
    """The bytes in reverse order, as a signed number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.int64(types.uint64), generate
