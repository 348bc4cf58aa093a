"""Leaf sources without a device: arrays, parameters, pipeline arguments.

The other kinds are `runtime/base/device_sources.py` (values on a device), `Frames` of `engine/graphs/sensors.py` (sensors),
`FollowedNumbers` of `engine/parameter_numbers.py`,
and `NoValues` of `ir/values.py`, whose base class documents the interface.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.from_arrays import Array, ArrayLike, Making, Placeholder, converted, numbers
from gpuop.ir.types import FieldType
from gpuop.ir.values import LeafSource


@dataclass(frozen=True, eq=False)
class HostArray(LeafSource):
    """An array of `array_shape`; a state starts from it.

    Attributes:
        scalars: its numbers, once it was passed by value.
    """

    array: Array
    scalars: tuple[Any, ...] | None = None

    def read(self) -> tuple[Array, None]:
        return self.array, None


class Adjustable(LeafSource):
    """A parameter: its value, and a count of its changes."""

    role: ClassVar[str] = "parameter"

    def __init__(self, kind: FieldType, data: Array) -> None:
        self.kind = kind
        self.state = (0, data)  # replaced at once: who reads it has a value and the count of that value

    @property
    def version(self) -> int:
        return self.state[0]

    def read(self) -> tuple[Array, int]:
        version, data = self.state
        return data, version

    def set(self, value: ArrayLike) -> None:
        array = numbers(value)
        if array.shape != tuple(self.kind.array_shape):
            raise SemanticError(
                f"this Parameter has shape {tuple(self.kind.array_shape)}, the new value {array.shape}; make another Parameter"
            )
        whole = self.kind.array_dtype.kind in "iub" and array.dtype.kind == "f"
        advice = f"make it of another dtype, as gp.Parameter({'1.0' if whole else 'a value'})"
        self.state = (self.state[0] + 1, converted(array, self.kind.dtype, "this Parameter is", advice))


@dataclass(frozen=True, eq=False)
class Deferred(LeafSource):
    """An array that comes with each call of a pipeline.

    Attributes:
        make: what becomes of it: a type and an array, as kernels know them.
        kind: the type that users see.
    """

    placeholder: Placeholder
    make: Making
    kind: FieldType

    @property
    def borrowed(self) -> bool:
        return self.placeholder.device

    @property
    def dynamic(self) -> bool:
        return self.placeholder.dynamic

    def read(self) -> NoReturn:
        raise SemanticError(
            "this Field stands for an argument of a pipeline and has no values yet: leave out `.numpy()`, `float()` and `int()`. "
            "A 0D Field is a number in arithmetic as it is; `np.where(c, a, b)` chooses by values; `index=` and `np.arange` take "
            "numbers of Python"
        )
