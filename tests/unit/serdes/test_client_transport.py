"""TLS, credentials and limits of the registry client's transport."""

import ssl
from types import SimpleNamespace

import pytest

from headgate.serdes import BasicAuth, BearerAuth, RegistrySettings
from headgate.serdes.client.settings import TlsSettings
from headgate.serdes.client.transport import Bounded, needs_tls, tls_context
from tests.unit.serdes.stub_registry import ADDRESS


def test_credentials_are_not_shown() -> None:
    settings = RegistrySettings(
        (ADDRESS,), auth=BasicAuth("ada", "secret"), tls=TlsSettings(key_file="k", key_password="secret")
    )
    for each in (settings, BasicAuth("ada", "secret"), BearerAuth("secret"), TlsSettings(key_password="secret")):
        assert "secret" not in repr(each)


def test_certificates_are_verified_by_default() -> None:
    strict, lax = tls_context(TlsSettings()), tls_context(TlsSettings(verify=False))
    assert (strict.check_hostname, strict.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert (lax.check_hostname, lax.verify_mode) == (False, ssl.CERT_NONE)
    assert needs_tls(RegistrySettings(("http://a", "https://b")))
    assert not needs_tls(RegistrySettings(("http://a",)))


def test_a_response_is_limited_in_size_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("headgate.serdes.client.transport.time", SimpleNamespace(monotonic=lambda: now[0]))
    bounded = Bounded(RegistrySettings((ADDRESS,), answer_bytes_max=4, timeout_seconds=5.0))
    assert bounded.add(b"ab")
    assert bounded.add(b"cd")
    now[0] = 104.9
    assert bounded.add(b"")
    now[0] = 105.0
    assert not bounded.add(b"")
    now[0] = 100.0
    assert not bounded.add(b"e")
    assert bounded.content() == b"abcde"
