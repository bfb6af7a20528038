"""Addresses with passwords in plans."""

import pytest

from headgate.spark_udfs.pipeline.plan import shown_value


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://ada:s3@cret@r:8081", "http://…@r:8081"),
        ("http://ada:s3/cret@r:8081/path", "http://…@r:8081/path"),
        ("http://ada:s3,cret@r:8081,http://bob:x@s:8081", "http://…@r:8081,http://…@s:8081"),
        ("http://r:8081,http://s:8081", "http://r:8081,http://s:8081"),
    ],
)
def test_no_part_of_a_password_is_shown(address: str, shown: str) -> None:
    assert shown_value("registry.url", address) == shown
