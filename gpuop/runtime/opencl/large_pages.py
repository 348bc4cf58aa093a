"""Large pages for fields in the memory of CPUs' drivers, as NumPy has them for its arrays: Linux gives them to whom asks.

A page of 2 MiB takes one entry of the processor's tables of pages, where small ones take 512, and what is loaded ahead of its use
stops at the end of each page. Kernels that read many rows at a time have as many pages in use.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import lru_cache
from typing import Any

import numpy as np

LEAST = 1 << 22  # bytes; NumPy asks for arrays of so many too
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # where the system has such pages


def in_large_pages(cl: Any, context: Any, buffer: Any) -> None:
    """Ask for large pages in the place of a new buffer's, which nobody has touched."""
    if ADVICE is None or buffer.size < LEAST:
        return
    queue, unread = _idle(cl, context), cl.map_flags.WRITE_INVALIDATE_REGION
    mapped, _ = cl.enqueue_map_buffer(queue, buffer, unread, 0, (buffer.size,), np.dtype(np.uint8), is_blocking=True)
    first = -(-mapped.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    size = mapped.ctypes.data + buffer.size - first
    ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), ADVICE)  # refused, it is as it was
    mapped.base.release(queue).wait()


@lru_cache(maxsize=4)
def _idle(cl: Any, context: Any) -> Any:
    """A queue that has nothing to wait for."""
    return cl.CommandQueue(context)
