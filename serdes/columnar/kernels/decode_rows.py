"""Decodes a batch of Avro bodies: runs a program for each row and writes columns into one arena.

Undoing a row costs nothing, because a row is visible only through the offsets after it. The next free cell of a column
is the row number, and the next free byte of a text buffer is the last offset. The kernel also stops at a row for which
a buffer is too small. The caller then enlarges the buffer and continues at that row.

The code gives the same results with Python integers and 64-bit integers, so that Numba can compile it. It trusts the
program. It checks every byte of the data.
"""

from typing import Final

from headgate.serdes.avro.column_size import UUID_CHARS
from headgate.serdes.avro.decoder import DEPTH_MAX, ZERO_SIZE_ITEMS_MAX
from headgate.serdes.avro.defaults import DEFAULT_DEPTH_MAX
from headgate.serdes.columnar.kernels import decode_opcodes as op
from headgate.serdes.columnar.kernels.primitives import (
    CORRUPT,
    DECIMAL_BOUND_BYTES,
    INVALID_VALUE,
    LOW_63,
    TOO_DEEP,
    TOO_LARGE,
    TRAILING_BYTES,
    TRUNCATED,
    Cells,
    Floats,
    append_bytes,
    append_text,
    copy_bytes,
    decimal_fits,
    is_utf8,
    is_uuid,
    jitable,
    put_decimal,
    put_uuid,
    read_int,
    read_length,
    read_long,
    small_signed,
    to_float,
)

FRAME: Final = 5
"""Words of a stack frame. List: outer idx, remaining items of the block, end of the block or NO_END, position of the
list opcode, scope or SKIPPED. Call: return address and outer level."""
FRAMES: Final = DEPTH_MAX + DEFAULT_DEPTH_MAX + 2
"""Each frame is a level of the payload, which the program limits, or of a default, which resolution limits."""
SKIPPED: Final = -1
NO_END: Final = -1

DONE: Final = 0
GROW_SCOPE: Final = 101
GROW_BYTES: Final = 102
FULL: Final = 103
"""The other results. They differ from all reasons, because the loop over one row ends with either."""

SLOTS_AT: Final = 4
"""The position of `slots`, which has one cell for each row, in the arguments."""

ROW_BYTES: Final = 0
ROW_BYTES_MAX: Final = 1
BATCH_BYTES_MAX: Final = 2
"""Positions in `limits`: the size of a row without lists and text, and the largest row and batch, as columns."""


@jitable
def write_nulls(program: Cells, table: int, base: Cells, u8: Cells, i32: Cells, i64: Cells, idx: int) -> None:
    at = table + 1
    for _ in range(program[table]):
        kind = program[at]
        slot = base[program[at + 1]]
        if kind == op.NULL_1:
            u8[slot + idx] = 0
        elif kind == op.NULL_OFFSET:
            i32[slot + idx + 1] = i32[slot + idx]
        elif kind == op.NULL_8:
            i64[slot + idx] = 0
        elif kind == op.NULL_4:
            i32[slot + idx] = 0
        else:
            width = program[at + 2]
            for k in range(slot + idx * width, slot + idx * width + width):
                u8[k] = 0
        at += 3


@jitable
def read_block(data: Cells, pos: int, end: int, zero_size: int, budget: int) -> tuple[int, int, int]:
    """The number of items in the next block of a list, the position of the items, and the end of the block if encoded.

    The remaining budget of the row limits items of zero bytes. The remaining bytes limit all other items.
    """
    block_end = NO_END
    count, pos = read_long(data, pos, end)
    if pos < 0:
        return 0, pos, block_end
    if count < 0:
        # After a negative count follows the byte size of the block, which readers can use to skip it.
        size, pos = read_long(data, pos, end)
        if pos < 0:
            return 0, pos, block_end
        if size < 0:
            return 0, -CORRUPT, block_end
        if size > end - pos:
            return 0, -TRUNCATED, block_end
        block_end = pos + size
        count = -max(count, -LOW_63)
    if zero_size:
        if count > budget:
            return 0, -INVALID_VALUE, block_end
    elif count > end - pos:
        return 0, -TRUNCATED, block_end
    return count, pos, block_end


def decode_rows(
    data: Cells,
    starts: Cells,
    ends: Cells,
    skip: int,
    slots: Cells,
    entries: Cells,
    program: Cells,
    constants: Cells,
    base: Cells,
    scope_room: Cells,
    byte_room: Cells,
    u8: Cells,
    i32: Cells,
    i64: Cells,
    f32: Floats,
    f64: Floats,
    limits: Cells,
    reasons: Cells,
    stack: Cells,
    progress: Cells,
) -> int:
    """Decode the rows from `progress[0]`. Each body starts `skip` bytes after the row's start.

    `slots` maps rows to `entries`, and `entries` contains program positions. Both may contain minus a reason.

    Returns DONE; FULL if the next row would exceed the limit of the batch; or GROW_… if a buffer is too small.
    `progress` then contains the next row, the scope or buffer that is too small, its required size, and the bytes of
    all rows before.
    """
    root_nulls = program[0]
    row_max = limits[ROW_BYTES_MAX]
    total = progress[3]
    rows = len(slots)
    for row in range(progress[0], rows):
        pc = slots[row]
        if pc >= 0:
            pc = entries[pc]
        pos = starts[row] + skip
        end = ends[row]
        idx = row
        depth = 0
        failure = 0
        level = 0
        whole = False
        budget = ZERO_SIZE_ITEMS_MAX
        missing = 0
        needed = 0
        out = limits[ROW_BYTES]
        if pc < 0:
            failure = -pc
        elif out > row_max:
            failure = TOO_LARGE
        while failure == 0:
            code = program[pc]
            if code == op.LONG:
                value, pos = read_long(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                i64[base[program[pc + 1]] + idx] = value
                pc += 2
            elif code == op.INT:
                value, pos = read_int(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                i32[base[program[pc + 1]] + idx] = value
                pc += 2
            elif code == op.STRING:
                size, pos = read_length(data, pos, end, whole)
                if pos < 0:
                    failure = -pos
                    break
                slot = base[program[pc + 1]] + idx
                buffer = program[pc + 2]
                at = i32[slot]
                room = byte_room[buffer]
                if at + size > room:
                    failure = GROW_BYTES
                    missing = buffer
                    needed = at + size
                    break
                bytes_at = base[buffer]
                if not append_text(u8, bytes_at + at, bytes_at + room, data, pos, size):
                    failure = CORRUPT
                    break
                i32[slot + 1] = at + size
                out += size
                if out > row_max:
                    failure = TOO_LARGE
                    break
                pos += size
                pc += 3
            elif code == op.NULLABLE:
                branch, pos = read_long(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                if branch == program[pc + 1]:
                    write_nulls(program, program[pc + 3], base, u8, i32, i64, idx)
                    pc = program[pc + 4]
                elif branch == 1 - program[pc + 1]:
                    u8[base[program[pc + 2]] + idx] = 1
                    pc += 5
                else:
                    failure = CORRUPT
                    break
            elif code == op.DOUBLE:
                if end - pos < 8:
                    failure = TRUNCATED
                    break
                copy_bytes(u8, (base[program[pc + 1]] + idx) * 8, data, pos, 8)
                pos += 8
                pc += 2
            elif code == op.BOOLEAN:
                if pos >= end:
                    failure = TRUNCATED
                    break
                value = data[pos] & 0xFF
                if value > 1:
                    failure = CORRUPT
                    break
                u8[base[program[pc + 1]] + idx] = value
                pos += 1
                pc += 2
            elif code == op.ENUM:
                value, pos = read_long(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                symbols = program[pc + 3]
                if value < 0 or value >= symbols:
                    failure = CORRUPT
                    break
                symbol = program[pc + 4 + 2 * value]
                size = program[pc + 5 + 2 * value]
                if symbol < 0:
                    failure = -symbol
                    break
                slot = base[program[pc + 1]] + idx
                buffer = program[pc + 2]
                at = i32[slot]
                room = byte_room[buffer]
                if at + size > room:
                    failure = GROW_BYTES
                    missing = buffer
                    needed = at + size
                    break
                bytes_at = base[buffer]
                append_bytes(u8, bytes_at + at, bytes_at + room, constants, symbol, size)
                i32[slot + 1] = at + size
                out += size
                if out > row_max:
                    failure = TOO_LARGE
                    break
                pc += 4 + 2 * symbols
            elif code == op.LONG_IN:
                if program[pc + 4]:
                    value, pos = read_int(data, pos, end)
                else:
                    value, pos = read_long(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                if value < program[pc + 2] or value >= program[pc + 3]:
                    failure = INVALID_VALUE
                    break
                i64[base[program[pc + 1]] + idx] = value
                pc += 5
            elif code == op.SKIP_LONG:
                for _ in range(program[pc + 1]):
                    value, pos = read_long(data, pos, end)
                    if pos < 0:
                        break
                if pos < 0:
                    failure = -pos
                    break
                pc += 2
            elif code == op.SKIP_INT:
                for _ in range(program[pc + 1]):
                    value, pos = read_int(data, pos, end)
                    if pos < 0:
                        break
                if pos < 0:
                    failure = -pos
                    break
                pc += 2
            elif code == op.SKIP_BYTES:
                for _ in range(program[pc + 1]):
                    size, pos = read_length(data, pos, end, whole)
                    if pos < 0:
                        break
                    pos += size
                if pos < 0:
                    failure = -pos
                    break
                pc += 2
            elif code == op.SKIP_FIXED:
                size = program[pc + 1]
                if end - pos < size:
                    failure = TRUNCATED
                    break
                pos += size
                pc += 2
            elif code == op.SKIP_BOOLEAN:
                if pos >= end:
                    failure = TRUNCATED
                    break
                if data[pos] > 1:
                    failure = CORRUPT
                    break
                pos += 1
                pc += 1
            elif code == op.SKIP_ENUM:
                value, pos = read_long(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                if value < 0 or value >= program[pc + 1]:
                    failure = CORRUPT
                    break
                pc += 2
            elif code == op.END:
                if pos != end:
                    failure = TRAILING_BYTES
                break
            elif code in (op.LIST, op.SKIP_LIST):
                # The operands of SKIP_LIST are the last two of LIST.
                frame = depth * FRAME
                stack[frame] = idx
                stack[frame + 3] = pc
                scope = SKIPPED
                item_bytes = 0
                if code == op.LIST:
                    scope = program[pc + 2]
                    idx = i32[base[program[pc + 1]] + idx]
                    item_bytes = program[pc + 3]
                    pc += 3
                stack[frame + 4] = scope
                zero_size = program[pc + 1]
                count, pos, block_end = read_block(data, pos, end, zero_size, budget)
                if pos < 0:
                    failure = -pos
                    break
                if count == 0:
                    pc = program[pc + 2]
                    if scope != SKIPPED:
                        slot = base[program[stack[frame + 3] + 1]] + stack[frame]
                        i32[slot + 1] = idx
                        idx = stack[frame]
                else:
                    out += count * item_bytes
                    if out > row_max:
                        failure = TOO_LARGE
                        break
                    if scope != SKIPPED and idx + count > scope_room[scope]:
                        failure = GROW_SCOPE
                        missing = scope
                        needed = idx + count
                        break
                    budget -= count * zero_size
                    stack[frame + 1] = count
                    stack[frame + 2] = block_end
                    depth += 1
                    pc += 3
            elif code == op.NEXT:
                frame = (depth - 1) * FRAME
                scope = stack[frame + 4]
                opening = stack[frame + 3]
                operands = opening
                item_bytes = 0
                if scope != SKIPPED:
                    idx += 1
                    item_bytes = program[opening + 3]
                    operands += 3
                left = stack[frame + 1] - 1
                if left == 0:
                    block_end = stack[frame + 2]
                    if block_end not in (NO_END, pos):
                        failure = CORRUPT
                        break
                    zero_size = program[operands + 1]
                    left, pos, block_end = read_block(data, pos, end, zero_size, budget)
                    if pos < 0:
                        failure = -pos
                        break
                    out += left * item_bytes
                    if out > row_max:
                        failure = TOO_LARGE
                        break
                    if scope != SKIPPED and idx + left > scope_room[scope]:
                        failure = GROW_SCOPE
                        missing = scope
                        needed = idx + left
                        break
                    budget -= left * zero_size
                    stack[frame + 2] = block_end
                stack[frame + 1] = left
                if left > 0:
                    pc = operands + 3
                else:
                    depth -= 1
                    pc = program[operands + 2]
                    if scope != SKIPPED:
                        slot = base[program[opening + 1]] + stack[frame]
                        i32[slot + 1] = idx
                        idx = stack[frame]
            elif code == op.UNION:
                branch, pos = read_long(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                if branch < 0 or branch >= program[pc + 1]:
                    failure = CORRUPT
                    break
                pc = program[pc + 2 + branch]
            elif code == op.VALID:
                u8[base[program[pc + 1]] + idx] = 1
                pc += 2
            elif code == op.NULLS:
                write_nulls(program, program[pc + 1], base, u8, i32, i64, idx)
                pc += 2
            elif code == op.JUMP:
                pc = program[pc + 1]
            elif code == op.WHOLE:
                whole = True
                pc += 1
            elif code == op.FLOAT:
                if end - pos < 4:
                    failure = TRUNCATED
                    break
                copy_bytes(u8, (base[program[pc + 1]] + idx) * 4, data, pos, 4)
                pos += 4
                pc += 2
            elif code in (op.BYTES, op.UUID_STRING, op.DECIMAL_BYTES):
                size, pos = read_length(data, pos, end, whole)
                if pos < 0:
                    failure = -pos
                    break
                if code == op.DECIMAL_BYTES and not decimal_fits(
                    data, pos, size, constants, program[pc + 3], program[pc + 4]
                ):
                    failure = INVALID_VALUE
                    break
                if code == op.UUID_STRING and not is_uuid(data, pos, size):
                    failure = INVALID_VALUE if is_utf8(data, pos, pos + size) else CORRUPT
                    break
                slot = base[program[pc + 1]] + idx
                buffer = program[pc + 2]
                at = i32[slot]
                room = byte_room[buffer]
                if at + size > room:
                    failure = GROW_BYTES
                    missing = buffer
                    needed = at + size
                    break
                bytes_at = base[buffer]
                append_bytes(u8, bytes_at + at, bytes_at + room, data, pos, size)
                i32[slot + 1] = at + size
                out += size
                if out > row_max:
                    failure = TOO_LARGE
                    break
                pos += size
                pc += 5 if code == op.DECIMAL_BYTES else 3
            elif code == op.FIXED:
                size = program[pc + 2]
                if end - pos < size:
                    failure = TRUNCATED
                    break
                copy_bytes(u8, base[program[pc + 1]] + idx * size, data, pos, size)
                pos += size
                pc += 3
            elif code == op.DECIMAL:
                width = program[pc + 2]
                size = program[pc + 3]
                if size < 0:
                    size, pos = read_length(data, pos, end, whole)
                    if pos < 0:
                        failure = -pos
                        break
                elif end - pos < size:
                    failure = TRUNCATED
                    break
                at = base[program[pc + 1]] + idx * width
                limit = program[pc + 5]
                if size > 0 and size <= 8 and width == 16:
                    value = small_signed(data, pos, size)
                    if limit != 0 and (value >= limit or value <= -limit):
                        failure = INVALID_VALUE
                        break
                    i64[at >> 3] = value
                    i64[(at >> 3) + 1] = -1 if value < 0 else 0
                else:
                    if not decimal_fits(data, pos, size, constants, program[pc + 4], DECIMAL_BOUND_BYTES):
                        failure = INVALID_VALUE
                        break
                    put_decimal(u8, at, width, data, pos, size)
                pos += size
                pc += 6
            elif code == op.DECIMAL_FIXED:
                size = program[pc + 2]
                if end - pos < size:
                    failure = TRUNCATED
                    break
                if not decimal_fits(data, pos, size, constants, program[pc + 3], program[pc + 4]):
                    failure = INVALID_VALUE
                    break
                copy_bytes(u8, base[program[pc + 1]] + idx * size, data, pos, size)
                pos += size
                pc += 5
            elif code == op.INT_IN:
                value, pos = read_int(data, pos, end)
                if pos < 0:
                    failure = -pos
                    break
                if value < program[pc + 2] or value >= program[pc + 3]:
                    failure = INVALID_VALUE
                    break
                i32[base[program[pc + 1]] + idx] = value
                pc += 4
            elif code == op.PROMOTE:
                slot = base[program[pc + 1]] + idx
                target = program[pc + 3]
                if program[pc + 2] == op.FROM_FLOAT:
                    if end - pos < 4:
                        failure = TRUNCATED
                        break
                    copy_bytes(u8, slot * 8, data, pos, 4)
                    f64[slot] = f32[slot * 2]
                    pos += 4
                else:
                    if program[pc + 2] == op.FROM_INT:
                        value, pos = read_int(data, pos, end)
                    else:
                        value, pos = read_long(data, pos, end)
                    if pos < 0:
                        failure = -pos
                        break
                    if target == op.TO_LONG:
                        i64[slot] = value
                    elif target == op.TO_FLOAT:
                        f32[slot] = to_float(value)
                    elif target == op.TO_DOUBLE:
                        f64[slot] = float(value)
                    else:
                        f64[slot] = to_float(value)
                pc += 4
            elif code == op.UUID_FIXED:
                if end - pos < 16:
                    failure = TRUNCATED
                    break
                slot = base[program[pc + 1]] + idx
                buffer = program[pc + 2]
                at = i32[slot]
                if at + UUID_CHARS > byte_room[buffer]:
                    failure = GROW_BYTES
                    missing = buffer
                    needed = at + UUID_CHARS
                    break
                put_uuid(u8, base[buffer] + at, data, pos)
                i32[slot + 1] = at + UUID_CHARS
                out += UUID_CHARS
                if out > row_max:
                    failure = TOO_LARGE
                    break
                pos += 16
                pc += 3
            elif code == op.DURATION:
                if end - pos < 12:
                    failure = TRUNCATED
                    break
                for k in range(3):
                    copy_bytes(u8, (base[program[pc + 1 + k]] + idx) * 4, data, pos + 4 * k, 4)
                pos += 12
                pc += 4
            elif code == op.SET_1:
                u8[base[program[pc + 1]] + idx] = program[pc + 2]
                pc += 3
            elif code == op.SET_4:
                i32[base[program[pc + 1]] + idx] = program[pc + 2]
                pc += 3
            elif code == op.SET_8:
                i64[base[program[pc + 1]] + idx] = program[pc + 2]
                pc += 3
            elif code == op.SET_FIXED:
                size = program[pc + 2]
                copy_bytes(u8, base[program[pc + 1]] + idx * size, constants, program[pc + 3], size)
                pc += 4
            elif code == op.SET_BYTES:
                slot = base[program[pc + 1]] + idx
                buffer = program[pc + 2]
                size = program[pc + 4]
                at = i32[slot]
                room = byte_room[buffer]
                if at + size > room:
                    failure = GROW_BYTES
                    missing = buffer
                    needed = at + size
                    break
                bytes_at = base[buffer]
                append_bytes(u8, bytes_at + at, bytes_at + room, constants, program[pc + 3], size)
                i32[slot + 1] = at + size
                out += size
                if out > row_max:
                    failure = TOO_LARGE
                    break
                pc += 5
            elif code == op.OPEN_LIST:
                buffer = program[pc + 1]
                first = i32[base[buffer] + idx]
                count = program[pc + 3]
                out += program[pc + 4]
                if out > row_max:
                    failure = TOO_LARGE
                    break
                if first + count > scope_room[program[pc + 2]]:
                    failure = GROW_SCOPE
                    missing = program[pc + 2]
                    needed = first + count
                    break
                i32[base[buffer] + idx + 1] = first + count
                stack[depth * FRAME] = idx
                depth += 1
                idx = first
                pc += 5
            elif code == op.NEXT_ITEM:
                idx += 1
                pc += 1
            elif code == op.CLOSE_LIST:
                depth -= 1
                idx = stack[depth * FRAME]
                pc += 1
            elif code == op.CALL:
                stack[depth * FRAME] = pc + 3
                stack[depth * FRAME + 1] = level
                depth += 1
                level += program[pc + 2]
                pc = program[pc + 1]
            elif code == op.RETURN:
                depth -= 1
                pc = stack[depth * FRAME]
                level = stack[depth * FRAME + 1]
            elif code == op.ENTER:
                if level + program[pc + 1] > DEPTH_MAX:
                    failure = TOO_DEEP
                    break
                pc += 2
            else:
                # FAIL. An unknown opcode would also end here, without a valid reason.
                failure = program[pc + 1]
        if failure != 0 and failure < GROW_SCOPE:
            out = limits[ROW_BYTES]
        if total + out > limits[BATCH_BYTES_MAX] and row > 0:
            failure = FULL
        if failure >= GROW_SCOPE:
            progress[0] = row
            progress[1] = missing
            progress[2] = needed
            progress[3] = total
            return failure
        total += out
        reasons[row] = failure
        if failure != 0:
            write_nulls(program, root_nulls, base, u8, i32, i64, row)
    progress[0] = rows
    progress[3] = total
    return DONE
