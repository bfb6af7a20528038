"""Brokers of the proxy tests: the embedded broker, and Apache Kafka for selected tests or, on request, for all."""

import os
from typing import Any

import pytest

HEADGATE = "headgate"
APACHE_KAFKA = "apache-kafka"
ANY: list[Any] = [HEADGATE, pytest.param(APACHE_KAFKA, marks=pytest.mark.kafka)]
CHOSEN: list[Any] = ANY if os.environ.get("HEADGATE_TEST_KAFKA") == "1" else [HEADGATE]
