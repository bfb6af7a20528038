"""Build a `Decoding` or an `Encoding` from the arguments of the public functions. Raises all configuration errors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from headgate.serdes import SchemaDefinition
from headgate.serdes.avro.column_size import RECURSION_MAX_DEFAULT
from headgate.serdes.columnar import ColumnarError
from headgate.serdes.columnar.engine import code_to_ship
from headgate.serdes.columnar.native.signatures import DECODING_KERNELS, ENCODING_KERNELS
from headgate.spark_udfs.driver.reader_choice import AnyChoice, ReaderChoice, ReaderError, TypedChoice
from headgate.spark_udfs.driver.registry_resolution import resolve
from headgate.spark_udfs.driver.writer_choice import WriterChoice
from headgate.spark_udfs.executor.decoding import Decoding
from headgate.spark_udfs.executor.encoding import Encoding
from headgate.spark_udfs.spec.policy import OnNewVersion, OnPoison, OnRegistryDown
from headgate.spark_udfs.spec.reader import TypedReader
from headgate.spark_udfs.spec.registry_options import RegistryOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

Registry: TypeAlias = RegistryOptions | Mapping[str, str] | str | None
"""An address, options by name, or None to use the DataFrame, the Spark configuration or the environment."""

RECURSION_MAX_LIMIT = 20
"""Levels of a recursive record. If it contains itself twice, each level doubles the number of columns."""


Subjects: TypeAlias = str | Sequence[str] | None
"""One subject, or several: then the value has one field per subject."""


def choice_of(
    subject: Subjects,
    version: int | None = None,
    schema_id: int | None = None,
    schema: str | SchemaDefinition | None = None,
    fields: Sequence[str] | None = None,
) -> AnyChoice:
    if isinstance(fields, str):
        raise ReaderError(f"fields must be a list of field names, not the string {fields!r}")
    if subject is not None and not isinstance(subject, str):
        subjects = tuple(subject)
        given = {"version": version, "schema_id": schema_id, "schema": schema, "fields": fields}
        chosen = [name for name, argument in given.items() if argument is not None]
        if chosen and len(subjects) != 1:
            raise ReaderError(f"{' and '.join(chosen)} can be used with one subject only")
        if len(subjects) != 1:
            return TypedChoice(subjects)
        (subject,) = subjects
    return ReaderChoice(subject, version, schema_id, schema, None if fields is None else tuple(fields))


def plan_decoding(
    choice: AnyChoice,
    registry: Registry = None,
    *,
    df: "DataFrame | None" = None,
    column: str = "value",
    on_poison: str = OnPoison.DEAD_LETTER,
    on_new_version: str = OnNewVersion.KEEP,
    on_registry_down: str = OnRegistryDown.WAIT,
    recursion_max: int = RECURSION_MAX_DEFAULT,
    is_key: bool = False,
) -> Decoding:
    """Fetch the reader schema, and check that it can be represented as columns.

    Raises `ReaderError`, `OptionError` or `PolicyError`.
    """
    if not 0 <= recursion_max <= RECURSION_MAX_LIMIT:
        raise ReaderError(f"recursion_max must be between 0 and {RECURSION_MAX_LIMIT}, not {recursion_max}")
    poison, new_version = OnPoison.for_columns(on_poison), OnNewVersion.of(on_new_version)
    registry_down = OnRegistryDown.of(on_registry_down)
    options = resolve(registry, df, column=column)
    with options.client() as client:
        reader = choice.resolve(client)
    code = code_to_ship(DECODING_KERNELS) if any(one.language == "AVRO" for one in reader.readers) else ()
    decoding = Decoding(reader, options, poison, new_version, registry_down, recursion_max, is_key=is_key, code=code)
    try:
        decoding.decoder()
    except ColumnarError as error:
        name = "a subject" if isinstance(reader, TypedReader) else reader.subject or "the schema"
        raise ReaderError(f"{name}: {error}") from error
    return decoding


def plan_encoding(choice: WriterChoice, registry: Registry, on_poison: str) -> "tuple[Encoding, DataType]":
    """Find the schema to write with, and the Spark type of the payloads. Raises `EncodingError` or `ReaderError`."""
    from pyspark.sql.types import BinaryType, StringType, StructType

    mode = OnPoison.for_columns(on_poison)
    schema, schema_id = choice.resolve(resolve(registry))
    kind: DataType = BinaryType()
    if mode is OnPoison.DEAD_LETTER:
        kind = StructType().add("value", BinaryType()).add("reason", StringType())
    return Encoding(schema, schema_id, mode, code_to_ship(ENCODING_KERNELS)), kind


def with_reader(decoding: Decoding, choice: AnyChoice) -> Decoding:
    """The decoding with the current reader schema of the choice."""
    with decoding.registry.client() as client:
        return replace(decoding, reader=choice.resolve(client))
