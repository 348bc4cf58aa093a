"""What other array libraries ask of a field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gpuop.dsl.fields import services

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class Lending:
    """Shares a field's values where they are; nobody may write to them."""

    __slots__ = ()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Evaluate, and share: `torch.from_dlpack(field)`. What the consumer's stream gets from then on waits for the values.

        Raises:
            BufferError: another device than theirs, or a copy on a GPU.
        """
        values = services.above.export(cast("Field", self))
        if dl_device is not None and tuple(map(int, dl_device)) != tuple(values.__dlpack_device__()):
            raise BufferError(f"the values are on {values.__dlpack_device__()}, not on {dl_device}")
        if copy and not hasattr(values, "copy"):
            raise BufferError("a field's values are shared where they are: copy what is taken")
        return (values.copy() if copy else values).__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = services.above.export(cast("Field", self)).__dlpack_device__()
        return device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """As `__dlpack__`; AttributeError where the values are not in a CUDA device's memory."""
        facts: dict[str, Any] = services.above.export(cast("Field", self)).__cuda_array_interface__
        return facts
