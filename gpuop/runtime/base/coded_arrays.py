"""Arrays of bfloat16 on the host, as other libraries take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.runtime.base.dlpack import CPU, DLPackMemory, give


class CodedArray:
    """An array of bits, which DLPack names bfloat16; NumPy has no word for it.

    Args:
        array: of bits.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        a = self.array
        strides = tuple(step // a.itemsize for step in a.strides)
        memory = DLPackMemory(a.__array_interface__["data"][0], a.shape, strides, a.dtype, (CPU, 0), False, a)
        return give(memory, lambda: None)

    def copy(self) -> CodedArray:
        return CodedArray(np.array(self.array))
