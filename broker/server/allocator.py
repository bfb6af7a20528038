"""What the C library does with memory that is given back to it.

glibc returns the top of its heap to the system as soon as 128 KiB of it are free, and maps anything larger anew. A
broker allocates and frees a buffer of a megabyte per request, so that, depending on what happens to lie above it, every
request has its pages given back and faulted in again: twice the processor time per byte.
"""

import ctypes

# Free memory that stays with the process for the next request, and the size from which a buffer is mapped on its own.
kept_free_bytes_max = 32 * 1024 * 1024
mapped_apart_bytes_min = 8 * 1024 * 1024

# malloc.h
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_buffers() -> None:
    """Without effect where the C library is not glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, kept_free_bytes_max)
        mallopt(_M_MMAP_THRESHOLD, mapped_apart_bytes_min)
