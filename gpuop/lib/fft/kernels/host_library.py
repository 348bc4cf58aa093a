"""The library of Fourier transforms in the host's memory."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any


def host_library() -> tuple[Any, dict[str, Any]]:
    """SciPy's transforms with all cores, or NumPy's where there is no SciPy."""
    if importlib.util.find_spec("scipy") is None:
        return importlib.import_module("numpy.fft"), {}
    return importlib.import_module("scipy.fft"), {"workers": os.cpu_count()}
