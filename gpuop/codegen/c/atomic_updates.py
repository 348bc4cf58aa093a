"""Values that compare-and-swap loops write, the same in every dialect."""

from __future__ import annotations

NEW = {  # by the old value y; for floats NaN is ignored, and -0 is less than 0
    "add": "y + x",
    "min": "x < y || y != y || (x == y && signbit(x)) ? x : y",
    "max": "x > y || y != y || (x == y && !signbit(x)) ? x : y",
}
