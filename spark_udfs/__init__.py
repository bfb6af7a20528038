"""Decode and encode registered payloads as Spark columns.

    from headgate.spark_udfs import decode_topic, from_registry_avro, to_registry_avro

    good, poison = decode_topic(df, subject="orders-value")

The import needs neither pyspark nor pyarrow. The functions need `pip install 'headgate[spark]'`.
"""

from headgate.spark_udfs.batches import decode_each_batch
from headgate.spark_udfs.dead_letter import dead_letters, to_dead_letter_records
from headgate.spark_udfs.driver.reader_choice import ReaderError, RegistryNotReady
from headgate.spark_udfs.driver.restarts import run_restarting
from headgate.spark_udfs.driver.session_settings import FAST_SETTINGS
from headgate.spark_udfs.extra import MissingExtra
from headgate.spark_udfs.frame import (
    FrameError,
    decode_frame,
    decode_topic,
    decode_types,
    encode_frame,
    part,
    poison_counts,
)
from headgate.spark_udfs.functions import from_registry_avro, poison_reason, schema_id, to_registry_avro
from headgate.spark_udfs.spec.policy import (
    NewVersionError,
    OnNewVersion,
    OnPoison,
    OnRegistryDown,
    PolicyError,
    RegistryDownError,
)
from headgate.spark_udfs.spec.registry_options import OptionError, RegistryOptions
from headgate.spark_udfs.sql import install, register_function
from headgate.spark_udfs.topic_table import read_topic

__all__ = [
    "FAST_SETTINGS",
    "FrameError",
    "MissingExtra",
    "NewVersionError",
    "OnNewVersion",
    "OnPoison",
    "OnRegistryDown",
    "OptionError",
    "PolicyError",
    "ReaderError",
    "RegistryDownError",
    "RegistryNotReady",
    "RegistryOptions",
    "dead_letters",
    "decode_each_batch",
    "decode_frame",
    "decode_topic",
    "decode_types",
    "encode_frame",
    "from_registry_avro",
    "install",
    "part",
    "poison_counts",
    "poison_reason",
    "read_topic",
    "register_function",
    "run_restarting",
    "schema_id",
    "to_dead_letter_records",
    "to_registry_avro",
]
