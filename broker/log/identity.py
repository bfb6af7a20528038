"""Cluster id and leader epoch of a data directory, stored in `meta.json` and in a copy of it.

The leader epoch counts unclean starts, so that clients detect records lost in a crash (KIP-320). A new cluster id
looks like another cluster to clients and tools. If both files are lost, the broker logs the new values as an error.
"""

import base64
import json
import logging
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from headgate.broker.log.checked_file import DamagedFile, read_checked, write_checked
from headgate.broker.log.leader_epochs import read_epochs

logger = logging.getLogger("headgate.broker.log")

_FILES = ("meta.copy.json", "meta.json")

# Added to the largest epoch of the partitions if the count of unclean starts is lost. A partition records an epoch with
# its first write, so the latest epochs may be missing from all partitions.
lost_epochs_skipped = 1_000


class Identity(NamedTuple):
    cluster_id: str
    unclean_starts: int


def read_identity(
    directory: Path, partitions: list[Path], *, stopped_cleanly: bool, store: Callable[[Callable[[], object]], None]
) -> Identity:
    """Return the identity for this start, and store it if it changed. Raises StorageError.

    `store` runs the writes, or postpones them on a full disk.
    """
    found: dict[str, Identity] = {}
    for name in _FILES:
        try:
            identity = _read(directory / name)
        except DamagedFile as error:
            logger.error("%s; using the other copy", error)
            continue
        if identity is not None:
            found[name] = identity
    if found:
        known = max(found.values(), key=lambda identity: identity.unclean_starts)
        current = known if stopped_cleanly else Identity(known.cluster_id, known.unclean_starts + 1)
    elif partitions:
        epoch = max((epoch for path in partitions for epoch, _ in _epochs(path)), default=0) + lost_epochs_skipped
        current = Identity(_new_cluster_id(), epoch)
        logger.error(
            "meta.json and its copy are lost: this directory now has the new cluster id %s and leader epoch %d. Clients"
            " and tools that remember the old cluster id take this for another cluster.",
            *current,
        )
    else:
        current = Identity(_new_cluster_id(), 0)
    for name in _FILES:
        if found.get(name) != current:
            store(partial(write_checked, directory / name, _encode(current), durable=name == "meta.json"))
    return current


def _read(path: Path) -> Identity | None:
    stored = read_checked(path)
    if stored is None:
        return None
    try:
        meta = json.loads(stored.content)
    except ValueError:
        raise DamagedFile(path, "it is not JSON") from None
    cluster_id, unclean_starts = (
        (meta.get("cluster_id"), meta.get("unclean_starts")) if isinstance(meta, dict) else ("", 0)
    )
    if not isinstance(cluster_id, str) or not cluster_id or type(unclean_starts) is not int or unclean_starts < 0:
        raise DamagedFile(path, "it does not hold a cluster id and a number of unclean starts")
    return Identity(cluster_id, unclean_starts)


def _encode(identity: Identity) -> bytes:
    return json.dumps({**identity._asdict(), "version": 1}).encode()


def _epochs(path: Path) -> list[tuple[int, int]]:
    try:
        return read_epochs(path)
    except DamagedFile:
        return []


def _new_cluster_id() -> str:
    """Return a random UUID in Kafka's format: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
