"""Runs a jq program on lines of JSON: `python -m headgate.proxy.dead_letters.jq_worker PROGRAM`.

Writes one line per input: `+` and the result, or `-` and the error. A separate process, because a jq program can run
forever or use any amount of memory, and the library cannot interrupt it.
"""

import resource
import sys
from importlib import import_module
from typing import Any

MEMORY_BYTES_MAX = 1024 * 1024 * 1024
OUTPUT_BYTES_MAX = 64 * 1024 * 1024


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    jq: Any = import_module("jq")  # It has no type hints.
    try:
        program = jq.compile(sys.argv[1])
    except ValueError as error:
        return _write(b"-", str(error))
    _write(b"+", "ready")
    for line in sys.stdin.buffer:
        try:
            results = iter(program.input_text(line.decode()).text().splitlines())
            first = next(results, None)
            if first is None:
                _write(b"-", "the program returns no value")
            elif next(results, None) is not None:
                _write(b"-", "the program returns several values")
            elif len(first) > OUTPUT_BYTES_MAX:
                _write(b"-", f"the program returns more than {OUTPUT_BYTES_MAX} bytes")
            else:
                _write(b"+", first)
        except (ValueError, MemoryError) as error:
            _write(b"-", str(error) or type(error).__name__)
    return 0


def _write(sign: bytes, text: str) -> int:
    sys.stdout.buffer.write(sign + text.replace("\n", " ").encode() + b"\n")
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
