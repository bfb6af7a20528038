"""Creates KEKs and DEKs for tests."""

from typing import Any, Final

import httpx

from tests.live.registry import RegistryApi

KEKS: Final = "/dek-registry/v1/keks"


def make_kek(api: RegistryApi, name: str = "kek1", **fields: Any) -> dict[str, Any]:
    answer = api.post(KEKS, {"name": name, "kmsType": "local-kms", "kmsKeyId": "mykey", **fields})
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def make_dek(api: RegistryApi, subject: str = "orders-value", kek: str = "kek1", **fields: Any) -> httpx.Response:
    body = {"subject": subject, "encryptedKeyMaterial": "c2VjcmV0", **fields}
    return api.post(f"{KEKS}/{kek}/deks/{subject}", body)
