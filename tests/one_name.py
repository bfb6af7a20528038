"""Rejects imports of our folders by their top-level names.

The repository root is on the path of the tests, so `import registry` would load a second copy of `headgate.registry`.
A string such as monkeypatch.setattr("registry.limits...") would change the copy, and the test would check nothing.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

LINKS = frozenset(path.name for path in (Path(__file__).parents[1] / "headgate").iterdir() if path.is_symlink())


class TopLevelNames(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and fullname in LINKS:
            raise ImportError(f"import headgate.{fullname}: the top-level name loads a second copy", name=fullname)
        return None


def reject_top_level_names() -> None:
    sys.meta_path.insert(0, TopLevelNames())
