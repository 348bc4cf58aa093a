"""NumPy's functions of real numbers, and those whose float32 differs between devices and NumPy in the last place."""

from __future__ import annotations

import numpy as np

from gpuop.ops.elementwise.numpy_functions import EVERY

FUNCTIONS = [name for name in EVERY if isinstance(getattr(np, name), np.ufunc) and name not in ("clip", "conjugate")]
NEAR = ("cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "hypot", "logaddexp", "logaddexp2", "power")
ANGLES = (
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "arctan2",
)
BY_DEVICES = (*NEAR, *ANGLES)
