"""Reads files of a folder: from the working tree, or from a git revision. File contents and names are hostile.

Symbolic links are not followed, so no file outside of the folder is read.
"""

import os
import stat
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Protocol

from headgate.gateway.schemas.manifest import InvalidManifest
from headgate.registry import limits

FILE_BYTES_MAX: Final = 4 * limits.SCHEMA_CHARS_MAX
"""A character of UTF-8 has up to four bytes."""
TOTAL_BYTES_MAX: Final = 64 * 1024 * 1024
"""All files of a folder. Limits memory."""
WALK_ENTRIES_MAX: Final = 100_000
GIT_SECONDS_MAX: Final = 60
MISSING: Final = "does not exist"
_LINK: Final = "is a symbolic link, or in a folder that is one"
_TOO_LARGE: Final = f"is larger than {FILE_BYTES_MAX} bytes"


class Files(Protocol):
    def read(self, paths: Collection[str]) -> dict[str, bytes | str]:
        """The content of each file, or the reason why it cannot be read. Raises InvalidManifest."""
        ...


class FolderFiles:
    """The working tree."""

    def __init__(self, folder: Path) -> None:
        try:
            self._folder = folder.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise InvalidManifest(f"cannot read the folder {folder}: {error}") from None

    def read(self, paths: Collection[str]) -> dict[str, bytes | str]:
        found: dict[str, bytes | str] = {}
        room = TOTAL_BYTES_MAX
        for path in paths:
            content = self._read(path)
            room -= len(content)
            if room < 0:
                raise InvalidManifest(f"the files of the folder have more than {TOTAL_BYTES_MAX} bytes")
            found[path] = content
        return found

    def _read(self, path: str) -> bytes | str:
        target = self._folder / path
        try:
            if target.resolve(strict=True) != target:
                return _LINK
            # A named pipe would block without O_NONBLOCK.
            descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return MISSING
        except (OSError, RuntimeError) as error:
            return f"cannot be read: {error}"
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return "is not a regular file"
            content = file.read(FILE_BYTES_MAX + 1)
        return _TOO_LARGE if len(content) > FILE_BYTES_MAX else content

    def walk(self) -> Iterator[str]:
        """The paths of all files, without those of hidden folders."""
        entries = 0
        for folder, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            entries += len(folders) + len(names)
            if entries > WALK_ENTRIES_MAX:
                raise InvalidManifest(f"the folder has more than {WALK_ENTRIES_MAX} entries")
            for name in names:
                yield Path(folder, name).relative_to(self._folder).as_posix()


class GitFiles:
    """The same folder in a git revision. An empty one if the repository has no commit yet."""

    def __init__(self, folder: Path, revision: str) -> None:
        self._folder = folder
        self._blobs: dict[str, tuple[str, str, int]] = {}
        """Mode, object id and size by path."""
        commit = self._commit(revision)
        if commit is None:
            return
        for line in self._git("ls-tree", "-r", "-l", "-z", commit, "--", ".").split(b"\0"):
            details, tab, path = line.partition(b"\t")
            mode, _, blob, size = [*details.decode().split(), "", "", "", ""][:4]
            if tab and size.isdigit():
                self._blobs[path.decode("utf-8", "surrogateescape")] = (mode, blob, int(size))

    def read(self, paths: Collection[str]) -> dict[str, bytes | str]:
        found: dict[str, bytes | str] = {}
        wanted: dict[str, int] = {}
        for path in paths:
            mode, blob, size = self._blobs.get(path, ("", "", 0))
            if not blob:
                found[path] = MISSING
            elif mode == "120000":
                found[path] = _LINK
            elif size > FILE_BYTES_MAX:
                found[path] = _TOO_LARGE
            else:
                wanted[blob] = size
        if sum(wanted.values()) > TOTAL_BYTES_MAX:
            raise InvalidManifest(f"the files of the revision have more than {TOTAL_BYTES_MAX} bytes")
        contents = self._contents(wanted)
        return found | {path: contents[self._blobs[path][1]] for path in paths if path not in found}

    def _contents(self, sizes: dict[str, int]) -> dict[str, bytes]:
        """Each object follows a line with its id, type and size."""
        output = self._git("cat-file", "--batch", input="".join(f"{blob}\n" for blob in sizes).encode())
        contents = {}
        start = 0
        for blob, size in sizes.items():
            start = output.index(b"\n", start) + 1
            contents[blob] = output[start : start + size]
            start += size + 1
        return contents

    def _commit(self, revision: str) -> str | None:
        try:
            found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        except InvalidManifest:
            if revision == "HEAD" and self._git("rev-parse", "--is-inside-work-tree").strip() == b"true":
                return None
            raise InvalidManifest(f"git has no revision {revision!r} in {self._folder}") from None
        return found.decode().strip()

    def _git(self, *arguments: str, input: bytes = b"") -> bytes:
        # Git hooks set GIT_DIR and more, partly relative to another folder.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *arguments],
                input=input,
                capture_output=True,
                check=True,
                timeout=GIT_SECONDS_MAX,
                env=environment,
            )
        except FileNotFoundError:
            raise InvalidManifest("git is not installed") from None
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise InvalidManifest(f"git failed: {error}") from None
        except subprocess.CalledProcessError as error:
            reason = error.stderr.decode("utf-8", "replace").strip()
            raise InvalidManifest(f"git {arguments[0]} failed: {reason[:500]}") from None
        return done.stdout
