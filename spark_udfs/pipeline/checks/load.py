"""Load and validate a pipeline file. All mistakes of the file are reported together.

`steps` and `transforms` read the sections, `graph` checks the connections between them, and `topic_options` checks the
options of the data source.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from headgate.spark_udfs.pipeline.checks.graph import check_graph
from headgate.spark_udfs.pipeline.checks.steps import read_dead_letters, read_sink, read_source
from headgate.spark_udfs.pipeline.checks.table_reader import NAME, TableReader
from headgate.spark_udfs.pipeline.checks.topic_options import check_topic_options
from headgate.spark_udfs.pipeline.checks.transforms import read_transform
from headgate.spark_udfs.pipeline.document import Document, read_document, resolve_path
from headgate.spark_udfs.pipeline.errors import Mistake, PipelineMistakes, did_you_mean
from headgate.spark_udfs.pipeline.model import PIPELINE_POLICIES, Pipeline, Transform
from headgate.spark_udfs.pipeline.sources.source import SourceDefaults
from headgate.spark_udfs.pipeline.sql_names import sql_inputs
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.registry_options import OPTION_NAMES, OptionError, RegistryOptions

BOOTSTRAP_SERVERS_DEFAULT = "127.0.0.1:9092"
TRIGGER_SECONDS_DEFAULT = 1.0
"""Each micro-batch costs a few hundred milliseconds."""
REFRESH_SECONDS_DEFAULT = 10.0

STEPS_MAX = 200
"""Spark analyzes every step. Larger pipelines should be split."""


def load(
    file: Path, environment: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
) -> Pipeline:
    """Read and validate a file. Raises `PipelineMistakes`."""
    environment = os.environ if environment is None else environment
    return check(read_document(file, environment, overrides), environment)


def check(document: Document, environment: Mapping[str, str]) -> Pipeline:
    """Validate a document. Raises `PipelineMistakes` with every mistake."""
    mistakes: list[Mistake] = []
    top = TableReader(document, (), document.values, mistakes)
    checkpoint = top.required("checkpoint", "the folder for the state of the pipeline")
    defaults = SourceDefaults(
        top.choice("on_poison", PIPELINE_POLICIES, OnPoison.DEAD_LETTER),
        top.choice("on_new_version", OnNewVersion, OnNewVersion.KEEP),
        top.choice("on_registry_down", OnRegistryDown, OnRegistryDown.WAIT),
    )
    source_names = _keys(document, "sources")
    sources = {table.name: read_source(table, defaults) for table in _sections(top, "sources")}
    transform_tables = _sections(top, "transforms")
    step_names = [*source_names, *(each.name for each in transform_tables)]
    transforms: dict[str, Transform] = {}
    for table in transform_tables:
        if table.name in source_names:
            table.wrong("", f"{table.name} is the name of a source already")
        transform = read_transform(table, lambda sql: sql_inputs(sql, step_names))
        if transform is not None:
            transforms[table.name] = transform
    sinks = {table.name: read_sink(table) for table in _sections(top, "sinks")}
    dead_letters = top.inner("dead_letters")
    pipeline = Pipeline(
        name=_name(top, document),
        file=document.file,
        folder=str(document.folder),
        checkpoint=resolve_path(checkpoint, document),
        trigger_seconds=top.seconds("trigger", TRIGGER_SECONDS_DEFAULT),
        refresh_seconds=top.seconds("refresh", REFRESH_SECONDS_DEFAULT),
        kafka=_kafka(top, environment),
        registry=_registry(top, environment),
        spark=_prefixed("spark.", top.options("spark")),
        sources={name: source for name, source in sources.items() if source is not None},
        transforms=transforms,
        sinks={name: sink for name, sink in sinks.items() if sink is not None},
        dead_letters=None if dead_letters is None else read_dead_letters(dead_letters),
        description=top.text("description") or "",
    )
    top.finish()
    for section, example in (("sources", "[sources.orders]"), ("sinks", "[sinks.lake]")):
        if not _keys(document, section):
            top.wrong(section, f"is required: at least one, such as {example}")
    steps = len(step_names) + len(pipeline.sinks)
    if steps > STEPS_MAX:
        top.wrong("", f"the pipeline has {steps} steps; the maximum is {STEPS_MAX}")
    check_graph(pipeline, document, step_names, mistakes)
    check_topic_options(pipeline, document, mistakes)
    if mistakes:
        raise PipelineMistakes(document.file, mistakes)
    return pipeline


def _name(top: TableReader, document: Document) -> str:
    name = top.text("name") or Path(document.file).name.partition(".")[0].replace("-", "_")
    if NAME.fullmatch(name.replace("-", "_").replace(".", "_")) is None:
        top.wrong("name", f"may contain letters, digits, dots, dashes and underscores, not {name!r}")
    return name


def _kafka(top: TableReader, environment: Mapping[str, str]) -> dict[str, str]:
    options = _prefixed("kafka.", top.options("kafka"))
    if not options.get("kafka.bootstrap.servers"):
        options["kafka.bootstrap.servers"] = environment.get("HEADGATE_BOOTSTRAP_SERVER") or BOOTSTRAP_SERVERS_DEFAULT
    return options


def _registry(top: TableReader, environment: Mapping[str, str]) -> dict[str, str]:
    options = _prefixed("registry.", top.options("registry"))
    known = [each.removeprefix("registry.") for each in OPTION_NAMES]
    unknown = [name.removeprefix("registry.") for name in options if name.lower() not in OPTION_NAMES]
    for name in unknown:
        top.wrong(f"registry.{name}", f"unknown key{did_you_mean(name, known)} (allowed: {', '.join(known)})")
    if not unknown:
        try:
            RegistryOptions.from_options(options)
        except OptionError as error:
            top.wrong("registry", str(error))
    if not options.get("registry.url") and environment.get("HEADGATE_REGISTRY_URL"):
        options["registry.url"] = environment["HEADGATE_REGISTRY_URL"]
    return options


def _prefixed(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    return {name if name.startswith(prefix) else prefix + name: value for name, value in options.items()}


def _keys(document: Document, section: str) -> list[str]:
    value = document.values.get(section)
    return list(value) if isinstance(value, dict) else []


def _sections(top: TableReader, key: str) -> list[TableReader]:
    """The tables below `key` whose names are valid names of SQL views."""
    outer = top.inner(key)
    found = []
    for name in [] if outer is None else outer.keys():
        assert outer is not None
        inner = outer.inner(name)
        if NAME.fullmatch(name) is None:
            outer.wrong(name, "a name contains letters, digits and underscores, and does not start with a digit")
        elif inner is not None:
            found.append(inner)
    return found
