"""`python -m benchmarks [--quick] [NAME …]`: every benchmark there is, one after the other, each in its own process."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

# Shared modules, which are not benchmarks.
PARTS = frozenset({
    "__init__", "__main__", "cold_load", "greedy_load", "harness", "http_load", "proxy_load", "raw_load",
    "rdkafka_load", "spark_contenders", "spark_data",
})  # fmt: skip


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in PARTS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="less work and fewer rounds")
    arguments = parser.parse_args()
    chosen = arguments.names or names()
    unknown = sorted(set(chosen) - set(names()))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(names())}")
    failed = []
    for number, name in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {name} …", file=sys.stderr, flush=True)
        started = time.monotonic()
        command = [sys.executable, "-m", f"benchmarks.{name}", *(["--quick"] if arguments.quick else [])]
        if subprocess.run(command, check=False).returncode:
            failed.append(name)
        print(f"[{number}/{len(chosen)}] {name} took {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
