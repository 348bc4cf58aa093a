"""Field methods that reduce axes to one value, with NumPy semantics over `array_shape`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuop.dsl.fields import services

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field

Axes = int | tuple[int, ...] | None


class Reductions:
    """Reductions count grid axes first, then the tensor's; negative axes count from the end; `axis=None` is all of them.

    The order of additions depends on the shape only: results are equal on every device and in every run. Sums are
    in a tree: their error grows with the logarithm of the number of values.

    Args:
        axis: an axis of `array_shape`, by its number or its name, a tuple of them (one for argmin and argmax), or None.
        options: NumPy's, by name. `keepdims=True` keeps reduced axes, with an extent of 1. `where=`, a field of bools that
            broadcasts to this one, says which values count (not of argmin and argmax). `initial=` is a number that sums,
            products and extremes start with; extremes that take `where=` need it. `ddof=` is what std and var take from the
            number of values that they divide by.

    Raises:
        SemanticError: an axis that is none, a dtype without an order, an empty axis where there is no value to choose, or
            an option that is not named above.
    """

    __slots__ = ()

    def _reduce(self, name: str, axis: Axes, options: dict[str, Any]) -> Field:
        return services.algebra[name](self, axis, **options)

    def sum(self, axis: Axes = None, **options: Any) -> Field:
        """The sum: int64 of bool and signed integers, uint64 of unsigned ones, float32 of unorm8, else of the dtype."""
        return self._reduce("sum", axis, options)

    def prod(self, axis: Axes = None, **options: Any) -> Field:
        """The product: int64 of bool and signed integers, uint64 of unsigned ones, float32 of unorm8, else of the dtype."""
        return self._reduce("prod", axis, options)

    def mean(self, axis: Axes = None, **options: Any) -> Field:
        """The mean: float32 of integers, bool and unorm8, else of the dtype."""
        return self._reduce("mean", axis, options)

    def std(self, axis: Axes = None, **options: Any) -> Field:
        """The standard deviation, the root of `.var`."""
        return self._reduce("std", axis, options)

    def var(self, axis: Axes = None, **options: Any) -> Field:
        """The variance, in two passes over the values: float32 of integers, bool, unorm8 and complex64, else of the dtype."""
        return self._reduce("var", axis, options)

    def min(self, axis: Axes = None, **options: Any) -> Field:
        """The least value; NaN if there is one."""
        return self._reduce("min", axis, options)

    def max(self, axis: Axes = None, **options: Any) -> Field:
        """The greatest value; NaN if there is one."""
        return self._reduce("max", axis, options)

    def any(self, axis: Axes = None, **options: Any) -> Field:
        """Return whether any value is not 0; bool."""
        return self._reduce("any", axis, options)

    def all(self, axis: Axes = None, **options: Any) -> Field:
        """Return whether all values are not 0, as in `until=lambda new, old: (new == old).all()`; bool."""
        return self._reduce("all", axis, options)

    def argmin(self, axis: int | None = None, **options: Any) -> Field:
        """Index of the first least value (or NaN), along an axis or in the flattened array; int64."""
        return self._reduce("argmin", axis, options)

    def argmax(self, axis: int | None = None, **options: Any) -> Field:
        """Index of the first greatest value (or NaN), along an axis or in the flattened array; int64."""
        return self._reduce("argmax", axis, options)
