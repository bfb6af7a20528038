"""A user's script: serializes a value and reads it back. Its folder contains a serdes.py and a registry.py."""

import importlib
import sys

from headgate import Deserializer, RegistryClient, Serializer
from headgate.serdes import avro_schema

SCHEMA = """
{"type": "record", "name": "Customer",
 "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
"""

for name in ("broker", "gateway", "kafka_client", "openapi", "proxy", "registry", "serdes", "web", "wire"):
    assert importlib.import_module(name).OWNER == "user", name

with RegistryClient(sys.argv[1]) as client:
    payload = Serializer(client, avro_schema(SCHEMA)).serialize({"id": 7, "name": "Ada"}, topic="customers")
    print(Deserializer(client).deserialize(payload))
