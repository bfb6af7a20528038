"""Declared pipelines: a file in TOML or YAML says what flows from where to where; checked, planned and run on Spark.

    pipeline = load(Path("orders.toml"))
    Runner(spark, pipeline).run(once=True)

`document` → `checks` → `model` is pure. `analysis` asks Spark what the steps make of their columns, `shape` says which
streaming queries come of it, `run` runs them.
"""

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.checks.load import load
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.run import Runner

__all__ = ["BatchId", "Metrics", "Pipeline", "PipelineError", "PipelineMistakes", "Runner", "load"]
