"""Encodes columns: runs a program for each row and writes one framed Avro body per row.

A row that cannot be encoded (a null that is not allowed, a value that a reader would reject) gets a reason and no
bytes.
"""

from typing import Final

from headgate.serdes.avro.decoder import DEPTH_MAX, ZERO_SIZE_ITEMS_MAX
from headgate.serdes.columnar.kernels import encode_opcodes as op
from headgate.serdes.columnar.kernels.primitives import (
    DECIMAL_BOUND_BYTES,
    INVALID_VALUE,
    Cells,
    copy_bytes,
    decimal_fits,
    is_utf8,
    is_uuid,
    jitable,
)

FRAME: Final = 3
"""Words of a stack frame: outer idx, end of the items, position of the list opcode."""
FRAMES: Final = DEPTH_MAX + 1
NUMBER_BYTES_MAX: Final = 10
ROW_BYTES: Final = 16
"""The space for any instruction of limited size: a frame, a number, a duration."""

DONE: Final = 0
GROW: Final = 1
REASONS_AT: Final = 9
"""The position of `reasons`, which has one cell for each row, in the arguments."""


@jitable
def put_long(out: Cells, at: int, value: int) -> int:
    # Both parts of the zigzag encoding stay within 63 bits, so that no shift changes the sign.
    sign = 1 if value < 0 else 0
    rest = -(value + 1) if value < 0 else value
    byte = ((rest & 0x3F) << 1) | sign
    rest >>= 6
    while rest > 0:
        out[at] = byte | 0x80
        at += 1
        byte = rest & 0x7F
        rest >>= 7
    out[at] = byte
    return at + 1


@jitable
def hex_value(byte: int) -> int:
    if byte <= 57:
        return byte - 48
    return byte - 87 if byte >= 97 else byte - 55


@jitable
def put_uuid_bytes(out: Cells, at: int, data: Cells, pos: int) -> None:
    for k in range(16):
        if k in (4, 6, 8, 10):
            pos += 1
        out[at + k] = (hex_value(data[pos]) << 4) | hex_value(data[pos + 1])
        pos += 2


@jitable
def decimal_size(data: Cells, at: int, width: int) -> int:
    """The fewest bytes that represent a little-endian number with its sign."""
    size = width
    fill = 0xFF if data[at + width - 1] >= 0x80 else 0
    while size > 1 and data[at + size - 1] == fill and (data[at + size - 2] >= 0x80) == (fill == 0xFF):
        size -= 1
    return size


@jitable
def acceptable(data: Cells, at: int, size: int, check: int, constants: Cells, bounds: int, bound_size: int) -> bool:
    if check == op.IS_UTF8:
        return is_utf8(data, at, at + size)
    if check == op.IS_UUID:
        return is_uuid(data, at, size)
    if check == op.IS_DECIMAL:
        return decimal_fits(data, at, size, constants, bounds, bound_size)
    return True


def encode_rows(
    frame_bytes: Cells,
    program: Cells,
    constants: Cells,
    base: Cells,
    u8: Cells,
    i32: Cells,
    i64: Cells,
    out: Cells,
    out_offsets: Cells,
    reasons: Cells,
    stack: Cells,
    progress: Cells,
) -> int:
    """Encode the rows from `progress[0]`, each after `frame_bytes`. Rows with a reason are skipped.

    Returns DONE, or GROW with the row and the required bytes in `progress`.
    """
    room = len(out)
    for row in range(progress[0], len(reasons)):
        at = out_offsets[row]
        failure = reasons[row]
        idx = row
        depth = 0
        budget = ZERO_SIZE_ITEMS_MAX
        pc = 0
        needed = at + len(frame_bytes)
        if failure == 0:
            if needed > room:
                progress[0] = row
                progress[1] = needed
                return GROW
            copy_bytes(out, at, frame_bytes, 0, len(frame_bytes))
            at = needed
        while failure == 0:
            code = program[pc]
            if at + ROW_BYTES > room:
                progress[0] = row
                progress[1] = at + ROW_BYTES
                return GROW
            if code == op.LONG:
                value = i64[base[program[pc + 1]] + idx]
                if value < program[pc + 2] or value > program[pc + 3]:
                    failure = INVALID_VALUE
                    break
                at = put_long(out, at, value)
                pc += 4
            elif code == op.INT:
                number = i32[base[program[pc + 1]] + idx]
                if number < program[pc + 2] or number > program[pc + 3]:
                    failure = INVALID_VALUE
                    break
                at = put_long(out, at, number)
                pc += 4
            elif code in (op.TEXT, op.WHOLE):
                slot = base[program[pc + 1]] + idx
                start = i32[slot]
                size = i32[slot + 1] - start
                source = base[program[pc + 2]] + start
                needed = at + NUMBER_BYTES_MAX + size
                if needed > room:
                    progress[0] = row
                    progress[1] = needed
                    return GROW
                if not acceptable(u8, source, size, program[pc + 3], constants, program[pc + 4], program[pc + 5]):
                    failure = INVALID_VALUE
                    break
                if code == op.TEXT:
                    at = put_long(out, at, size)
                copy_bytes(out, at, u8, source, size)
                at += size
                pc += 6
            elif code == op.NULLABLE:
                if u8[base[program[pc + 1]] + idx]:
                    at = put_long(out, at, program[pc + 3])
                    pc += 5
                else:
                    at = put_long(out, at, program[pc + 2])
                    pc = program[pc + 4]
            elif code == op.PUT:
                size = program[pc + 2]
                needed = at + size
                if needed > room:
                    progress[0] = row
                    progress[1] = needed
                    return GROW
                copy_bytes(out, at, constants, program[pc + 1], size)
                at += size
                pc += 3
            elif code == op.DOUBLE:
                copy_bytes(out, at, u8, (base[program[pc + 1]] + idx) * 8, 8)
                at += 8
                pc += 2
            elif code == op.FLOAT:
                copy_bytes(out, at, u8, (base[program[pc + 1]] + idx) * 4, 4)
                at += 4
                pc += 2
            elif code == op.BOOLEAN:
                out[at] = u8[base[program[pc + 1]] + idx]
                at += 1
                pc += 2
            elif code == op.ENUM:
                number = i32[base[program[pc + 1]] + idx]
                if number < 0:
                    failure = INVALID_VALUE
                    break
                at = put_long(out, at, number)
                pc += 2
            elif code == op.CHECK:
                if not u8[base[program[pc + 1]] + idx]:
                    failure = INVALID_VALUE
                    break
                pc += 2
            elif code == op.LIST:
                slot = base[program[pc + 1]] + idx
                start = i32[slot]
                count = i32[slot + 1] - start
                budget -= count * program[pc + 2]
                if budget < 0:
                    failure = INVALID_VALUE
                    break
                if count == 0:
                    out[at] = 0
                    at += 1
                    pc = program[pc + 3]
                else:
                    at = put_long(out, at, count)
                    stack[depth * FRAME] = idx
                    stack[depth * FRAME + 1] = start + count
                    stack[depth * FRAME + 2] = pc
                    depth += 1
                    idx = start
                    pc += 4
            elif code == op.NEXT:
                frame = (depth - 1) * FRAME
                idx += 1
                if idx < stack[frame + 1]:
                    pc = stack[frame + 2] + 4
                else:
                    out[at] = 0
                    at += 1
                    pc = program[stack[frame + 2] + 3]
                    idx = stack[frame]
                    depth -= 1
            elif code == op.MEMBERS:
                chosen = -1
                found = 0
                for k in range(program[pc + 1]):
                    if u8[base[program[pc + 4 + 3 * k]] + idx]:
                        chosen = k
                        found += 1
                branch = program[pc + 2] if found == 0 else program[pc + 5 + 3 * chosen]
                if found > 1 or branch < 0:
                    failure = INVALID_VALUE
                    break
                at = put_long(out, at, branch)
                pc = program[pc + 3] if found == 0 else program[pc + 6 + 3 * chosen]
            elif code == op.JUMP:
                pc = program[pc + 1]
            elif code == op.FIXED:
                size = program[pc + 2]
                source = base[program[pc + 1]] + idx * size
                needed = at + size
                if needed > room:
                    progress[0] = row
                    progress[1] = needed
                    return GROW
                if not acceptable(u8, source, size, program[pc + 3], constants, program[pc + 4], program[pc + 5]):
                    failure = INVALID_VALUE
                    break
                copy_bytes(out, at, u8, source, size)
                at += size
                pc += 6
            elif code == op.DECIMAL:
                width = program[pc + 2]
                source = base[program[pc + 1]] + idx * width
                size = program[pc + 3]
                least = decimal_size(u8, source, width)
                needed = at + NUMBER_BYTES_MAX + max(size, width)
                if needed > room:
                    progress[0] = row
                    progress[1] = needed
                    return GROW
                if size < 0:
                    if size == op.SIZED:
                        at = put_long(out, at, least)
                    size = least
                elif least > size:
                    failure = INVALID_VALUE
                    break
                fill = 0xFF if u8[source + width - 1] >= 0x80 else 0
                for k in range(size):
                    out[at + size - 1 - k] = u8[source + k] if k < width else fill
                if not decimal_fits(out, at, size, constants, program[pc + 4], DECIMAL_BOUND_BYTES):
                    failure = INVALID_VALUE
                    break
                at += size
                pc += 5
            elif code == op.UUID_FIXED:
                slot = base[program[pc + 1]] + idx
                source = base[program[pc + 2]] + i32[slot]
                if not is_uuid(u8, source, i32[slot + 1] - i32[slot]):
                    failure = INVALID_VALUE
                    break
                put_uuid_bytes(out, at, u8, source)
                at += 16
                pc += 3
            elif code == op.DURATION:
                for k in range(3):
                    copy_bytes(out, at + 4 * k, u8, (base[program[pc + 1 + k]] + idx) * 4, 4)
                at += 12
                pc += 4
            elif code == op.END:
                break
            else:
                failure = program[pc + 1]
        reasons[row] = failure
        out_offsets[row + 1] = at if failure == 0 else out_offsets[row]
    progress[0] = len(reasons)
    return DONE
