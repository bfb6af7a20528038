"""Declarative pipelines: a TOML or YAML file with sources, transforms and sinks, validated and run on Spark.

    pipeline = load(Path("orders.toml"))
    Runner(spark, pipeline).run(once=True)

`document`, `checks` and `model` work without Spark. `analysis` lets Spark analyze the steps, `topology` derives the
streaming queries, and `run` runs them.
"""

from headgate.spark_udfs.pipeline.checkpoints import BatchId
from headgate.spark_udfs.pipeline.checks.load import load
from headgate.spark_udfs.pipeline.errors import PipelineError, PipelineMistakes
from headgate.spark_udfs.pipeline.metrics import Metrics
from headgate.spark_udfs.pipeline.model import Pipeline
from headgate.spark_udfs.pipeline.run import Runner

__all__ = ["BatchId", "Metrics", "Pipeline", "PipelineError", "PipelineMistakes", "Runner", "load"]
