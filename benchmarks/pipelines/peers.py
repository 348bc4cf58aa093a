"""Everyone who takes part beside gpuop; a library that is not installed is left out, and named."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import by_hand_opencl
from .contestant import Maker
from .pipeline import Pipeline

ON_CPUS = {  # the library that is needed, and who is asked for entries
    "halide": ("peers_halide", "entries"),
    "numba": ("peers_numba", "entries"),
    "cv2": ("peers_cpu", "opencv_entries"),
    "scipy": ("peers_cpu", "scipy_entries"),
    "jax": ("peers_arrays", "jax_entries"),
    "numpy": ("peers_cpu", "numpy_entries"),
}
ON_GPUS = {
    "cupy": ("peers_cupy", "entries"),
    "cupyx": ("by_hand_cuda", "entries"),
    "torch": ("peers_arrays", "torch_entries"),
    "jax": ("peers_arrays", "jax_entries"),
}


def entries(pipeline: Pipeline, backend: Any) -> tuple[dict[str, Maker], dict[str, str]]:
    """The contestants of this pipeline, and the libraries that are not there."""
    found, missing = dict(by_hand_opencl.entries(pipeline, backend)), dict[str, str]()
    for library, (file, name) in (ON_CPUS if backend.target.device == "cpu" else ON_GPUS).items():
        try:
            import_module(library)
            offered: Callable[[Pipeline], dict[str, Maker]] = getattr(import_module(f".{file}", __package__), name)
            found |= offered(pipeline)
        except ImportError as wrong:
            missing[library] = str(wrong)
    return found, missing
