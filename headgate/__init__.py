"""Headgate: a schema registry, a REST proxy, a Kafka-protocol broker and Spark functions.

    from headgate import Deserializer, Serializer, decode_topic

The most-used names load on first use, so that `import headgate` stays fast.
"""

from typing import TYPE_CHECKING

from headgate.public_names import load as __getattr__  # noqa: F401 - PEP 562

if TYPE_CHECKING:
    from headgate.serdes import (
        AsyncDeserializer,
        AsyncRegistryClient,
        AsyncSerializer,
        Decoded,
        Deserializer,
        Poison,
        RegistryClient,
        Serializer,
    )
    from headgate.spark_udfs import (
        dead_letters,
        decode_frame,
        decode_topic,
        from_registry_avro,
        read_topic,
        to_registry_avro,
    )

    __version__: str

__all__ = [
    "AsyncDeserializer",
    "AsyncRegistryClient",
    "AsyncSerializer",
    "Decoded",
    "Deserializer",
    "Poison",
    "RegistryClient",
    "Serializer",
    "__version__",
    "dead_letters",
    "decode_frame",
    "decode_topic",
    "from_registry_avro",
    "read_topic",
    "to_registry_avro",
]
