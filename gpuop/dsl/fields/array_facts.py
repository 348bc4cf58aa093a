"""What a Field tells of itself as an array: of the grid's axes, then of the tensor's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuop.dsl.fields import services
from gpuop.ir.types import Shape

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class ArrayFacts:
    """Attributes of NumPy's arrays, with their meaning."""

    __slots__ = ()

    @property
    def field_shape(self) -> Shape:
        raise NotImplementedError

    @property
    def tensor_shape(self) -> Shape:
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        """The extents of the array that `numpy` gives: `field_shape + tensor_shape`."""
        return Shape((*self.field_shape, *self.tensor_shape))

    @property
    def ndim(self) -> int:
        """How many axes the array has: the grid's and the tensor's."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values the array has."""
        return self.shape.points

    @property
    def mT(self) -> Field:
        """The field with its last two axes swapped."""
        return services.algebra["matrix_transpose"](self)

    @property
    def device(self) -> str:
        """The name of the device in use, such as "cuda:0": a field is evaluated there, wherever it comes from."""
        return services.above.device_in_use()
