"""The parameters of Databricks' `from_avro`."""

import pytest

from headgate.spark_udfs.databricks import from_avro, read_options
from headgate.spark_udfs.spec.registry_options import OptionError, RegistryOptions

ADDRESS = "http://registry:8081"


def test_options_of_databricks_are_translated() -> None:
    registry, on_poison, on_new_version = read_options(
        {
            "confluent.schema.registry.basic.auth.credentials.source": "USER_INFO",
            "confluent.schema.registry.basic.auth.user.info": "key:secret",
            "avroSchemaEvolutionMode": "restart",
            "mode": "PERMISSIVE",
            "registry.retries": "1",
        },
        ADDRESS,
    )
    assert (on_poison, on_new_version) == ("NULL", "RESTART")
    found = RegistryOptions.from_options(registry)
    assert (found.urls, found.user_info, found.attempts_max) == ((ADDRESS,), "key:secret", 2)


def test_the_defaults_are_those_of_databricks() -> None:
    assert read_options({}, None) == ({}, "FAIL", "KEEP")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "DROPMALFORMED"}, "FAILFAST, PERMISSIVE"),
        ({"avroSchemaEvolutionMode": "always"}, "none, restart"),
        ({"confluent.schema.registry.basic.auth.credentials.source": "SASL_INHERIT"}, "USER_INFO"),
        ({"compression": "snappy"}, "unknown option 'compression'"),
        ({"confluent.schema.registry.ssl.truststore.location": "/t.jks"}, "registry.ssl.truststore.location"),
    ],
)
def test_other_options_are_errors(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        from_avro("value", options=options, subject="orders-value", schemaRegistryAddress=ADDRESS)


def test_a_subject_or_a_schema_is_required() -> None:
    with pytest.raises(OptionError, match="subject is required"):
        from_avro("value", schemaRegistryAddress=ADDRESS)
