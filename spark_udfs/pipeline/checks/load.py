"""From a document to a checked pipeline: every mistake is found in one go. Knows the format; starts nothing.

The tables of sources, transforms and sinks have checks of their own (`checks_sources`, `checks_transforms`,
`checks_sinks`), and so have the options of topics (`checks_options`); what holds between them (names that exist,
circles, joins that would keep rows for ever) is here and in `checks_graph`.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from headgate.spark_udfs.pipeline.checks.graph import check_graph
from headgate.spark_udfs.pipeline.checks.options import check_options
from headgate.spark_udfs.pipeline.checks.sinks import read_dead_letters, read_sink
from headgate.spark_udfs.pipeline.checks.sources import read_source
from headgate.spark_udfs.pipeline.checks.table_reader import NAME, Table
from headgate.spark_udfs.pipeline.checks.transforms import read_transform
from headgate.spark_udfs.pipeline.document import Document, placed, read_document
from headgate.spark_udfs.pipeline.errors import Mistake, PipelineMistakes, did_you_mean
from headgate.spark_udfs.pipeline.model import OnPoison, Pipeline, Sink, Source, Transform
from headgate.spark_udfs.pipeline.sql_names import sql_inputs
from headgate.spark_udfs.spec.policy import OnNewVersion

BOOTSTRAP_SERVERS_DEFAULT = "127.0.0.1:9092"
TRIGGER_SECONDS_DEFAULT = 1.0
"""A micro-batch costs a few hundred milliseconds whatever it holds."""
REFRESH_SECONDS_DEFAULT = 10.0

STEPS_MAX = 200
"""Nobody can read more, and each costs Spark's analysis."""


def load(
    file: Path, environment: Mapping[str, str] | None = None, overrides: Mapping[str, str] | None = None
) -> Pipeline:
    """Reads and checks. Raises `PipelineMistakes`."""
    environment = os.environ if environment is None else environment
    return check(read_document(file, environment, overrides), environment)


def check(document: Document, environment: Mapping[str, str]) -> Pipeline:
    """Raises `PipelineMistakes` with every mistake."""
    mistakes: list[Mistake] = []
    top = Table(document, (), document.values, mistakes)
    default_name = Path(document.file).name.partition(".")[0].replace("-", "_")
    name = top.text("name") or default_name
    if NAME.fullmatch(name.replace("-", "_").replace(".", "_")) is None:
        top.wrong("name", f"letters, digits, dots, dashes and underscores are allowed, not {name!r}")
    description = top.text("description") or ""
    folder = top.required("checkpoint", "the folder where the pipeline remembers how far it came")
    checkpoint = placed(folder, document) if folder else ""
    trigger_seconds = top.seconds("trigger", TRIGGER_SECONDS_DEFAULT)
    refresh_seconds = top.seconds("refresh", REFRESH_SECONDS_DEFAULT)
    on_poison = top.choice("on_poison", OnPoison, OnPoison.DEAD_LETTER)
    on_new_version = top.choice("on_new_version", OnNewVersion, OnNewVersion.KEEP)
    kafka = _prefixed("kafka.", top.options("kafka"))
    if not kafka.get("kafka.bootstrap.servers"):
        kafka["kafka.bootstrap.servers"] = environment.get("HEADGATE_BOOTSTRAP_SERVER") or BOOTSTRAP_SERVERS_DEFAULT
    registry = _prefixed("registry.", top.options("registry"))
    _check_registry(top, registry)
    spark = _prefixed("spark.", top.options("spark"))

    sources: dict[str, Source] = {}
    for inner in _tables(top, "sources", mistakes, document):
        source = read_source(inner, document, on_poison, on_new_version)
        if source is not None:
            sources[inner.path[-1]] = source
    tables = list(_tables(top, "transforms", mistakes, document))
    named = [*(_names(document, "sources")), *(each.path[-1] for each in tables)]
    transforms: dict[str, Transform] = {}
    for inner in tables:
        if inner.path[-1] in _names(document, "sources"):
            inner.wrong("", f"{inner.path[-1]} is the name of a source already")
        transform = read_transform(inner, lambda sql: sql_inputs(sql, named))
        if transform is not None:
            transforms[inner.path[-1]] = transform
    sinks: dict[str, Sink] = {}
    for inner in _tables(top, "sinks", mistakes, document):
        sink = read_sink(inner, document)
        if sink is not None:
            sinks[inner.path[-1]] = sink
    letters_table = top.inner("dead_letters")
    dead_letters = None if letters_table is None else read_dead_letters(letters_table, document)
    top.finish()

    if not _names(document, "sources"):
        top.wrong("sources", "is missing: name at least one, such as [sources.orders]")
    if not _names(document, "sinks"):
        top.wrong("sinks", "is missing: name at least one, such as [sinks.lake]")
    if len(named) + len(sinks) > STEPS_MAX:
        top.wrong("", f"{len(named) + len(sinks)} steps; {STEPS_MAX} are the most")
    if not registry.get("registry.url") and environment.get("HEADGATE_REGISTRY_URL"):
        registry["registry.url"] = environment["HEADGATE_REGISTRY_URL"]
    pipeline = Pipeline(
        name=name,
        file=document.file,
        folder=str(document.folder),
        checkpoint=checkpoint,
        trigger_seconds=trigger_seconds,
        refresh_seconds=refresh_seconds,
        kafka=kafka,
        registry=registry,
        spark=spark,
        sources=sources,
        transforms=transforms,
        sinks=sinks,
        dead_letters=dead_letters,
        description=description,
    )
    check_graph(pipeline, document, named, mistakes)
    check_options(pipeline, document, mistakes)
    if mistakes:
        raise PipelineMistakes(document.file, mistakes)
    return pipeline


def _prefixed(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    return {name if name.startswith(prefix) else prefix + name: value for name, value in options.items()}


def _check_registry(top: Table, options: Mapping[str, str]) -> None:
    from headgate.spark_udfs.spec.registry_options import OPTION_NAMES, OptionError, RegistryOptions

    unknown = [name for name in options if name.lower() not in OPTION_NAMES]
    for name in unknown:
        short = [each.removeprefix("registry.") for each in OPTION_NAMES]
        given = name.removeprefix("registry.")
        top.wrong(f"registry.{given}", f"is not known{did_you_mean(given, short)} (known: {', '.join(short)})")
    if not unknown:
        try:
            RegistryOptions.from_options(options)
        except OptionError as error:
            top.wrong("registry", str(error))


def _names(document: Document, key: str) -> list[str]:
    value = document.values.get(key)
    return list(value) if isinstance(value, dict) else []


def _tables(top: Table, key: str, mistakes: list[Mistake], document: Document) -> list[Table]:
    """The tables below `key`, each with a name that SQL can use."""
    outer = top.inner(key)
    if outer is None:
        return []
    found = []
    for name in outer.names():
        inner = outer.inner(name)
        if NAME.fullmatch(name) is None:
            outer.wrong(name, "a name is made of letters, digits and underscores, and does not begin with a digit")
        elif inner is not None:
            found.append(inner)
    return found
