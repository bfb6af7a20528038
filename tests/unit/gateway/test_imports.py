import subprocess
import sys

# Modules whose import takes tens of milliseconds or more. Help and shell completion must not import them.
HEAVY = ("aiokafka", "asyncio", "fastapi", "httpx", "kio", "pydantic", "pydantic_settings", "rich", "sqlite_utils")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom headgate.gateway.cli.app import run\n"
        "run(['--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
