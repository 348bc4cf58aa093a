"""The Fourier transform library of the host."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any


def host_library() -> tuple[Any, dict[str, Any]]:
    """The module `scipy.fft`, with all cores, or `numpy.fft` if SciPy is missing."""
    if importlib.util.find_spec("scipy") is None:
        return importlib.import_module("numpy.fft"), {}
    return importlib.import_module("scipy.fft"), {"workers": os.cpu_count()}
