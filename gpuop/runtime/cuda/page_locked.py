"""Page-locked memory of the host, which whatever thread may let go of: PyCUDA's is lost when another one than its maker does."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuop.runtime.base.backend import Array
from gpuop.runtime.cuda.driver import Active, returned


class _PageLocked:
    """What NumPy's arrays of such memory keep."""

    def __init__(self, cu: Any, active: Active, nbytes: int) -> None:
        with active:
            address = int(returned(cu.cuMemHostAlloc(nbytes, cu.CU_MEMHOSTALLOC_PORTABLE)))
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
        active.at_end(self, "cuMemFreeHost", address)


def page_locked(cu: Any, active: Active, nbytes: int) -> Array:
    """Bytes of the host, one at least, for all contexts.

    Raises:
        DeviceError: the driver has none left.
    """
    return np.asarray(_PageLocked(cu, active, nbytes))


def lock_pages(cu: Any, active: Active, memory: Array) -> Array:
    """Whole pages that others have made, page-locked for all contexts where the system allows it, until no array has them."""
    address = memory.ctypes.data
    with active:
        (status,) = cu.cuMemHostRegister(address, memory.nbytes, cu.CU_MEMHOSTREGISTER_PORTABLE)
    if not status:
        active.at_end(memory, "cuMemHostUnregister", address)
    return memory
