"""Derivatives beside central differences, and forward mode beside reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import SemanticError, described
from gpuop.base.misspelt import hinted
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.gradients.jvp import jvp
from gpuop.gradients.reverse import vjp

Array = NDArray[Any]
Function = Callable[..., Any]
MODES = ("fwd", "rev")
STEPS = {8: 1e-5, 4: 5e-3, 2: 0.1}  # of numbers about 1, by the bytes of a real number
TOLERANCES = {8: 1e-5, 4: 2e-2, 2: 0.2}
PLACES = 6  # of an argument, whose derivatives are compared one by one


@hinted
def check_grads(
    f: Function,
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Assert that the derivatives of a function of Fields are those that central differences show.

        gpuop.testing.check_grads(lambda u, k: diffused(u, k), (u, k), order=2)

    The differences are of the function itself, on the device in use, in the arguments' own dtype: take float64 where it can be had.
    Where both modes are checked, ⟨J·t, w⟩ = ⟨t, Jᵀ·w⟩ is too, without differences.

    Args:
        f: a function of Fields; it returns a Field of floating or complex numbers, or a tuple of them.
        args: its arguments; a list or tuple of Fields.
        order: 1, or how often: 2 checks the derivatives of the derivatives too.
        modes: "fwd" for `gp.jvp`, "rev" for `gp.vjp`.
        atol, rtol: the tolerance, by default 1e-5 of float64, 2e-2 of float32 and 0.2 of float16.
        eps: the step of differences of numbers about 1; by default 1e-5, 5e-3 and 0.1.

    Raises:
        AssertionError: with the argument, the place and both numbers.
        SemanticError: a construct that has no derivative; or wrong values of the arguments above.
    """
    __tracebackhide__ = True
    _check(args, order, modes)
    comparison = _comparison(f, tuple(args), atol, rtol, eps)
    if "fwd" in modes:
        comparison.forward()
    if "rev" in modes:
        comparison.reverse()
    if set(MODES) <= set(modes):
        comparison.transposed()
    for mode in modes if order > 1 else ():
        check_grads(comparison.derivative(mode), args, order - 1, modes, atol, rtol, eps)


def _check(args: Any, order: Any, modes: Any) -> None:
    if not isinstance(args, (tuple, list)) or not args or not all(isinstance(arg, Field) for arg in args):
        raise SemanticError(f"check_grads: the arguments are a tuple of Fields, as in `(u,)`, not {described(args)}")
    for arg in args:
        if arg.type.storage.kind != "f":
            raise SemanticError(
                f"check_grads: an argument is a {arg.type} field, and integers have no derivatives; let the function capture it"
            )
    if not isinstance(order, int) or order < 1:
        raise SemanticError(f"check_grads: `order=` is 1 or more, not {order!r}")
    if isinstance(modes, str) or not modes or not set(modes) <= set(MODES):
        raise SemanticError(f'check_grads: `modes=` is a tuple of "fwd" and "rev", not {modes!r}')


def _like(field: Field, array: Array) -> Field:
    """A Field of the type of another one."""
    dims = field.type.dims if field.type.names else ""
    return Field(array.astype(field.type.array_dtype), len(field.type.tensor_shape), dims=dims)


def _tuple(value: Any) -> tuple[Field, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _product(first: Sequence[Array], second: Sequence[Array]) -> float:
    """The sum of the products, whose real part counts of complex numbers."""
    return float(sum(np.sum(a.astype(complex) * b).real for a, b in zip(first, second, strict=True)))


@dataclass(frozen=True)
class Comparison:
    """A function at its arguments, and the tolerance."""

    f: Function
    fields: tuple[Field, ...]
    arrays: list[Array]
    atol: float
    rtol: float
    eps: float

    def forward(self) -> None:
        """Tangents along one direction in each argument, beside differences."""
        for number, array in enumerate(self.arrays):
            tangent = self.direction(array, number)
            tangents = [tangent if n == number else 0 * other for n, other in enumerate(self.arrays)]
            pushed = jvp(self.f, self.fields, [_like(f, t) for f, t in zip(self.fields, tangents, strict=True)])[1]
            for result, (slope, difference) in enumerate(
                zip(_tuple(pushed), self.differences(number, tangent), strict=True)
            ):
                self.compare(f"jvp: the tangent of result {result} by argument {number}", slope.numpy(), difference)

    def reverse(self) -> None:
        """Cotangents at some places of each argument, beside differences."""
        out, pull = vjp(self.f, *self.fields)
        weights = self.weights(out)
        pulled = self.pulled(pull, out, weights)
        for number, array in enumerate(self.arrays):
            for place, direction in self.places(array, number):
                moved = np.zeros_like(array)
                moved[place] = direction
                expected = _product(weights, self.differences(number, moved))
                value = pulled[number][place] * direction
                self.compare_at(f"vjp: the gradient by argument {number}", place, float(np.real(value)), expected)

    def transposed(self) -> None:
        """Both modes, each as the transpose of the other."""
        tangents = [self.direction(array, number) for number, array in enumerate(self.arrays)]
        out, pushed = jvp(self.f, self.fields, [_like(f, t) for f, t in zip(self.fields, tangents, strict=True)])
        out, pull = vjp(self.f, *self.fields)
        weights = self.weights(out)
        first = _product(weights, [field.numpy() for field in _tuple(pushed)])
        second = _product(self.pulled(pull, out, weights), tangents)
        scale = sum(float(np.abs(field.numpy()).sum()) for field in _tuple(pushed))
        if not np.isclose(first, second, self.rtol / 10, self.atol / 10 * max(scale, 1)):
            raise AssertionError(f"forward and reverse mode differ: ⟨J·t, w⟩ is {first!r}, and ⟨t, Jᵀ·w⟩ {second!r}")

    def derivative(self, mode: str) -> Function:
        """The function whose results are the derivatives of the first."""
        if mode == "fwd":
            tangents = [
                _like(field, self.direction(array, n))
                for n, (field, array) in enumerate(zip(self.fields, self.arrays, strict=True))
            ]
            return lambda *fields: jvp(self.f, fields, tangents)[1]
        return partial(self.gradient, self.weights(self.f(*self.fields)))

    def gradient(self, weights: Sequence[Array], *fields: Field) -> tuple[Field, ...]:
        out, pull = vjp(self.f, *fields)
        cotangents = tuple(_like(field, weight) for field, weight in zip(_tuple(out), weights, strict=True))
        pulled: tuple[Field, ...] = pull(cotangents if isinstance(out, tuple) else cotangents[0])
        return pulled

    def pulled(self, pull: Function, out: Any, weights: Sequence[Array]) -> list[Array]:
        cotangents = tuple(_like(field, weight) for field, weight in zip(_tuple(out), weights, strict=True))
        return [field.numpy() for field in pull(cotangents if isinstance(out, tuple) else cotangents[0])]

    def weights(self, out: Any) -> list[Array]:
        """A cotangent of each result."""
        return [self.direction(field.numpy(), 97 + n) for n, field in enumerate(_tuple(out))]

    def direction(self, array: Array, seed: int) -> Array:
        """Random numbers of the type of an array."""
        rng = np.random.default_rng(seed)
        numbers = rng.uniform(-1, 1, array.shape)
        if array.dtype.kind == "c":
            numbers = numbers + 1j * rng.uniform(-1, 1, array.shape)
        return numbers.astype(array.dtype)

    def places(self, array: Array, number: int) -> Iterator[tuple[tuple[int, ...], complex]]:
        """Some places of an argument, the first and the last among them, each with the directions of its parts."""
        inner = np.random.default_rng(number).permutation(array.size)[: PLACES - 2]
        for flat in dict.fromkeys([0, array.size - 1, *map(int, inner)] if array.size else []):
            place = tuple(map(int, np.unravel_index(flat, array.shape)))
            yield place, 1
            if array.dtype.kind == "c":
                yield place, 1j

    def differences(self, number: int, tangent: Array) -> list[Array]:
        """Central differences of the results, in a direction of one argument."""
        array = self.arrays[number]
        step = self.eps * max(1.0, float(np.abs(array).max(initial=0)))
        ends = []
        for side in (1, -1):
            moved = list(self.fields)
            moved[number] = _like(self.fields[number], array + array.dtype.type(side * step) * tangent)
            ends.append([field.numpy() for field in _tuple(self.f(*moved))])
        wide = complex if any(end.dtype.kind == "c" for end in ends[0]) else float
        return [(high.astype(wide) - low) / (2 * step) for high, low in zip(*ends, strict=True)]

    def compare(self, title: str, value: Array, expected: Array) -> None:
        scale = float(np.abs(expected).max(initial=0))
        close = np.isclose(value, expected, self.rtol, self.atol * max(scale, 1))
        if not close.all():
            place = tuple(map(int, np.argwhere(~close)[0]))
            self.report(title, place, value[place], expected[place])

    def compare_at(self, title: str, place: tuple[int, ...], value: float, expected: float) -> None:
        if not np.isclose(value, expected, self.rtol, self.atol * max(abs(expected), 1)):
            self.report(title, place, value, expected)

    def report(self, title: str, place: tuple[int, ...], value: Any, expected: Any) -> None:
        raise AssertionError(
            f"{title} is {value} at {list(place)}, and differences say {expected} (rtol={self.rtol:g}, atol={self.atol:g}, "
            f"eps={self.eps:g})"
        )


def _comparison(
    f: Function, fields: tuple[Field, ...], atol: float | None, rtol: float | None, eps: float | None
) -> Comparison:
    size = min(field.type.storage.bits // 8 for field in fields)
    return Comparison(
        f,
        fields,
        [field.numpy() for field in fields],
        TOLERANCES[size] if atol is None else atol,
        TOLERANCES[size] if rtol is None else rtol,
        STEPS[size] if eps is None else eps,
    )
