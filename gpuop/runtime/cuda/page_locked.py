"""Page-locked host memory that any thread may free: PyCUDA loses memory that another thread than its creator frees."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.runtime.base.backend import Array
from gpuop.runtime.cuda.driver import Active, returned


class _PageLocked:
    """The owner of such memory, which its NumPy arrays refer to."""

    def __init__(self, cu: Any, active: Active, nbytes: int) -> None:
        with active:
            address = int(returned(cu.cuMemHostAlloc(nbytes, cu.CU_MEMHOSTALLOC_PORTABLE)))
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
        active.at_end(self, "cuMemFreeHost", address)


def page_locked(cu: Any, active: Active, nbytes: int) -> Array:
    """Allocate bytes of page-locked host memory, one at least, for all contexts.

    Raises:
        DeviceError: the driver has none left.
    """
    return np.asarray(_PageLocked(cu, active, nbytes))


def lock_pages(cu: Any, active: Active, memory: Array) -> Array:
    """Page-lock whole pages for all contexts, if the system allows it, until no array refers to them."""
    address = memory.ctypes.data
    with active:
        (status,) = cu.cuMemHostRegister(address, memory.nbytes, cu.CU_MEMHOSTREGISTER_PORTABLE)
    if not status:
        active.at_end(memory, "cuMemHostUnregister", address)
    return memory
