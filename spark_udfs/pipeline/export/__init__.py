"""Export a pipeline as a project of Spark Declarative Pipelines."""

from headgate.spark_udfs.pipeline.export.project import Project, export

__all__ = ["Project", "export"]
