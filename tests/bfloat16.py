"""bfloat16 by hand: rounding of float32 by integer arithmetic, and samples."""

from __future__ import annotations

from typing import Any

import numpy as np

ALL = (np.arange(2**16, dtype=np.uint32) << np.uint32(16)).view(np.float32)  # every value


def nearest(values: Any) -> Any:
    """The nearest bfloat16 of each float32, the even one of two; NaN stays NaN."""
    wide = np.asarray(values, np.float32)
    bits = wide.view(np.uint32).astype(np.uint64)
    low, high = bits & 0xFFFF, bits >> 16
    up = (low > 0x8000) | ((low == 0x8000) & (high & 1 == 1))
    result = ((high + up) << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(wide), np.float32(np.nan), result)


def codes(values: Any) -> Any:
    """The 16 bits of numbers that are bfloat16 already."""
    return (np.asarray(values, np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def pairs() -> tuple[Any, Any]:
    """Pairs of all values, of whole numbers, and of numbers near to one another."""
    random = np.random.default_rng(5)
    x, y = ALL[random.integers(0, 2**16, (2, 2**14))]
    whole = random.integers(-300, 300, 2**14), random.integers(-50, 50, 2**14)
    close = random.normal(0, 3, 2**13)
    near = close + random.normal(0, 0.05, 2**13)
    return tuple(
        nearest(np.concatenate([np.float32(v) for v in each])) for each in ((x, whole[0], close), (y, whole[1], near))
    )
