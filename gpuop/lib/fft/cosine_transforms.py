"""Cosine and sine transforms of types 1 to 4 (scipy.fft): Fourier transforms of reordered values, with phase factors.

Types 2 and 3 are transforms of as many real numbers (J. Makhoul, A fast cosine transform in one and two dimensions, 1980), type 1
of the values and their mirror image, type 4 of complex numbers that are padded with as many zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuop.dsl as k
from gpuop.base.errors import ArgumentError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES, PARTS
from gpuop.ir.types import FieldType
from gpuop.lib.fft.array_calls import by_default, transforming_alone
from gpuop.lib.fft.kernels.axes import moved
from gpuop.lib.fft.kernels.passes import Pair, read, table, times
from gpuop.lib.fft.kernels.transform_node import fourier, scale_of, transform_input, transform_output
from gpuop.lib.fft.transforms import ONE, SEVERAL, check_lengths, lengths_of, one_length

Read = Callable[[Any], Pair]
BACK = {1: 1, 2: 3, 3: 2, 4: 4}  # the types of the inverse transforms


def _phases(step: float, start: float, count: int, dtype: str) -> Field:
    """exp(-iπ(start + step·k))."""
    return table(("phases", step, start, count), dtype, lambda: np.exp(-1j * np.pi * (start + step * np.arange(count))))


@dataclass(frozen=True)
class Cosines:
    """A transform along one axis.

    Attributes:
        sines: whether it is a sine transform.
        type: 1 to 4.
        axis: an axis of a field of real numbers.
        orthogonal: whether the values at one end, for type 1 at both, are scaled so that `norm="ortho"` is an orthogonal matrix.
    """

    sines: bool
    type: int
    axis: int
    orthogonal: bool
    method: str | None

    def of(self, field: Field) -> Field:
        """The transform without scale."""
        return {1: self._mirrored, 2: self._second, 3: self._third, 4: self._fourth}[self.type](field)

    def _transform(self, field: Field, kind: str, results: int) -> Field:
        return fourier(field, kind, (self.axis,), 1 if kind == "c2r" else -1, results, self.method)

    def _moved(
        self, name: str, field: Field, count: int, value: Callable[[Any, Read], Pair], *reads: Field, real: bool = True
    ) -> Field:
        name = f"{'dst' if self.sines else 'dct'}{self.type}_{name}"
        return moved(name, field, self.axis, count, value, self, field.field_shape, reads=reads, real=real)

    def _ends(self, x: Any, at: Any, count: int, factor: float) -> Any:
        """The indices of end values that the orthogonal matrix scales."""
        if not self.orthogonal or self.type == 4 or (self.sines and self.type == 1):
            return x
        last = at == count - 1
        ends = (at == 0) | last if self.type == 1 else last if self.sines else at == 0
        return k._where(ends, x * factor, x)

    def _mirrored(self, field: Field) -> Field:
        count = field.field_shape[self.axis]
        if self.sines:

            def odd(at: Any, x: Read) -> Pair:
                first = at <= count
                value = x(k._max(k._min(k._where(first, at - 1, 2 * count + 1 - at), count - 1), 0))[0]
                return k._where((at == 0) | (at == count + 1), 0 * value, k._where(first, value, 0 - value)), 0

            result = self._transform(self._moved("order", field, 2 * count + 2, odd), "r2c", count + 2)
            return self._moved("result", result, count, lambda at, z: (0 - z(at + 1)[1], 0))
        if count < 2:
            raise ArgumentError("Type 1 DCT requires at least two data points: DCT-I is not defined for size < 2")

        def even(at: Any, x: Read) -> Pair:
            place = k._where(at < count, at, 2 * count - 2 - at)
            return self._ends(x(place)[0], place, count, math.sqrt(2)), 0

        result = self._transform(self._moved("order", field, 2 * count - 2, even), "r2c", count)
        return self._moved("result", result, count, lambda at, z: (self._ends(z(at)[0], at, count, math.sqrt(0.5)), 0))

    def _second(self, field: Field) -> Field:
        count = field.field_shape[self.axis]
        phases = _phases(1 / (2 * count), 0, count, field.dtype)

        def order(at: Any, x: Read) -> Pair:
            first = 2 * at < count
            value = x(k._where(first, 2 * at, 2 * (count - 1 - at) + 1))[0]
            return (k._where(first, value, 0 - value) if self.sines else value), 0

        def result(at: Any, z: Read) -> Pair:
            place = count - 1 - at if self.sines else at
            first = place <= count // 2
            x, y = z(k._where(first, place, count - place))
            turned = times((x, k._where(first, y, 0 - y)), read(phases, [place]))
            return self._ends(2 * turned[0], at, count, math.sqrt(0.5)), 0

        spectrum = self._transform(self._moved("order", field, count, order), "r2c", count // 2 + 1)
        return self._moved("result", spectrum, count, result, phases)

    def _third(self, field: Field) -> Field:
        count = field.field_shape[self.axis]
        phases = _phases(1 / (2 * count), 0, count, field.dtype)

        def at_place(x: Read, place: Any) -> Any:
            own = count - 1 - place if self.sines else place
            return self._ends(x(own)[0], own, count, math.sqrt(2))

        def order(at: Any, x: Read) -> Pair:
            other = at_place(x, k._min(count - at, count - 1))
            return times((at_place(x, at), k._where(at == 0, 0 * other, 0 - other)), read(phases, [at]), -1)

        def result(at: Any, x: Read) -> Pair:
            even = at % 2 == 0
            value = x(k._where(even, at / 2, count - 1 - at / 2))[0]
            return (k._where(even, value, 0 - value) if self.sines else value), 0

        half = self._moved("order", field, count // 2 + 1, order, phases, real=False)
        return self._moved("result", self._transform(half, "c2r", count), count, result)

    def _fourth(self, field: Field) -> Field:
        count = field.field_shape[self.axis]
        before = _phases(1 / (2 * count), 0, count, field.dtype)
        behind = _phases(1 / (2 * count), 1 / (4 * count), count, field.dtype)

        def order(at: Any, x: Read) -> Pair:
            inside = k._min(at, count - 1)
            value, (a, b) = x(inside)[0], read(before, [inside])
            return k._where(at < count, value * a, 0 * a), k._where(at < count, value * b, 0 * b)

        def result(at: Any, z: Read) -> Pair:
            x, y = times(z(at), read(behind, [at]))
            return (-2 * y if self.sines else 2 * x), 0

        spectrum = self._transform(self._moved("order", field, 2 * count, order, before, real=False), "c2c", 2 * count)
        return self._moved("result", spectrum, count, result, behind)


def cosines(
    name: str, x: Field, type_: Any, lengths: Any, axes: Any, norm: Any, orthogonalize: bool | None, method: str | None
) -> Field:
    """A cosine or sine transform, or its inverse, along axes."""
    if type_ not in BACK:
        raise ArgumentError(f"invalid DCT/DST type {type_!r}: it is 1, 2, 3 or 4")
    if x.dtype in COMPLEX_DTYPES:
        parts: list[Any] = [
            cosines(name, part, type_, lengths, axes, norm, orthogonalize, method) for part in (x.real, x.imag)
        ]
        return parts[0] + 1j * parts[1]  # type: ignore[no-any-return]
    sines, inverse = "dst" in name, name.startswith("i")
    counts, numbers = lengths_of(x, lengths, axes)
    check_lengths(name, counts)
    orthogonal = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    kind, lead = BACK[type_] if inverse else type_, 1 if x.type.tensor_points > 1 else 0
    field = transform_input(x, dict(zip(numbers, counts, strict=True)), real=True)
    for axis in numbers:
        field = Cosines(sines, kind, axis + lead, orthogonal, method).of(field)
    scale = scale_of(norm, [_period(n, sines, kind) for n in counts], 1 if inverse else -1)
    return transform_output(field, x.type, scale)


def _of_array(name: str, x: Any, type_: Any, lengths: Any, axes: Any, norm: Any, orthogonalize: bool | None) -> Any:
    """The library function for such an array; None if the device has none."""
    counts, numbers = lengths_of(FieldType(tuple(x.shape), (), numpy_dtype(x)), lengths, axes)
    if type_ not in BACK or not numbers or min(counts) < 2:
        return None
    if orthogonalize is not None and str(x.dtype) in PARTS:  # SciPy scales only one part of these
        return None
    scale_of(norm, counts, 1)
    return transforming_alone(name, x, counts, numbers, norm, type=type_, orthogonalize=orthogonalize)


def _period(count: int, sines: bool, kind: int) -> int:
    return 2 * count if kind > 1 else 2 * (count + 1) if sines else 2 * (count - 1)


DOCUMENTED = """scipy.fft.{name}: {what}.

    Args:
        x: a Field, whose axes are those of the grid, each element of a tensor by itself; or an array. Of complex numbers both parts
            are transformed.
        type: 1 to 4.
        {lengths}
        norm: "backward", "ortho" or "forward".
        overwrite_x, workers: arguments of SciPy; results do not depend on them.
        orthogonalize: whether the matrix is orthogonal with `norm="ortho"`; by default it is with that norm.
        method: as of `fft`.

    Returns:
        A lazy Field of float64 for float64, else of float32; of an array, an array of the same library.

    Raises:
        ArgumentError: wrong types, axes, lengths, norms or methods; a ValueError and a RuntimeError.
    """
WHAT = {
    "dct": "the discrete cosine transform",
    "idct": "the inverse of a discrete cosine transform",
    "dst": "the discrete sine transform",
    "idst": "the inverse of a discrete sine transform",
}


def _documented(function: Callable[..., Any], name: str, several: bool) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = full = name + ("n" if several else "")
    what = WHAT[name] + (" along several axes" if several else "")
    function.__doc__ = DOCUMENTED.format(name=full, what=what, lengths=SEVERAL if several else ONE)

    def alone(x: Any, type: Any, norm: Any, orthogonalize: Any, **options: Any) -> Any:
        lengths, along = (
            (options["s"], options["axes"]) if several else (one_length(name, options["n"]), (options["axis"],))
        )
        return _of_array(name, x, type, lengths, along, norm, orthogonalize)

    return takes_arrays(library=by_default(alone))(function)


def _along_one(name: str) -> Callable[..., Any]:
    def function(
        x: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: bool | None = None,
        *,
        method: str | None = None,
    ) -> Any:
        return cosines(name, x, type, one_length(name, n), (axis,), norm, orthogonalize, method)

    return _documented(function, name, False)


def _along_several(name: str) -> Callable[..., Any]:
    def function(
        x: Any,
        type: int = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: bool | None = None,
        *,
        method: str | None = None,
    ) -> Any:
        return cosines(name, x, type, s, axes, norm, orthogonalize, method)

    return _documented(function, name, True)


dct, idct, dst, idst = map(_along_one, WHAT)
dctn, idctn, dstn, idstn = map(_along_several, WHAT)
