"""Fourier transforms of fields and arrays (scipy.fft): complex, real and Hermitian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpuop.base.errors import ArgumentError, UnsupportedError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.array_arguments import takes_arrays
from gpuop.ir.dtype_names import COMPLEX_DTYPES, complex_dtype
from gpuop.ir.types import FieldType
from gpuop.lib.fft.array_calls import by_default, transforming_alone
from gpuop.lib.fft.kernels.transform_node import fourier, scale_of, transform_input, transform_output
from gpuop.lib.ndimage.filter_arguments import axes_of
from gpuop.lib.ndimage.scalar_arguments import whole

Lengths = Any  # an integer, a sequence of them, or None

DOCUMENTED = """scipy.fft.{name}: {what}.

    Args:
        x: a Field, whose axes are those of the grid, each element of a tensor by itself; or an array.
        {lengths}
        norm: "backward", "ortho" or "forward"{scaled}.
        overwrite_x, workers: arguments of SciPy; results do not depend on them.
        plan: None.
        method: "library" or "passes"; by default the library's of devices that have arrays for one, else gpuop's own kernels.

    Returns:
        A lazy {kind}; of an array, an array of the same library. Of float64 and complex128 it is computed in double.

    Raises:
        ArgumentError: wrong axes, lengths, norms or methods; a ValueError and a RuntimeError.
    """
ONE = "n, axis: the axis, and its length in the transform: cut, or with zeros behind."
SEVERAL = "s, axes: the axes, and their lengths in the transform: cut, or with zeros behind."


@dataclass(frozen=True)
class Kind:
    """A kind of transform.

    Attributes:
        name: the name of the transform along one axis.
        numbers: "c2c", "r2c" or "c2r", as in `by_passes`.
        inverse: whether `norm` is that of an inverse transform.
        conjugate: whether the complex side, input or output, is conjugated.
        what: a description for docstrings and messages.
    """

    name: str
    numbers: str
    inverse: bool
    conjugate: bool
    what: str

    def extents(self, x: Field | FieldType, lengths: Lengths, axes: Any) -> tuple[list[int], tuple[int, ...]]:
        """The lengths of the transformed axes, on the real side of real transforms, and the numbers of these axes."""
        counts, numbers = lengths_of(x, lengths, axes)
        if self.numbers == "r2c" and x.dtype in COMPLEX_DTYPES:
            raise UnsupportedError(f"{self.name}: x must be a real sequence, and this one is complex")
        if numbers and self.numbers == "c2r" and (lengths is None or _last(lengths) in (None, -1)):
            counts[-1] = 2 * (counts[-1] - 1)
        check_lengths(self.name, counts)
        return counts, numbers

    def of(self, x: Field, lengths: Lengths, axes: Any, norm: Any, method: str | None) -> Field:
        """The transform of a field."""
        counts, numbers = self.extents(x, lengths, axes)
        if not numbers:
            return x.astype(complex_dtype(x.dtype))
        last, elements = numbers[-1], x.type.tensor_points
        half, lead = counts[-1] // 2 + 1, 1 if elements > 1 else 0
        given_counts = dict(zip(numbers, counts, strict=True)) | ({last: half} if self.numbers == "c2r" else {})
        source = transform_input(x, given_counts, self.numbers == "r2c", self.conjugate)
        sign = {"c2c": 1 if self.inverse else -1, "r2c": -1, "c2r": 1}[self.numbers]
        results = half if self.numbers == "r2c" else counts[-1]
        result = fourier(source, self.numbers, [a + lead for a in numbers], sign, results, method)
        return transform_output(result, x.type, scale_of(norm, counts, 1 if self.inverse else -1), self.conjugate)

    def of_array(self, x: Any, lengths: Lengths, axes: Any, norm: Any) -> Any:
        """The library function for such an array; None if the device has none."""
        counts, numbers = self.extents(FieldType(tuple(x.shape), (), numpy_dtype(x)), lengths, axes)
        scale_of(norm, counts, 1)
        return transforming_alone(self.name, x, counts, numbers, norm) if numbers else None


def _last(lengths: Any) -> Any:
    return lengths[-1] if isinstance(lengths, Sequence) else lengths


def lengths_of(x: Field | FieldType, lengths: Lengths, axes: Any) -> tuple[list[int], tuple[int, ...]]:
    """The lengths of the transformed axes, and their numbers."""
    count = len(x.field_shape)
    given_lengths = None if lengths is None else list(lengths) if isinstance(lengths, Sequence) else [lengths]
    if axes is None and given_lengths is not None:
        if len(given_lengths) > count:
            raise ArgumentError("shape requires more axes than are present")
        axes = range(count - len(given_lengths), count)
    numbers = axes_of(axes, count)
    if given_lengths is None:
        return [x.field_shape[a] for a in numbers], numbers
    if len(given_lengths) != len(numbers):
        raise ArgumentError("when given, axes and shape arguments have to be of the same length")
    extents = [x.field_shape[a] if n in (None, -1) else n for a, n in zip(numbers, given_lengths, strict=True)]
    return [whole(n, "s") for n in extents], numbers


def check_lengths(name: str, counts: Sequence[int]) -> None:
    """Refuse lengths below 1."""
    for count in counts:
        if count < 1:
            raise ArgumentError(f"{name}: invalid number of data points ({count}) specified")


def one_length(name: str, n: Any) -> Any:
    """The length along one axis, checked: -1, the axis' own length, is allowed only for several axes."""
    if n is not None:
        check_lengths(name, [whole(n, "n")])
    return n


def _without_plan(plan: Any) -> None:
    if plan is not None:
        raise UnsupportedError("`plan=` is None: gpuop makes and caches the plans itself")


KINDS = (
    Kind("fft", "c2c", False, False, "the discrete Fourier transform"),
    Kind("ifft", "c2c", True, False, "the inverse of a discrete Fourier transform"),
    Kind(
        "rfft", "r2c", False, False, "the first half of the transform of real numbers; the others are their conjugates"
    ),
    Kind("irfft", "c2r", True, False, "real numbers from the first half of their transform: the inverse of `rfft`"),
    Kind(
        "hfft",
        "c2r",
        False,
        True,
        "the transform, of real numbers, of a signal with Hermitian symmetry, from its first half",
    ),
    Kind(
        "ihfft",
        "r2c",
        True,
        True,
        "the first half of a signal with Hermitian symmetry, from its transform: the inverse of `hfft`",
    ),
)
Made = Callable[..., Any]


def _documented(function: Made, kind: Kind, suffix: str) -> Made:
    function.__name__ = function.__qualname__ = name = kind.name + suffix
    function.__doc__ = DOCUMENTED.format(
        name=name,
        what=kind.what + {"": "", "2": " along two axes", "n": " along several axes"}[suffix],
        lengths=SEVERAL if suffix else ONE,
        scaled=", as in SciPy" if kind.inverse else "",
        kind="real Field" if kind.numbers == "c2r" else "complex Field",
    )

    def alone(x: Any, norm: Any, n: Any = None, s: Any = None, axis: Any = None, axes: Any = None, **_: Any) -> Any:
        lengths, along = (s, axes) if suffix else (one_length(name, n), (axis,))
        return kind.of_array(x, lengths, along, norm)

    return takes_arrays(library=by_default(alone))(function)


def _along_one(kind: Kind) -> Made:
    def function(
        x: Any,
        n: int | None = None,
        axis: int = -1,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
        method: str | None = None,
    ) -> Any:
        _without_plan(plan)
        return kind.of(x, one_length(kind.name, n), (axis,), norm, method)

    return _documented(function, kind, "")


def _along_several(kind: Kind, suffix: str, usual: tuple[int, ...] | None = None) -> Made:
    def function(
        x: Any,
        s: Lengths = None,
        axes: Any = usual,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
        method: str | None = None,
    ) -> Any:
        _without_plan(plan)
        return kind.of(x, s, axes, norm, method)

    return _documented(function, kind, suffix)


fft, ifft, rfft, irfft, hfft, ihfft = map(_along_one, KINDS)
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (_along_several(kind, "2", (-2, -1)) for kind in KINDS)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (_along_several(kind, "n") for kind in KINDS)
