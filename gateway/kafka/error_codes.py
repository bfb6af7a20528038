"""Kafka's error codes that aiokafka does not know. It reports them as UNKNOWN_SERVER_ERROR."""

from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode


def register_error_codes() -> None:
    """Add the missing codes to aiokafka's table, so that their names reach the user. May be called twice."""
    errors: Any = import_module("aiokafka.errors")
    for code in ErrorCode:
        if code.value not in errors.kafka_errors:
            name = code.name.upper()
            fields = {"errno": code.value, "message": name, "description": None, "retriable": code.retriable}
            errors.kafka_errors[code.value] = type(name, (errors.BrokerResponseError,), fields)
