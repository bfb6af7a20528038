"""Reads good and bad payloads, writes dead letters for the bad ones, repairs some of them and redrives them.

    python examples/poison_and_dead_letters.py http://localhost:8081

Needs a registry but no broker: lists replace the topics. A real program would use its Kafka client.
"""

import sys
import time

from headgate.serdes import (
    Decoded,
    Deserializer,
    Poison,
    Record,
    RegistryClient,
    Serializer,
    avro_schema,
    read_dead_letter,
    redrive,
    to_dead_letter,
)

SCHEMA = avro_schema(
    '{"type": "record", "name": "Reading", "fields": ['
    '{"name": "sensor", "type": "string"}, {"name": "celsius", "type": "double"}]}'
)


def main(registry_url: str) -> None:
    with RegistryClient(registry_url) as client:
        serializer, deserializer = Serializer(client, SCHEMA), Deserializer(client)
        good = serializer.serialize({"sensor": "roof", "celsius": 21.5}, topic="readings")
        assert good is not None
        payloads = [good, good[:-3], b"\x00\x00\x0f\x42\x40?", b'{"sensor": "roof"}', good + b"\n", None]
        dead_letters: list[Record] = []

        print("reading")
        for offset, payload in enumerate(payloads):
            outcome = deserializer.decode(payload)
            if isinstance(outcome, Decoded):
                print(f"  {offset}: {outcome.value}")
            elif isinstance(outcome, Poison):
                print(f"  {offset}: {outcome.reason.name} - {outcome.detail}")
                record = Record("readings", key=None, value=payload, partition=0, offset=offset)
                dead_letters.append(
                    to_dead_letter(
                        record,
                        outcome,
                        dead_letter_topic="readings.dead",
                        application="example",
                        now_ms=int(time.time() * 1000),
                    )
                )

        print("mending")
        for letter in dead_letters:
            facts = read_dead_letter(letter)
            if facts.reason is not None and facts.reason.name == "TRAILING_BYTES" and letter.value is not None:
                back = redrive(letter, by="example", now_ms=int(time.time() * 1000), value=letter.value.rstrip(b"\n"))
                print(f"  {facts.origin.topic}/{facts.origin.offset} goes back: {deserializer.decode(back.value)}")
            else:
                print(f"  {facts.origin.topic}/{facts.origin.offset} stays: {facts.reason and facts.reason.name}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8081")
