"""Serializers and deserializers for payloads with a schema id."""

from headgate.registry.errors import InvalidSchema
from headgate.serdes.client import (
    AsyncRegistryClient,
    BasicAuth,
    BearerAuth,
    RegistryClient,
    RegistryClientError,
    RegistrySettings,
    RegistryUnavailable,
    RequestRefused,
    TlsSettings,
    UnknownSchema,
)
from headgate.serdes.codec import ReadOptions, WriteOptions
from headgate.serdes.dead_letter import DeadLetter, Record, RedriveRefused, read_dead_letter, redrive, to_dead_letter
from headgate.serdes.deserializer import AsyncDeserializer, Deserializer, DeserializerOptions
from headgate.serdes.errors import EncodeError, PoisonError
from headgate.serdes.models import AvroType, ModelError, decimal, model_of
from headgate.serdes.naming import record_strategy, topic_record_strategy, topic_strategy
from headgate.serdes.outcome import Decoded, Poison, Reason
from headgate.serdes.registry_source import RegistrySource
from headgate.serdes.rules import RulePolicy, RulesNotExecuted
from headgate.serdes.schemas import RegisteredSchema, SchemaDefinition, avro_schema, json_schema, protobuf_schema
from headgate.serdes.serializer import AsyncSerializer, Serializer, SerializerOptions

__all__ = [
    "AsyncDeserializer",
    "AsyncRegistryClient",
    "AsyncSerializer",
    "AvroType",
    "BasicAuth",
    "BearerAuth",
    "DeadLetter",
    "Decoded",
    "Deserializer",
    "DeserializerOptions",
    "EncodeError",
    "InvalidSchema",
    "ModelError",
    "Poison",
    "PoisonError",
    "ReadOptions",
    "Reason",
    "Record",
    "RedriveRefused",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryClientError",
    "RegistrySettings",
    "RegistrySource",
    "RegistryUnavailable",
    "RequestRefused",
    "RulePolicy",
    "RulesNotExecuted",
    "SchemaDefinition",
    "Serializer",
    "SerializerOptions",
    "TlsSettings",
    "UnknownSchema",
    "WriteOptions",
    "avro_schema",
    "decimal",
    "json_schema",
    "model_of",
    "protobuf_schema",
    "read_dead_letter",
    "record_strategy",
    "redrive",
    "to_dead_letter",
    "topic_record_strategy",
    "topic_strategy",
]
