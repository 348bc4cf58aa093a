"""Field methods that change axes, with NumPy semantics over `array_shape`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuop.dsl.fields import services

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class Layouts:
    """NumPy methods of the same names; docs/reference/numpy.md has the functions, and the effect on tensor axes."""

    __slots__ = ()

    def _laid_out(self, name: str, *args: Any) -> Field:
        found: Field = services.array_functions[name](name, (self, *args), {})
        return found

    @property
    def T(self) -> Field:
        """The field with its axes in reverse order."""
        return self._laid_out("transpose")

    def transpose(self, *axes: Any) -> Field:
        """The field with its axes in another order.

        Args:
            axes: their numbers, one by one or in a tuple; none for the reverse order.

        Returns:
            A lazy Field: a tensor's axis that comes to stand before one of the grid's is the grid's.

        Raises:
            SemanticError: an axis that is none, is missing or given twice.
        """
        return self._laid_out("transpose", _unpacked(axes) or None)

    def swapaxes(self, axis1: int, axis2: int) -> Field:
        """The field with two axes in each other's place.

        Args:
            axis1, axis2: their numbers.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: as of `transpose`.
        """
        return self._laid_out("swapaxes", axis1, axis2)

    def reshape(self, *shape: Any) -> Field:
        """The same values, in row-major order, in another shape.

        Args:
            shape: extents, one by one or in a tuple; one of them may be -1.

        Returns:
            A lazy Field: tensors stay where the last axes of the shape are just theirs, else all axes are the grid's.

        Raises:
            SemanticError: a shape of another number of values.
        """
        return self._laid_out("reshape", _unpacked(shape))

    def named(self, dims: Any) -> Field:
        """The same field with other names of its axes: `f.named("img:chan:y:x")`.

        Args:
            dims: a name for each axis, `_` for none, or Dims that it has.

        Returns:
            A Field; nothing is computed.

        Raises:
            SemanticError: not as many names as axes, or Dims of other extents.
        """
        return services.algebra["named"](self, dims)

    def with_tensor_order(self, tensor_order: int) -> Field:
        """The same values with so many of the last axes as the tensor's: planes of a grid become vectors, or vectors planes.

        Args:
            tensor_order: 0 makes all axes the grid's; 1 makes vectors of the last axis, 2 matrices of the last two.

        Returns:
            A lazy Field of the same `array_shape`.

        Raises:
            SemanticError: fewer axes than that, or tensors without elements.
        """
        return services.algebra["with_tensor_order"](self, tensor_order)

    def ravel(self) -> Field:
        """All values, in row-major order, in a grid of one dimension.

        Returns:
            A lazy Field.
        """
        return self._laid_out("ravel")

    def squeeze(self, axis: Any = None) -> Field:
        """The field without axes of extent 1.

        Args:
            axis: one or a tuple of them; by default all.

        Returns:
            A lazy Field.

        Raises:
            SemanticError: an axis of another extent.
        """
        return self._laid_out("squeeze", axis)


def _unpacked(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers that are given one by one, or in a tuple."""
    if len(given) == 1 and (given[0] is None or isinstance(given[0], (tuple, list))):
        return tuple(given[0] or ())
    return given
