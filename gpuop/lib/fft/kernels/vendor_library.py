"""Fourier transforms by a vendor library in device memory: SciPy or NumPy on CPUs, cuFFT through CuPy on CUDA."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.kernel import LibraryCost
from gpuop.ir.types import FieldType
from gpuop.ops.device_operator import TakesBatches, apply_library
from gpuop.ops.layout.gather import own_place

NAMES = {"c2c": "fft_library", "r2c": "rfft_library", "c2r": "irfft_library"}
HALF = 32  # bits
MOST_AXES = 3  # most axes of a cuFFT plan
_functions: BoundedCache[Any, LibraryTransform] = BoundedCache(256)
_plans: BoundedCache[Any, Any] = BoundedCache(16)  # plans hold device memory


def by_library(field: Field, kind: str, axes: Sequence[int], sign: int, results: int) -> Field:
    """The transform of `by_passes`, by the library, which takes fields of pairs as interleaved complex numbers."""
    shape = list(field.field_shape)
    shape[axes[-1]] = results
    key = LibraryTransform(kind, tuple(field.field_shape), tuple(shape), tuple(axes), sign, field.dtype)
    function = _functions.get(key)
    if function is None:
        function = _functions[key] = key
    source = interleaved(field) if field.tensor_shape else field
    if kind == "c2r":
        return _own(apply_library(function, [source], FieldType(shape, (), field.dtype), True, function.cost))
    rows = apply_library(function, [source], row_type(shape, field.dtype), True, function.cost)
    return taken_apart(rows, shape, field.dtype)


def interleaved(field: Field) -> Field:
    """A field of pairs as interleaved complex numbers, one thread per number, so that it fuses with its producer.

    Two floats are the halves of a uint64, which a thread writes at its own point; two doubles are neighbours in a row.
    """
    shape, whole = field.field_shape, field.dtype == "float32"

    def body() -> None:
        k._globalThreads(shape)
        value = k._readTensor(field)
        if whole:
            low, high = (k._convert_ulong(k._as_uint(part)) for part in (value.x, value.y))
            k._writeTensor(k._out0, low | (high << HALF))
        else:
            first = k._ravel(own_place(len(shape)), shape) * 2
            k._writeTensor(k._out0, value.x, first)
            k._writeTensor(k._out0, value.y, first + 1)

    kind = row_type(shape, field.dtype)
    return library_call("fft_interleave", (kind,), [field], body, (), whole=True)[0]


def row_type(shape: Sequence[int], dtype: str) -> FieldType:
    """The type of interleaved complex numbers whose parts have this dtype."""
    return FieldType(shape, (), "uint64") if dtype == "float32" else FieldType(2 * math.prod(shape), (), dtype)


def taken_apart(rows: Field, shape: Sequence[int], dtype: str) -> Field:
    """The field of pairs of interleaved complex numbers."""

    def body() -> None:
        if dtype == "float32":
            bits = k._readTensor(rows)
            x, y = (k._as_float(k._convert_uint(part)) for part in (bits & (2**HALF - 1), bits >> HALF))
        else:
            first = k._ravel(own_place(len(shape)), shape) * 2
            x, y = (k._readTensor(rows, first + n, border="unchecked") for n in range(2))
        k._writeTensor(k._out0, k._vector(x, y))

    return library_call("fft_take_apart", (FieldType(shape, (2,), dtype),), [rows], body, ())[0]


def _own(field: Field) -> Field:
    """A copy of a library's result by a kernel."""
    return library_call(
        "fft_result", (field.type,), [field], lambda: k._writeTensor(k._out0, k._readTensor(field)), ()
    )[0]


@dataclass(frozen=True)
class LibraryTransform(TakesBatches):
    """An unscaled transform of NumPy or CuPy arrays.

    Attributes:
        kind: "c2c", "r2c" or "c2r".
        shape, into: the shapes of input and output, in real or complex numbers.
        sign: the sign of the exponent.
        dtype: the dtype of real numbers, and of the parts of complex numbers.
    """

    kind: str
    shape: tuple[int, ...]
    into: tuple[int, ...]
    axes: tuple[int, ...]
    sign: int
    dtype: str

    @property
    def __name__(self) -> str:
        return NAMES[self.kind]

    @property
    def cost(self) -> LibraryCost:
        """The usual count of operations: 5 n log2 n for complex numbers, half of that for real ones."""
        points = max(math.prod(self.shape), math.prod(self.into))
        each = 5.0 if self.kind == "c2c" else 2.5
        lengths = math.prod(max(self.shape[axis], self.into[axis]) for axis in self.axes)
        return LibraryCost(each * points * math.log2(max(lengths, 2)), len(self.axes))

    def over_batch(self, count: int) -> LibraryTransform:
        axes = tuple(axis + 1 for axis in self.axes)
        return replace(self, shape=(count, *self.shape), into=(count, *self.into), axes=axes)

    def __call__(self, source: Any, result: Any) -> None:
        both = "complex64" if self.dtype == "float32" else "complex128"
        source = (source if self.kind == "r2c" else source.view(both)).reshape(self.shape)
        result = (result if self.kind == "c2r" else result.view(both)).reshape(self.into)
        if type(source).__module__.startswith("cupy"):
            self._by_cufft(source, result)
        else:
            self._by_pocketfft(source, result)

    # --- on CPUs ------------------------------------------------------------------------------------------------

    def _by_pocketfft(self, source: Any, filled: Any) -> None:
        library, options = host_library()
        options |= {"axes": self.axes, "norm": "backward" if self.sign < 0 else "forward"}
        if self.kind == "c2r":
            options["s"] = [self.into[axis] for axis in self.axes]
        if library.__name__ == "numpy.fft":
            options["out"] = filled
        elif self.kind == "c2c":  # SciPy computes in place where it may overwrite, and allocates nothing
            np.copyto(filled, source)
            source, options["overwrite_x"] = filled, True
        name = {"c2c": "fftn" if self.sign < 0 else "ifftn", "r2c": "rfftn", "c2r": "irfftn"}[self.kind]
        result = getattr(library, name)(source, **options)
        if not np.may_share_memory(result, filled):
            filled[...] = result

    # --- on CUDA ------------------------------------------------------------------------------------------------

    def _by_cufft(self, source: Any, result: Any) -> None:
        runs = self._runs()
        if self.kind == "c2r":
            source = source.copy()  # cuFFT overwrites the input of transforms to real numbers
            for run in runs[:-1]:
                self._transform("c2c", run, source, source)
            self._transform("c2r", runs[-1], source, result)
            return
        for n, run in enumerate(reversed(runs)):
            self._transform(self.kind if n == 0 else "c2c", run, source if n == 0 else result, result)

    def _runs(self) -> list[tuple[int, ...]]:
        """The axes in groups of adjacent axes; for real transforms the last axis ends the last group."""
        runs: list[list[int]] = []
        last = self.axes[-1]
        for axis in sorted(self.axes):
            if runs and runs[-1][-1] == axis - 1 and len(runs[-1]) < MOST_AXES and (runs[-1][-1] != last):
                runs[-1].append(axis)
            else:
                runs.append([axis])
        return [tuple(run) for run in sorted(runs, key=lambda run: last in run)]

    def _transform(self, kind: str, run: Sequence[int], source: Any, result: Any) -> None:
        """Transform adjacent axes: the arrays are batches of interleaved lines."""
        begin, end = run[0], run[-1] + 1
        outer, inner = math.prod(source.shape[:begin]), math.prod(source.shape[end:])
        if not source.size:
            return
        inside, outside = source.shape[begin:end], result.shape[begin:end]
        cupy, cufft = importlib.import_module("cupy"), importlib.import_module("cupy.cuda.cufft")
        number = getattr(cufft, f"CUFFT_{kind.upper() if self.dtype == 'float32' else _of_doubles(kind)}")
        blocks = 1 if inner == 1 else outer
        distances = (math.prod(inside), math.prod(outside)) if inner == 1 else (1, 1)
        args = (
            outside if kind == "c2r" else inside, inside, inner, distances[0], outside, inner, distances[1], number,
            outer if inner == 1 else inner, "C", len(run) - 1, None,
        )  # fmt: skip
        key = args, source.device.id, cupy.cuda.get_current_stream().ptr
        plan = _plans.get(key)
        if plan is None:
            with warnings.catch_warnings():  # the first CuPy plan loads cuFFT, with a warning of another package
                warnings.simplefilter("ignore", DeprecationWarning)
                plan = _plans[key] = cufft.PlanNd(*args)
        read_from, write_to = source.reshape(blocks, -1), result.reshape(blocks, -1)
        for n in range(blocks):
            plan.fft(read_from[n], write_to[n], cufft.CUFFT_FORWARD if self.sign < 0 else cufft.CUFFT_INVERSE)


def _of_doubles(kind: str) -> str:
    return {"c2c": "Z2Z", "r2c": "D2Z", "c2r": "Z2D"}[kind]


# --- the Fourier transform library of the host ------------------------------------------------------------------------


def host_library() -> tuple[Any, dict[str, Any]]:
    """The module `scipy.fft`, with all cores, or `numpy.fft` if SciPy is missing."""
    if importlib.util.find_spec("scipy") is None:
        return importlib.import_module("numpy.fft"), {}
    return importlib.import_module("scipy.fft"), {"workers": os.cpu_count()}
