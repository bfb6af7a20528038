"""The state of a pipeline between runs, in its checkpoint folder.

    pipeline.json            the identity of the pipeline, created at the first start
    queries/NAME             Spark's checkpoint of each streaming query
    staged/STEP              rows that a source query has written for a stateful query
    tables/SOURCE            generations of a lookup table
    schemas/SOURCE.json      inferred columns of files
    cursors/SOURCE.json      the position in a database

Sinks store the identity with each batch number. If the folder is deleted to start over, batch 0 of the new run is not
mistaken for batch 0 of the old one.
"""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from headgate.spark_udfs.pipeline.errors import PipelineError
from headgate.spark_udfs.pipeline.filesystem import Files, joined
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.spark_errors import naming

LAYOUT = 1


@dataclass(frozen=True, slots=True)
class BatchId:
    """The id of a micro-batch. A repeated batch has the same id."""

    pipeline: str
    identity: str
    """The identity of the checkpoint."""
    query: str
    number: int

    @property
    def name(self) -> str:
        """A valid file name that sorts in the order of the batches of a query."""
        return f"{self.identity[:8]}-{self.query}-{self.number:08d}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    files: Files
    folder: str
    pipeline: str
    identity: str

    def query(self, name: str) -> str:
        return joined(self.folder, "queries", name)

    def staged(self, step: str) -> str:
        return joined(self.folder, "staged", step)

    def table(self, source: str) -> str:
        return joined(self.folder, "tables", source)

    def batch(self, query: str, number: int) -> BatchId:
        return BatchId(self.pipeline, self.identity, query, number)

    def read_json(self, kind: str, name: str) -> Any:
        """The stored value, or None."""
        path = joined(self.folder, kind, f"{name}.json")
        # A crash between delete and rename leaves the new text under its temporary name.
        for candidate in (path, f"{path}.new"):
            if self.files.exists(candidate):
                try:
                    return json.loads(self.files.read_text(candidate))
                except ValueError:
                    continue
        return None

    def write_json(self, kind: str, name: str, value: object) -> None:
        self.files.make_folder(joined(self.folder, kind))
        self.files.write_text(joined(self.folder, kind, f"{name}.json"), json.dumps(value, indent=1))


def open_checkpoint(files: Files, pipeline: Pipeline) -> Checkpoint:
    """Open or create the checkpoint. Raises `PipelineError` if it belongs to another pipeline or layout."""
    path = joined(pipeline.checkpoint, "pipeline.json")
    if not files.exists(path):
        if [name for name in files.names(pipeline.checkpoint) if not name.endswith(".new")]:
            raise PipelineError(
                f"the checkpoint folder {pipeline.checkpoint} contains other files",
                advice="use an empty or new folder",
            )
        identity = uuid.uuid4().hex
        with naming("checkpoint"):
            files.make_folder(pipeline.checkpoint)
        files.write_text(path, json.dumps({"layout": LAYOUT, "pipeline": pipeline.name, "identity": identity}))
        return Checkpoint(files, pipeline.checkpoint, pipeline.name, identity)
    try:
        found = json.loads(files.read_text(path))
        layout, name, identity = int(found["layout"]), str(found["pipeline"]), str(found["identity"])
    except (ValueError, KeyError, TypeError) as error:
        raise PipelineError(f"cannot parse {path}", why=str(error)) from error
    if layout != LAYOUT:
        raise PipelineError(f"the checkpoint {pipeline.checkpoint} has layout {layout}; this version reads {LAYOUT}")
    if name != pipeline.name:
        raise PipelineError(
            f"the checkpoint {pipeline.checkpoint} belongs to the pipeline {name}, not {pipeline.name}",
            advice="use a separate folder for each pipeline, or keep the name",
        )
    return Checkpoint(files, pipeline.checkpoint, name, identity)
