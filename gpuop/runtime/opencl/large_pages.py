"""Large pages for buffers of CPU drivers, as NumPy has them for its arrays: Linux grants them on request.

A page of 2 MiB takes one TLB entry, where small ones take 512, and hardware prefetch
stops at the end of each page. Kernels that read many rows at a time use as many pages at once.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import lru_cache
from typing import Any

import numpy as np

LEAST = 1 << 22  # bytes; NumPy asks for arrays from this size on too
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # on systems with such pages


def in_large_pages(cl: Any, context: Any, buffer: Any) -> None:
    """Ask for large pages in the memory of a new buffer, which was not accessed yet."""
    if ADVICE is None or buffer.size < LEAST:
        return
    queue, unread = _idle(cl, context), cl.map_flags.WRITE_INVALIDATE_REGION
    mapped, _ = cl.enqueue_map_buffer(queue, buffer, unread, 0, (buffer.size,), np.dtype(np.uint8), is_blocking=True)
    first = -(-mapped.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    size = mapped.ctypes.data + buffer.size - first
    ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), ADVICE)  # a refusal changes nothing
    mapped.base.release(queue).wait()


@lru_cache(maxsize=4)
def _idle(cl: Any, context: Any) -> Any:
    """Return a queue without work."""
    return cl.CommandQueue(context)
