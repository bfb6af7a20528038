"""What a pipeline remembers between runs, in the folder that its file names.

    pipeline.json            the pipeline's identity, made at the first start
    queries/NAME             Spark's own checkpoint of each streaming query
    staged/STEP              rows on their way from an intake to a gathering
    tables/SOURCE            tables: generations of rows, and how far the topic was read
    schemas/SOURCE.json      columns of files that did not declare them
    cursors/SOURCE.json      how far a database was read

The identity goes into every mark that a sink keeps of a batch: when somebody deletes the folder to start all over,
batch 0 of the new beginning is not taken for batch 0 of the old one.
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
    """A micro-batch, told apart from every other one. The same batch has the same id when it is done again."""

    pipeline: str
    identity: str
    """Of the pipeline's checkpoint."""
    query: str
    number: int

    @property
    def name(self) -> str:
        """Sorts as the batches of one query do; letters that file names take."""
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
        """None where nothing was kept."""
        path = joined(self.folder, kind, f"{name}.json")
        # A crash between the two halves of a replacement leaves the new text under its first name.
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
    """Made at the first start. Raises `PipelineError` for the folder of another pipeline or layout."""
    path = joined(pipeline.checkpoint, "pipeline.json")
    if not files.exists(path):
        if [name for name in files.names(pipeline.checkpoint) if not name.endswith(".new")]:
            raise PipelineError(
                f"the checkpoint folder {pipeline.checkpoint} holds something else",
                advice="name a folder that is empty or does not exist",
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
        raise PipelineError(f"{path} cannot be understood", why=str(error)) from error
    if layout != LAYOUT:
        raise PipelineError(f"the checkpoint {pipeline.checkpoint} has layout {layout}; this version reads {LAYOUT}")
    if name != pipeline.name:
        raise PipelineError(
            f"the checkpoint {pipeline.checkpoint} belongs to the pipeline {name}, not {pipeline.name}",
            advice="give each pipeline a folder of its own, or keep the name",
        )
    return Checkpoint(files, pipeline.checkpoint, name, identity)
