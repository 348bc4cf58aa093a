"""NumPy's functions on fields next to NumPy itself on the CPU, and on a GPU next to CuPy on the same device, in the same run.

    python benchmarks/numpy_functions.py [--device NAME] [--runs 20]

As benchmarks/scans.py: medians in milliseconds of a prepared step and of the other library's call, and their ratio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scans import Case, compare

SIDE, LONG = 4096, 2**24
PLACES = np.linspace(0, 1, 1000, dtype=np.float32)
VALUES = np.sin(9 * PLACES)


def interpolated(xp: Any, x: Any) -> Any:
    return xp.interp(x, xp.asarray(PLACES), xp.asarray(VALUES))


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(0)
    grid, row = rng.random((SIDE, SIDE), np.float32), rng.random(LONG, np.float32)
    holes = np.where(grid < 0.01, np.float32(np.nan), grid)
    taps, weights = rng.random(33, np.float32), rng.random(SIDE, np.float32)
    return {
        "length of gradient": (grid, lambda f: np.hypot(*np.gradient(f)), lambda xp, x: xp.hypot(*xp.gradient(x))),
        "round to 2 decimals": (grid, lambda f: np.round(f, 2), lambda xp, x: xp.round(x, 2)),
        "nan_to_num": (holes, np.nan_to_num, lambda xp, x: xp.nan_to_num(x)),
        "allclose": (
            grid,
            lambda f: np.allclose(f, f * 1.000001),
            lambda xp, x: xp.allclose(x, x * np.float32(1.000001)),
        ),
        "select of three": (
            grid,
            lambda f: np.select([f < 0.3, f < 0.6], [f * 2, f + 1], 0.5),
            lambda xp, x: xp.select([x < 0.3, x < 0.6], [x * 2, x + 1], np.float32(0.5)),
        ),
        "tril": (grid, np.tril, lambda xp, x: xp.tril(x)),
        "ptp along columns": (grid, lambda f: np.ptp(f, axis=0), lambda xp, x: xp.ptp(x, axis=0)),
        "matrix times row": (grid, lambda f: np.dot(f, weights), lambda xp, x: xp.dot(x, xp.asarray(weights))),
        "interp among 1000 of 2²⁴": (row, lambda f: np.interp(f, PLACES, VALUES), interpolated),
        "convolve of 2²⁴ by 33": (row, lambda f: np.convolve(f, taps), lambda xp, x: xp.convolve(x, xp.asarray(taps))),
        "maximum.accumulate of 2²⁴": (
            row,
            np.maximum.accumulate,
            lambda xp, x: xp.maximum.accumulate(x) if xp is np else xp.cumsum(x),  # CuPy has it not: a scan
        ),
    }


if __name__ == "__main__":
    compare(__doc__, cases)
