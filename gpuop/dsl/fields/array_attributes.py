"""Array attributes of a Field: grid axes first, then tensor axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuop.base.errors import ArgumentError
from gpuop.dsl.fields import services
from gpuop.ir.types import Shape

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class ArrayFacts:
    """Attributes of NumPy arrays, with the same meaning."""

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
        """Number of axes of the array: those of the grid and of the tensor."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values of the array."""
        return self.shape.points

    @property
    def mT(self) -> Field:
        """The field with its last two axes swapped."""
        return services.algebra["matrix_transpose"](self)

    @property
    def device(self) -> str:
        """The name of the device in use, such as "cuda:0": a field is evaluated there, wherever it comes from."""
        return services.above.device_in_use()

    def to_device(self, device: str, /, *, stream: Any = None) -> Field:
        """The field itself, as the array API standard has it: `gp.use_device` says where fields are evaluated.

        Args:
            device: the device in use, by its name.
            stream: of no meaning: `gp.queue` chooses a queue.

        Returns:
            The Field.

        Raises:
            ArgumentError: another device.
        """
        if device != self.device:
            raise ArgumentError(
                f"fields are evaluated on the device in use, not on {device!r}: `gp.use_device` chooses it"
            )
        return self  # type: ignore[return-value]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`gpuop.array_namespace`, the functions of the array API standard."""
        return services.above.array_namespace(api_version)
