"""Checks of single records in a produced batch."""

import pytest
from kio.schema.errors import ErrorCode

from headgate.broker.protocol.outcomes import Refusal
from headgate.broker.requests import record_rules
from headgate.broker.requests.record_rules import check_records
from headgate.broker.state.settings import BrokerSettings
from headgate.wire.buffer import Buffer
from headgate.wire.record_batch import BatchHeader, read_header
from headgate.wire.records import decompress_records
from tests.wire.record_batches import Batch, NewRecord

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("key", [b"key", None])
def test_a_batch_is_decompressed_once_for_all_checks(monkeypatch: pytest.MonkeyPatch, key: bytes | None) -> None:
    decompressed: list[int] = []

    def counted(batch: Buffer, header: BatchHeader, limit_bytes: int) -> Buffer:
        decompressed.append(len(batch))
        return decompress_records(batch, header, limit_bytes)

    monkeypatch.setattr(record_rules, "decompress_records", counted)
    configs = {"cleanup.policy": "compact", "message.timestamp.before.max.ms": "1000"}
    settings = BrokerSettings({}).topic_settings(configs)
    batch = Batch([NewRecord(b"value" * 100, key=key, timestamp=NOW_MS)], codec="gzip").encode()
    if key is None:
        with pytest.raises(Refusal) as refused:
            check_records(batch, read_header(batch), settings, "topic-0", NOW_MS, None)
        assert refused.value.code is ErrorCode.invalid_record
    else:
        check_records(batch, read_header(batch), settings, "topic-0", NOW_MS, None)
    assert decompressed == [len(batch)]
