"""Field methods that work along an axis in order, with NumPy semantics over `array_shape`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuop.dsl.fields import services

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class Ordered:
    """NumPy methods of the same names; docs/reference/numpy.md has the functions."""

    __slots__ = ()

    def _in_order(self, name: str, *args: Any) -> Field:
        found: Field = services.array_functions[name](name, (self, *args), {})
        return found

    def cumsum(self, axis: int | None = None) -> Field:
        """The sums of the values up to each.

        Args:
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field: int64 of bool and signed integers, uint64 of unsigned ones, float32 of unorm8, else of the dtype.

        Raises:
            SemanticError: an axis that is none.
        """
        return self._in_order("cumsum", axis)

    def cumprod(self, axis: int | None = None) -> Field:
        """The products of the values up to each.

        Args:
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field: of the dtypes of `cumsum`.

        Raises:
            SemanticError: an axis that is none, or a complex64 field.
        """
        return self._in_order("cumprod", axis)

    def searchsorted(self, v: Any, side: str = "left") -> Field:
        """Insertion positions of values into the field, a sorted row: the number of its values that are less.

        Args:
            v: a Field, an array or a number.
            side: "left", or "right", which counts those that are equal too.

        Returns:
            A lazy Field of int64, on the grid of `v`. NaN is more than any number.

        Raises:
            SemanticError: a field that is no row of scalars, a complex64 field, or another side.
        """
        return self._in_order("searchsorted", v, side)

    def argsort(self, axis: int | None = -1) -> Field:
        """Indices that sort the values along an axis; equal values keep their order, and NaN comes last.

        Args:
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field of int64.

        Raises:
            SemanticError: an axis that is none, or a complex64 field.
        """
        return self._in_order("argsort", axis)
