"""Memory settings of a Spark Python worker: the malloc thresholds of glibc and the garbage collector."""

import gc

from headgate.wire.allocator import set_malloc_thresholds

KEPT_FREE_BYTES_MAX = 64 * 1024 * 1024
"""Free memory that the process keeps: several times the memory of one fetch (4 MiB by default)."""
MMAP_BYTES_MIN = 32 * 1024 * 1024
"""Larger buffers get their own mapping, which is returned on free. 32 MiB is the maximum that glibc accepts."""


def keep_freed_buffers() -> None:
    """Keep freed memory for the next fetch. The page faults would cost as much as half of the decoding."""
    set_malloc_thresholds(kept_free_bytes_max=KEPT_FREE_BYTES_MAX, mmap_bytes_min=MMAP_BYTES_MIN)


def freeze_loaded_objects() -> None:
    """Exclude all live objects from future garbage collections, also in forked processes.

    PySpark collects garbage after every task. With Arrow, pandas and the decoder loaded, that takes 0.1 s, which
    is several times the work of a small task. None of these objects ever becomes garbage.
    """
    gc.collect()
    gc.freeze()
