"""The PYTHONPATH of child processes: the packages of this checkout, without test-only dependencies."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AS_INSTALLED = Path(__file__).resolve().parent / "as_installed"
PYTHONPATH = os.pathsep.join(filter(None, [str(AS_INSTALLED), str(ROOT), os.environ.get("PYTHONPATH")]))
