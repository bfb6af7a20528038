"""The configuration of a consumer instance."""

import pytest

from headgate.proxy.consumers.config import read_config


@pytest.mark.parametrize("default", ["avro", "native"])
def test_the_setting_is_the_default_form_of_logical_types(default: str) -> None:
    for body in (None, {}, {"logical.types": None}):
        assert read_config(body, default).formats.native_logical is (default == "native")
    assert read_config({"logical.types": "native"}, default).formats.native_logical
    assert not read_config({"logical.types": "avro"}, default).formats.native_logical
