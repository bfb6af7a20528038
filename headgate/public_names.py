"""The names of `import headgate`: which module defines each of them. They are loaded on first use (PEP 562)."""

from importlib import import_module

MODULES = {
    "AsyncDeserializer": "headgate.serdes",
    "AsyncRegistryClient": "headgate.serdes",
    "AsyncSerializer": "headgate.serdes",
    "Decoded": "headgate.serdes",
    "Deserializer": "headgate.serdes",
    "Poison": "headgate.serdes",
    "RegistryClient": "headgate.serdes",
    "Serializer": "headgate.serdes",
    "dead_letters": "headgate.spark_udfs",
    "decode_frame": "headgate.spark_udfs",
    "decode_topic": "headgate.spark_udfs",
    "from_registry_avro": "headgate.spark_udfs",
    "read_topic": "headgate.spark_udfs",
    "to_registry_avro": "headgate.spark_udfs",
}


def load(name: str) -> object:
    """Load a public name, or the version of the installed distribution. Raises AttributeError."""
    if name == "__version__":
        from importlib.metadata import version

        return version("headgate")
    if name not in MODULES:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
