"""Array protocols by which other libraries read a field: DLPack and the CUDA array interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from gpuop.dsl.fields import services
from gpuop.dsl.fields.from_arrays import HOST

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


UNSAID: Any = object()  # an argument that the consumer does not know
THE_HOST = (1, 0)


def _device(told: Any) -> tuple[int, int]:
    kind, number = map(int, told)
    return kind, number


class Lending:
    """Shares a field's values where they are; nobody may write to them."""

    __slots__ = ()

    def __dlpack__(
        self, *, stream: Any = UNSAID, max_version: Any = None, dl_device: Any = UNSAID, copy: bool | None = None
    ) -> Any:
        """Evaluate, and share: `torch.from_dlpack(field)`. What the consumer's stream gets from then on waits for the values.

        A consumer that asks for the host, as `np.from_dlpack(field, device="cpu")` does, gets a copy of values that are on a GPU.

        Raises:
            BufferError: another device than theirs, or a copy on a GPU; values on a GPU for NumPy, or without a copy for the host.
        """
        field = cast("Field", self)
        values = services.above.export(field)
        there, wanted = _device(values.__dlpack_device__()), None if dl_device in (UNSAID, None) else _device(dl_device)
        if there[0] not in HOST:
            if wanted == THE_HOST:
                if copy is False:
                    raise BufferError("the values are on a GPU, and `copy=False` leaves them there")
                return field.numpy().__dlpack__()
            if stream is UNSAID and dl_device is not UNSAID:  # a call by NumPy, which could not report the fault
                raise BufferError(
                    "the values are on a GPU, where NumPy cannot read them: `field.numpy()`, or "
                    '`np.from_dlpack(field, device="cpu")`, copies them'
                )
        if wanted is not None and wanted != there:
            raise BufferError(f"the values are on {there}, not on {wanted}")
        if copy and not hasattr(values, "copy"):
            raise BufferError("a field's values are shared where they are: copy what is taken")
        return (values.copy() if copy else values).__dlpack__(stream=None if stream is UNSAID else stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = services.above.export(cast("Field", self)).__dlpack_device__()
        return device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """As `__dlpack__`; AttributeError if the values are not in the memory of a CUDA device."""
        facts: dict[str, Any] = services.above.export(cast("Field", self)).__cuda_array_interface__
        return facts
