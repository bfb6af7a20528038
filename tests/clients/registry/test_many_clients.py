"""Stress test with 32 clients and a power cut: no 500, consistent ids and versions, no lost acknowledged write.

`REGISTRY_STRESS_REQUESTS` sets the number of requests that each client sends per phase.
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
REQUESTS = int(os.environ.get("REGISTRY_STRESS_REQUESTS", "20"))
SUBJECTS = 8


@dataclass
class Ledger:
    """The writes that the registry acknowledged."""

    text_of_id: dict[int, str] = field(default_factory=dict)
    id_of_text: dict[str, int] = field(default_factory=dict)
    versions: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    faults: list[str] = field(default_factory=list)
    answers: int = 0
    reached: dict[int, asyncio.Event] = field(default_factory=dict)

    def count(self) -> None:
        self.answers += 1
        if self.answers in self.reached:
            self.reached[self.answers].set()

    async def reaches(self, answers: int) -> None:
        await self.reached.setdefault(answers, asyncio.Event()).wait()

    def registered(self, subject: str, text: str, answer: dict[str, Any]) -> None:
        id, version = answer["id"], answer["version"]
        if self.text_of_id.setdefault(id, text) != text:
            self.faults.append(f"id {id} was given to two schemas")
        if self.id_of_text.setdefault(text, id) != id:
            self.faults.append(f"one schema has the ids {id} and {self.id_of_text[text]}")
        if self.versions[subject].setdefault(version, id) != id:
            self.faults.append(f"{subject} version {version} is two schemas")


async def client(url: str, ledger: Ledger, seed: int, requests: int) -> None:
    chance = random.Random(seed)
    # Without TLS verification: loading the certificate store once per client takes longer than the requests.
    async with httpx.AsyncClient(base_url=url, timeout=120, verify=False) as http:
        for _ in range(requests):
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
            ledger.count()
            if answer.status_code >= 500:
                ledger.faults.append(f"{answer.status_code} {answer.text}")


async def load(url: str, ledger: Ledger, requests: int, seed: int) -> None:
    await asyncio.gather(*(client(url, ledger, seed * 1000 + number, requests) for number in range(CLIENTS)))


def verify(url: str, ledger: Ledger) -> None:
    with httpx.Client(base_url=url, timeout=120, verify=False) as http:
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
        asyncio.run(load(process.url, ledger, REQUESTS, 1))
        assert ledger.answers == CLIENTS * REQUESTS
        verify(process.url, ledger)
        cut_at = ledger.answers + CLIENTS * REQUESTS // 2

        async def cut() -> None:
            running = asyncio.create_task(load(process.url, ledger, REQUESTS, 2))
            await ledger.reaches(cut_at)
            process.kill()
            await running

        asyncio.run(cut())
        assert ledger.answers < CLIENTS * REQUESTS * 2, "the power cut came after the last request"
        process.start()
        verify(process.url, ledger)
        answered = ledger.answers
        asyncio.run(load(process.url, ledger, REQUESTS // 2, 3))
        assert ledger.answers == answered + CLIENTS * (REQUESTS // 2)
        verify(process.url, ledger)
        assert ledger.faults == []
    finally:
        process.stop()


async def same_at_once(url: str) -> list[int]:
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        answers = await asyncio.gather(
            *(http.post(f"/subjects/t{n % 4}/versions", json={"schema": record("same")}) for n in range(CLIENTS))
        )
    return [answer.json()["id"] for answer in answers]


async def others_at_once(url: str) -> list[int]:
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
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
