"""The methods of a Field that reduce axes to one value, with NumPy's meaning over `array_shape`."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from gpuop.dsl.fields import services

T = TypeVar("T")
Axes = int | tuple[int, ...] | None


class Reductions(Generic[T]):
    """Reductions count grid axes first, then the tensor's; negative axes count from the end; `axis=None` is all of them.

    The order of additions depends on the shape only: results are equal on every device and in every run. Sums are
    pairwise: their error grows with the logarithm of the number of values.

    Raises:
        SemanticError: an axis that is none, a dtype without an order, an empty axis where there is no value to choose, or
            an option of NumPy's other than `axis`.
    """

    __slots__ = ()

    def _reduce(self, name: str, axis: Axes, options: dict[str, Any]) -> T:
        result: T = services.algebra[name](self, axis, **options)
        return result

    def sum(self, axis: Axes = None, **options: Any) -> T:
        """The sum: int64 of bool and signed integers, uint64 of unsigned ones, float32 of unorm8, else of the dtype."""
        return self._reduce("sum", axis, options)

    def mean(self, axis: Axes = None, **options: Any) -> T:
        """The mean: float32 of integers, bool and unorm8, else of the dtype."""
        return self._reduce("mean", axis, options)

    def min(self, axis: Axes = None, **options: Any) -> T:
        """The least value; NaN if there is one."""
        return self._reduce("min", axis, options)

    def max(self, axis: Axes = None, **options: Any) -> T:
        """The greatest value; NaN if there is one."""
        return self._reduce("max", axis, options)

    def any(self, axis: Axes = None, **options: Any) -> T:
        """Whether a value is not 0; bool."""
        return self._reduce("any", axis, options)

    def all(self, axis: Axes = None, **options: Any) -> T:
        """Whether all values are not 0, as in `until=lambda new, old: (new == old).all()`; bool."""
        return self._reduce("all", axis, options)

    def argmin(self, axis: int | None = None, **options: Any) -> T:
        """Where the first least value (or NaN) is, along an axis or in the flattened array; int64."""
        return self._reduce("argmin", axis, options)

    def argmax(self, axis: int | None = None, **options: Any) -> T:
        """Where the first greatest value (or NaN) is, along an axis or in the flattened array; int64."""
        return self._reduce("argmax", axis, options)
