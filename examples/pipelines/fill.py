"""Produces the records that these pipelines read: three versions of Customer, orders, payments and poison.

headgate up                                         # in another terminal
python examples/pipelines/fill.py
headgate pipeline plan examples/pipelines/orders.toml
headgate pipeline run --once examples/pipelines/orders.toml
"""

import asyncio
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from headgate.serdes import RegistryClient, Serializer, avro_schema

HERE = Path(__file__).parent
NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)

CUSTOMERS: list[tuple[str, dict[str, Any]]] = [
    ("customer-v1.avsc", {"id": "ada", "name": "Ada Byron", "fax": "12 34"}),
    ("customer-v1.avsc", {"id": "alan", "name": "Alan Turing", "fax": None}),
    ("customer-v2.avsc", {"id": "mary", "name": "Mary Jackson", "fax": None, "country": "US"}),
    ("customer-v3.avsc", {"id": "ada", "full_name": "Ada Lovelace", "country": "GB"}),
]


def order(number: int, customer: str, amount: str, minutes: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": customer,
        "amount": Decimal(amount),
        "ordered_at": NOON + timedelta(minutes=minutes),
    }


ORDERS = [
    order(1, "ada", "19.90", 0),
    order(2, "alan", "250.00", 3),
    order(3, "ada", "120.50", 12),
    order(4, "mary", "5.00", 55),
    order(5, "nobody", "1.00", 300),
]
PAYMENTS = [
    {"order_id": 1, "paid_at": NOON + timedelta(minutes=5)},
    {"order_id": 3, "paid_at": NOON + timedelta(minutes=90)},
    {"order_id": 9, "paid_at": NOON + timedelta(minutes=300)},
]
POISON = [None, b'{"id": 6}', b"\x00\x00\x00\x00\x63nobody registered me", b"\x00\x00\x00"]


async def fill(bootstrap_server: str, registry_url: str) -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (HERE / "schemas").glob("*.avsc")}
    with RegistryClient(registry_url) as registry:
        serializers = {name: Serializer(registry, avro_schema(text)) for name, text in texts.items()}
        # aiokafka has no types.
        make_producer: Any = AIOKafkaProducer
        async with make_producer(bootstrap_servers=bootstrap_server) as producer:

            async def send(topic: str, key: str, value: bytes | None) -> None:
                await producer.send_and_wait(topic, value, key=key.encode())

            for name, customer in CUSTOMERS:
                await send("customers", str(customer["id"]), serializers[name].serialize(customer, topic="customers"))
            # A null value (tombstone) deletes the key from a table.
            await send("customers", "alan", None)
            for each in ORDERS:
                await send("orders", each["customer"], serializers["order.avsc"].serialize(each, topic="orders"))
            for at, poison in enumerate(POISON):
                await send("orders", f"poison {at}", poison)
            for each in PAYMENTS:
                payload = serializers["payment.avsc"].serialize(each, topic="payments")
                await send("payments", str(each["order_id"]), payload)


def make_legacy_database(file: Path) -> None:
    """Creates the database that `import.yaml` reads."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS clients (number INTEGER PRIMARY KEY, name TEXT, land TEXT)")
        connection.executemany(
            "INSERT OR IGNORE INTO clients VALUES (?, ?, ?)", [(1, "Konrad Zuse", "de"), (2, "Barbara Liskov", "us")]
        )
        connection.commit()


if __name__ == "__main__":
    make_legacy_database(HERE / os.environ.get("OUT", "out") / "legacy.db")
    asyncio.run(
        fill(
            os.environ.get("HEADGATE_BOOTSTRAP_SERVER", "127.0.0.1:9092"),
            os.environ.get("HEADGATE_REGISTRY_URL", "http://127.0.0.1:8081"),
        )
    )
