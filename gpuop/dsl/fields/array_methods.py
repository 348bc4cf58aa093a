"""Methods of NumPy arrays that fields have, with NumPy semantics over `array_shape`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from gpuop.base.errors import SemanticError
from gpuop.base.misspelt import hinted_methods
from gpuop.dsl.fields import services

Field = TypeVar("Field")  # the class of fields, which has these methods
ALGEBRA: Mapping[str, Callable[..., Any]] = services.algebra
Axes = int | tuple[int, ...] | None


class Reductions(Generic[Field]):
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
        result: Field = ALGEBRA[name](self, axis, **options)
        return result

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
        """The variance, in two passes over the values: float32 of integers, bool and unorm8, else of the dtype or that of parts."""
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


@hinted_methods
class ArrayMethods(Generic[Field]):
    """NumPy methods of the same names; docs/reference/numpy.md has the functions, and the effect on tensor axes."""

    __slots__ = ()

    def _array_function(self, name: str, *args: Any) -> Field:
        result: Field = services.array_functions[name](name, (self, *args), {})
        return result

    def cumsum(self, axis: int | None = None) -> Field:
        """The sums of the values up to each.

        Args:
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field: int64 of bool and signed integers, uint64 of unsigned ones, float32 of unorm8, else of the dtype.

        Raises:
            SemanticError: an axis that is none.
        """
        return self._array_function("cumsum", axis)

    def cumprod(self, axis: int | None = None) -> Field:
        """The products of the values up to each.

        Args:
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field: of the dtypes of `cumsum`.

        Raises:
            SemanticError: an axis that is none, or a complex field.
        """
        return self._array_function("cumprod", axis)

    def searchsorted(self, v: Any, side: str = "left") -> Field:
        """Insertion positions of values into the field, a sorted row: the number of its values that are less.

        Args:
            v: a Field, an array or a number.
            side: "left", or "right", which counts those that are equal too.

        Returns:
            A lazy Field of int64, on the grid of `v`. NaN is more than any number.

        Raises:
            SemanticError: a field that is no row of scalars, a complex field, or another side.
        """
        return self._array_function("searchsorted", v, side)

    def argsort(self, axis: int | None = -1) -> Field:
        """Indices that sort the values along an axis; equal values keep their order, and NaN comes last.

        Args:
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field of int64.

        Raises:
            SemanticError: an axis that is none, or a complex field.
        """
        return self._array_function("argsort", axis)

    # --- values ---------------------------------------------------------------------------------------------------

    def clip(self, min: Any = None, max: Any = None) -> Field:
        """The values, those below `min` or above `max` replaced by it.

        Args:
            min, max: numbers, arrays or Fields that broadcast to this one; None leaves a side open.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: bounds that do not broadcast, or a complex field.
        """
        return self._array_function("clip", min, max)

    def round(self, decimals: int = 0) -> Field:
        """The values rounded to so many decimals, halves to even; integers stay integers.

        Args:
            decimals: a number of digits behind the point; negative ones round before it.

        Returns:
            A lazy Field.
        """
        return self._array_function("round", decimals)

    def copy(self, order: str = "C") -> Field:
        """The field itself: fields do not change.

        Args:
            order: as of NumPy, without effect.
        """
        return self  # type: ignore[return-value]

    def take(self, indices: Any, axis: int | None = None, mode: str = "raise") -> Field:
        """The values at indices along an axis, or of the flattened array.

        Args:
            indices: a number, an array, or a Field of integers.
            axis: an axis of `array_shape`, or None.
            mode: "raise", "clip" or "wrap" for indices beyond the ends; a Field of indices takes the last two.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: an axis that is none, or an index out of bounds.
        """
        result: Field = services.array_functions["take"]("take", (self, indices, axis), {"mode": mode})
        return result

    def repeat(self, repeats: Any, axis: int | None = None) -> Field:
        """Each value as many times, one after another.

        Args:
            repeats: a number, or one for each index along the axis.
            axis: an axis of `array_shape`, or None for all values in row-major order, which gives a grid of one dimension.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: an axis that is none, or numbers of repeats that are not one for each index.
        """
        return self._array_function("repeat", repeats, axis)

    def dot(self, b: Any) -> Field:
        """The product, as of `np.dot`: of matrices as `a @ b`.

        Args:
            b: a Field, an array or a number.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: axes of unequal extents.
        """
        return self._array_function("dot", b)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Field:
        """The sum along a diagonal of two axes.

        Args:
            offset: of the diagonal, above the main one.
            axis1, axis2: numbers of axes of `array_shape`.

        Returns:
            A lazy Field, of the dtypes of `sum`.

        Raises:
            SemanticError: an axis that is none, or twice the same.
        """
        return self._array_function("trace", offset, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Field:
        """The values of a diagonal of two axes, which becomes the last axis.

        Args:
            offset, axis1, axis2: as of `trace`.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: an axis that is none, or twice the same.
        """
        return self._array_function("diagonal", offset, axis1, axis2)

    # --- axes ---------------------------------------------------------------------------------------------------

    @property
    def T(self) -> Field:
        """The field with its axes in reverse order."""
        return self._array_function("transpose")

    def transpose(self, *axes: Any) -> Field:
        """The field with its axes in another order.

        Args:
            axes: their numbers, one by one or in a tuple; none for the reverse order.

        Returns:
            A lazy Field: a tensor's axis that comes to stand before one of the grid's is the grid's.

        Raises:
            SemanticError: an axis that is none, is missing or given twice.
        """
        return self._array_function("transpose", _unpacked(axes) or None)

    def swapaxes(self, axis1: int, axis2: int) -> Field:
        """The field with two axes in each other's place.

        Args:
            axis1, axis2: their numbers.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: as of `transpose`.
        """
        return self._array_function("swapaxes", axis1, axis2)

    def reshape(self, *shape: Any) -> Field:
        """The same values, in row-major order, in another shape.

        Args:
            shape: extents, one by one or in a tuple; one of them may be -1.

        Returns:
            A lazy Field: tensors stay where the last axes of the shape are just theirs, else all axes are the grid's.

        Raises:
            SemanticError: a shape of another number of values.
        """
        return self._array_function("reshape", _unpacked(shape))

    def named(self, dims: Any) -> Field:
        """The same field with other names of its axes: `f.named("img:chan:y:x")`.

        Args:
            dims: a name for each axis, `_` for none, or Dims that it has.

        Returns:
            A Field; nothing is computed.

        Raises:
            SemanticError: not as many names as axes, or Dims of other extents.
        """
        result: Field = ALGEBRA["named"](self, dims)
        return result

    def with_tensor_order(self, tensor_order: int) -> Field:
        """The same values with so many of the last axes as the tensor's: planes of a grid become vectors, or vectors planes.

        Args:
            tensor_order: 0 makes all axes the grid's; 1 makes vectors of the last axis, 2 matrices of the last two.

        Returns:
            A lazy Field of the same `array_shape`.

        Raises:
            SemanticError: fewer axes than that, or tensors without elements.
        """
        result: Field = ALGEBRA["with_tensor_order"](self, tensor_order)
        return result

    def ravel(self) -> Field:
        """All values, in row-major order, in a grid of one dimension.

        Returns:
            A lazy Field.
        """
        return self._array_function("ravel")

    def flatten(self, order: str = "C") -> Field:
        """The same as `ravel`.

        Args:
            order: "C", row-major; fields have no other.

        Returns:
            A lazy Field.
        """
        if order != "C":
            raise SemanticError(
                f'flatten of a field is in row-major order, "C", not {order!r}: transpose it first, as in `f.T.flatten()`'
            )
        return self.ravel()

    def squeeze(self, axis: Any = None) -> Field:
        """The field without axes of extent 1.

        Args:
            axis: one or a tuple of them; by default all.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: an axis of another extent.
        """
        return self._array_function("squeeze", axis)


def _unpacked(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers that are given one by one, or in a tuple."""
    if len(args) == 1 and (args[0] is None or isinstance(args[0], (tuple, list))):
        return tuple(args[0] or ())
    return args
