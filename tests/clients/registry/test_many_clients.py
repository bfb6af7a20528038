"""32 clients at once, and the power cut in between: no 500, ids and versions consistent, acknowledged means kept.

`REGISTRY_STRESS_SECONDS=60` runs it for a minute.
"""

import asyncio
import os
import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.contract.registry.schemas import record
from tests.live.registry import RegistryProcess

CLIENTS = 32
SECONDS = float(os.environ.get("REGISTRY_STRESS_SECONDS", "4"))
SUBJECTS = 8


@dataclass
class Ledger:
    """What the registry acknowledged."""

    text_of_id: dict[int, str] = field(default_factory=dict)
    id_of_text: dict[str, int] = field(default_factory=dict)
    versions: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    faults: list[str] = field(default_factory=list)
    answers: int = 0

    def registered(self, subject: str, text: str, answer: dict[str, Any]) -> None:
        id, version = answer["id"], answer["version"]
        if self.text_of_id.setdefault(id, text) != text:
            self.faults.append(f"id {id} was given to two schemas")
        if self.id_of_text.setdefault(text, id) != id:
            self.faults.append(f"one schema has the ids {id} and {self.id_of_text[text]}")
        if self.versions[subject].setdefault(version, id) != id:
            self.faults.append(f"{subject} version {version} is two schemas")


async def client(url: str, ledger: Ledger, seed: int, until: float) -> None:
    chance = random.Random(seed)
    loop = asyncio.get_running_loop()
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        while loop.time() < until:
            subject = f"s{chance.randrange(SUBJECTS)}"
            text = record(f"f{chance.randrange(400)}")
            action = chance.random()
            try:
                if action < 0.6:
                    answer = await http.post(f"/subjects/{subject}/versions", json={"schema": text})
                    if answer.status_code == 200:
                        ledger.registered(subject, text, answer.json())
                elif action < 0.65:
                    answer = await http.delete(f"/subjects/{subject}/versions/latest")
                elif action < 0.8:
                    answer = await http.get(f"/subjects/{subject}/versions/latest")
                elif action < 0.9 and ledger.text_of_id:
                    id = chance.choice(list(ledger.text_of_id))
                    answer = await http.get(f"/schemas/ids/{id}")
                    if answer.status_code != 200 or answer.json()["schema"] != ledger.text_of_id[id]:
                        ledger.faults.append(f"id {id}: {answer.status_code} {answer.text}")
                else:
                    answer = await http.get(f"/subjects/{subject}/versions?deleted=true")
            except httpx.TransportError:
                return
            ledger.answers += 1
            if answer.status_code >= 500:
                ledger.faults.append(f"{answer.status_code} {answer.text}")


async def load(url: str, ledger: Ledger, seconds: float, seed: int) -> None:
    until = asyncio.get_running_loop().time() + seconds
    await asyncio.gather(*(client(url, ledger, seed * 1000 + number, until) for number in range(CLIENTS)))


def verify(url: str, ledger: Ledger) -> None:
    with httpx.Client(base_url=url, timeout=30) as http:
        for id, text in ledger.text_of_id.items():
            answer = http.get(f"/schemas/ids/{id}")
            assert answer.status_code == 200, f"id {id} was acknowledged and is gone: {answer.text}"
            assert answer.json()["schema"] == text
        for subject in ledger.versions:
            numbers = http.get(f"/subjects/{subject}/versions?deletedAsNegative=true").json()
            assert [abs(number) for number in numbers] == sorted(abs(number) for number in numbers)
            assert max(ledger.versions[subject]) <= max(abs(number) for number in numbers)


def test_32_clients_and_a_power_cut(tmp_path: Path) -> None:
    process = RegistryProcess(tmp_path, "--compatibility-level", "NONE")
    process.start()
    try:
        ledger = Ledger()
        asyncio.run(load(process.url, ledger, SECONDS, 1))
        verify(process.url, ledger)

        async def cut() -> None:
            running = asyncio.create_task(load(process.url, ledger, SECONDS, 2))
            await asyncio.sleep(SECONDS / 2)
            process.kill()
            await running

        asyncio.run(cut())
        process.start()
        verify(process.url, ledger)
        asyncio.run(load(process.url, ledger, SECONDS / 2, 3))
        verify(process.url, ledger)
        assert ledger.faults == []
        assert ledger.answers > CLIENTS
    finally:
        process.stop()


async def same_at_once(url: str) -> list[int]:
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        answers = await asyncio.gather(
            *(http.post(f"/subjects/t{n % 4}/versions", json={"schema": record("same")}) for n in range(CLIENTS))
        )
    return [answer.json()["id"] for answer in answers]


async def others_at_once(url: str) -> list[int]:
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        answers = await asyncio.gather(
            *(http.post("/subjects/u/versions", json={"schema": record(f"o{n}")}) for n in range(CLIENTS))
        )
    return sorted(answer.json()["version"] for answer in answers)


def test_the_same_schema_at_once_gets_one_id_and_others_consecutive_versions(tmp_path: Path) -> None:
    process = RegistryProcess(tmp_path, "--compatibility-level", "NONE")
    process.start()
    try:
        assert set(asyncio.run(same_at_once(process.url))) == {1}
        assert asyncio.run(others_at_once(process.url)) == list(range(1, CLIENTS + 1))
    finally:
        process.stop()
