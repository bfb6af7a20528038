"""What the C library does with memory that is given back to it, in a Python worker.

glibc returns the top of its heap to the system as soon as 128 KiB of it are free, and maps large buffers one by one.
Reading takes and frees some megabytes for every fetch: their pages would be faulted in again for each, which costs as
much as half the decoding.
"""

import ctypes

KEPT_FREE_BYTES_MAX = 64 * 1024 * 1024
"""Free memory that stays with the worker: what one fetch (4 MiB by default) needs while it is read, several times."""
MAPPED_APART_BYTES_MIN = 32 * 1024 * 1024
"""From here on a buffer is mapped on its own, and given back at once. glibc takes no more than this."""

# malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_buffers() -> None:
    """Without effect where the C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, KEPT_FREE_BYTES_MAX)
        mallopt(_M_MMAP_THRESHOLD, MAPPED_APART_BYTES_MIN)
