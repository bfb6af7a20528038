"""The manifest of an export: which files are complete, and which offsets they contain.

A file is listed after it has been written, synced and renamed. An interrupted export continues after the last listed
offset of each partition.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

NAME: Final = "headgate-export.json"
VERSION: Final = 1


class BadManifest(ValueError):
    """The folder contains no export, or another one."""


@dataclass(frozen=True, slots=True)
class ExportedFile:
    name: str
    partition: int
    start: int
    end: int
    """The offset after the last record."""
    records: int
    poison: int


@dataclass(slots=True)
class Manifest:
    topic: str
    format: str
    raw: bool
    partitions: int
    files: list[ExportedFile] = field(default_factory=list)

    def next_offset(self, partition: int) -> int:
        """The first offset that is not exported."""
        return max((file.end for file in self.files if file.partition == partition), default=0)

    def save(self, folder: Path) -> None:
        """Replaces the stored manifest."""
        replace_json(folder / NAME, {"version": VERSION, **asdict(self)})


def load(folder: Path) -> Manifest | None:
    """None if the folder contains no export. Raises BadManifest."""
    try:
        document = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadManifest(f"{folder / NAME}: {error}") from error
    try:
        if document.pop("version") != VERSION:
            raise BadManifest(f"{folder / NAME} has another version")
        files = [ExportedFile(**file) for file in document.pop("files")]
        for file in files:
            # The name comes from a file that anyone can edit. It must stay inside the folder.
            if Path(file.name).name != file.name:
                raise BadManifest(f"{folder / NAME}: {file.name!r} is not a file name")
        return Manifest(**document, files=files)
    except (TypeError, KeyError, AttributeError) as error:
        raise BadManifest(f"{folder / NAME}: {error}") from error


def replace_json(path: Path, document: object) -> None:
    """Replace a file atomically and durably."""
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renamed files durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
