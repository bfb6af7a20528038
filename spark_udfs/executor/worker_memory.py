"""Memory settings of a Spark Python worker: the malloc thresholds of glibc and the garbage collector."""

import ctypes
import gc

KEPT_FREE_BYTES_MAX = 64 * 1024 * 1024
"""Free memory that the process keeps: several times the memory of one fetch (4 MiB by default)."""
MMAP_BYTES_MIN = 32 * 1024 * 1024
"""Larger buffers get their own mapping, which is returned on free. 32 MiB is the maximum that glibc accepts."""

# Constants of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_buffers() -> None:
    """Make glibc keep freed memory for the next allocation. No effect with another C library.

    By default glibc returns the top of its heap as soon as 128 KiB are free, and maps large buffers individually. Each
    fetch allocates and frees some megabytes. The page faults would cost as much as half of the decoding.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, KEPT_FREE_BYTES_MAX)
        mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES_MIN)


def freeze_loaded_objects() -> None:
    """Exclude all live objects from future garbage collections, also in forked processes.

    PySpark collects garbage after every task. With Arrow, pandas, Numba and the decoder loaded, that takes 0.1 s, which
    is several times the work of a small task. None of these objects ever becomes garbage.
    """
    gc.collect()
    gc.freeze()
