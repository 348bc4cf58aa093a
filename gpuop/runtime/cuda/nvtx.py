"""Names for NVIDIA tools (NVTX), if its package or its library is installed."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

LIBRARIES = ("libnvToolsExt.so.1", "nvToolsExt64_1.dll")


def nvtx_range(name: str) -> Callable[[], Any]:
    """Begin a range and return the function that ends it; ranges may end in any order."""
    functions = _functions()
    if functions is None:
        return bool
    start, end = functions
    return partial(end, start(name))


@cache
def _functions() -> tuple[Callable[[str], Any], Callable[[Any], Any]] | None:
    """Return the functions that begin and end a range: of the package `nvtx`, or of the library in CUDA up to 12."""
    with suppress(ImportError):
        package = importlib.import_module("nvtx")
        return package.start_range, package.end_range
    for name in LIBRARIES:
        with suppress(OSError):
            return _of_library(ctypes.CDLL(name))
    return None


def _of_library(library: ctypes.CDLL) -> tuple[Callable[[str], Any], Callable[[Any], Any]]:
    library.nvtxRangeStartA.restype = ctypes.c_uint64
    library.nvtxRangeEnd.argtypes = (ctypes.c_uint64,)
    return lambda name: library.nvtxRangeStartA(name.encode()), library.nvtxRangeEnd
