"""The meaning of the borders of reads, apart from gpuop: in plain Python, and under NumPy's and SciPy's names."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpuop.ir.borders import WORDS

CHECKED = tuple(word for word in WORDS if word != "unchecked")  # those that may be read outside
PLACES: dict[str, Callable[[int, int], int | None]] = {  # the index that stands for i of n points; None: 0 does
    "clamp": lambda i, n: min(max(i, 0), n - 1),
    "zero": lambda i, n: i if 0 <= i < n else None,
    "wrap": lambda i, n: i % n,
    "reflect": lambda i, n: abs((i + n - 1) % max(2 * n - 2, 1) - n + 1),
    "symmetric": lambda i, n: [*range(n), *reversed(range(n))][i % (2 * n)],
}
MODES = {  # those that numpy.pad has, and what scipy.ndimage calls them
    "clamp": ("edge", "nearest"),
    "zero": ("constant", "grid-constant"),
    "wrap": ("wrap", "grid-wrap"),
    "reflect": ("reflect", "mirror"),
    "symmetric": ("symmetric", "reflect"),
}


def away(x: np.ndarray, *steps: int, border: str = "clamp", fill: float = 0) -> np.ndarray:
    """The values so many steps away, along the last axes."""
    inside = np.ones(x.shape, bool)
    for axis, k in zip(range(x.ndim - len(steps), x.ndim), steps, strict=True):
        n = x.shape[axis]
        places = [PLACES[border](i + k, n) for i in range(n)]
        shape = [n if a == axis else 1 for a in range(x.ndim)]
        inside &= np.reshape([p is not None for p in places], shape)
        x = np.take(x, [p or 0 for p in places], axis)
    return np.where(inside, x, x.dtype.type(fill))
