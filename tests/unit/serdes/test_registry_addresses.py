"""Invalid registry addresses are rejected without quoting passwords."""

import pytest

from headgate.serdes import RegistryClient
from headgate.serdes.client.settings import RegistrySettings


@pytest.mark.parametrize(
    "url",
    [
        "http://ada:s3cret/@r:8081",
        "http://ada:12345/s3cret@r:8081",
        "http://ada:s3cret?x@r:8081",
        "http://ada:s3cret#x@r:8081",
        "http://ada:s3cret@r:port",
        "http://ada:s3cret@r:99999",
        "http://ada:s3cret@",
        "http://[ada:s3cret@r",
        "http://",
    ],
)
def test_an_invalid_address_is_rejected_and_not_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="write / as %2F") as refused:
        RegistryClient(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://r",
        "https://r:8081/",
        "http://ada:p%2Fq@r:8081/under/a/path",
        "http://ada:a@b@r:8081",
        "http://[::1]:8081",
    ],
)
def test_valid_addresses_are_accepted(url: str) -> None:
    assert RegistrySettings((url,)).urls == (url,)
