"""glibc's allocator, told to keep freed memory: models ask for the same sizes again and again.

By default every tensor over a few hundred KiB is mapped anew and given back when it is freed, so
that the next one pays for fresh pages; on small models that is a quarter of the time and more.
"""

from __future__ import annotations

import ctypes
from functools import cache

# Parameters of mallopt(3).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_KEPT_BYTES = 1 << 30
_GROWN_BYTES = 64 << 20


@cache
def keep_freed_memory() -> bool:
    """Keep up to 1 GiB of freed memory for the next tensor; once a process is enough.

    Returns:
        Whether the allocator took it; False where it is not glibc's, which then works as before.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, or Windows
        return False
    told = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _KEPT_BYTES), (_TOP_PAD, _GROWN_BYTES))
    return all(mallopt(parameter, value) == 1 for parameter, value in told)
