"""Creates the writer or reader for the language of a schema.

JSON Schema and Protobuf need large libraries. They are imported with the first schema of that language, because most
programs use one language, and Spark starts many short-lived processes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headgate.registry.errors import InvalidSchema
from headgate.registry.formats.extra import extra
from headgate.registry.model import SchemaType
from headgate.serdes.avro.codec import AvroReader, AvroWriter
from headgate.serdes.avro.schema import parse as parse_avro
from headgate.serdes.codec import BodyReader, BodyWriter, ReadOptions, WriteOptions
from headgate.serdes.schemas import SchemaDefinition


@dataclass(frozen=True, slots=True)
class WholeSchema:
    """A schema and the texts of all its references, dependencies first."""

    definition: SchemaDefinition
    texts: Mapping[str, str] = field(default_factory=dict)


def writer_of(schema: WholeSchema, options: WriteOptions) -> BodyWriter:
    """Create a writer. Raises `InvalidSchema`."""
    definition = schema.definition
    if definition.type is SchemaType.AVRO:
        return AvroWriter(parse_avro(definition.text, schema.texts), options)
    if definition.type is SchemaType.JSON:
        with extra("json"):
            from headgate.serdes.json_body import JsonWriter

        return JsonWriter(definition.text, schema.texts, options)
    with extra("protobuf"):
        from headgate.serdes.protobuf.codec import ProtobufWriter

    return ProtobufWriter(definition.text, schema.texts, options)


def reader_of(writer: WholeSchema, reader: WholeSchema | None, options: ReadOptions) -> BodyReader:
    """Create a reader. Raises `InvalidSchema`, also for schemas of different languages."""
    language = writer.definition.type
    if reader is not None and reader.definition.type is not language:
        raise InvalidSchema(f"{language} cannot be read as {reader.definition.type}")
    if language is SchemaType.AVRO:
        read_as = None if reader is None else parse_avro(reader.definition.text, reader.texts)
        return AvroReader(parse_avro(writer.definition.text, writer.texts), read_as, options)
    texts = (writer.definition.text, writer.texts)
    as_texts = None if reader is None else (reader.definition.text, reader.texts)
    if language is SchemaType.JSON:
        with extra("json"):
            from headgate.serdes.json_body import JsonReader

        return JsonReader(texts, as_texts, options)
    with extra("protobuf"):
        from headgate.serdes.protobuf.codec import ProtobufReader

    return ProtobufReader(texts, as_texts, options)
