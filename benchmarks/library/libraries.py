"""gpuop and the libraries beside it: what the names of expressions are in each of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop as gp

from .given import Arrays, scope_of, tensor_order
from .row import Row, action

PARTS_OF_SKIMAGE = ("filters", "measure", "morphology", "transform")


@dataclass
class Library:
    """A library beside gpuop.

    Attributes:
        name: as the page has it.
        calls: the attributes of a row that may have its call, the first one that is not empty.
        modules: by the names that expressions have for them.
        made: an array of NumPy's as one of its own.
        free: has its pool give back the device's memory that no array has any more.
    """

    name: str
    calls: tuple[str, ...]
    modules: dict[str, Any]
    made: Callable[[Any], Any]
    free: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.kept: dict[tuple[str, int], Any] = {}

    def code(self, row: Row) -> str:
        code = next((code for name in self.calls if (code := getattr(row, name))), "")
        return "" if "random" in row.names(code or "0") else code  # keys are gpuop's alone

    def action(self, row: Row, given: Arrays) -> Callable[[], Any]:
        code = self.code(row)
        arrays = lambda name, value: self.array(name, value, given.size)  # noqa: E731
        return action(code, self.modules | scope_of(row.names(code), given, arrays, self.made))

    def array(self, name: str, value: Any, size: int) -> Any:
        """One of `Arrays` of a size, made once."""
        if (name, size) not in self.kept:
            self.kept[name, size] = self.made(value)
        return self.kept[name, size]


GPUOP = {"np": np, "ndimage": gp.ndimage, "linalg": gp.linalg, "fft": gp.fft, "random": gp.random}


def field_of(name: str, array: Any) -> gp.Field:
    return gp.Field(array, tensor_order(name), str(array.dtype))


def on_cpus() -> Iterator[Library]:
    """SciPy or NumPy first, then those of the others that are installed."""
    import scipy.fft
    import scipy.ndimage

    modules = {"ndimage": scipy.ndimage, "fft": scipy.fft, "linalg": np.linalg, "np": np}
    yield Library("SciPy", ("reference", "call"), modules | {"rng": np.random.default_rng(0)}, lambda a: a)
    if found := _imported("skimage", *PARTS_OF_SKIMAGE):
        yield Library("scikit-image", ("skimage",), {"skimage": found, "np": np}, lambda a: a)
    if found := _imported("cv2"):
        yield Library("OpenCV", ("cv2",), {"cv2": found, "np": np}, lambda a: a)


def on_cuda() -> Iterator[Library]:
    """CuPy first, then those of the others that are installed."""
    cupy = importlib.import_module("cupy")
    parts = {part: importlib.import_module(f"cupyx.scipy.{part}") for part in ("ndimage", "fft")}
    modules = {"np": cupy, "linalg": cupy.linalg, **parts, "rng": cupy.random.default_rng(0)}
    yield Library("CuPy", ("reference", "call"), modules, cupy.asarray, cupy.get_default_memory_pool().free_all_blocks)
    if found := _imported("cucim.skimage", *PARTS_OF_SKIMAGE):
        yield Library("cuCIM", ("skimage",), {"skimage": found, "np": cupy}, cupy.asarray)
    if found := _imported("torch"):
        modules = {"torch": found, "device": "cuda", "np": np}
        yield Library("PyTorch", ("torch",), modules, lambda a: found.as_tensor(a).cuda(), found.cuda.empty_cache)


def _imported(name: str, *parts: str) -> Any:
    """A module, with its parts, or None."""
    try:
        module = importlib.import_module(name)
        for part in parts:
            importlib.import_module(f"{name}.{part}")
    except ImportError:
        return None
    return module


def all_cores() -> Any:
    """SciPy's transforms by as many threads as gpuop has."""
    import scipy.fft

    return scipy.fft.set_workers(os.cpu_count())
