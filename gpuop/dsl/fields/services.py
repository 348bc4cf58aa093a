"""What fields and operators ask of the layers above them: they cannot import these, so `gpuop/providers.py` sets `above`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gpuop.dsl.fields.arrays import Array, Making
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class Services(Protocol):
    """One method for each question; each docstring names the function that answers it."""

    def evaluate(self, *fields: Field) -> list[Array]:
        """Evaluate fields together, wait, and give their arrays: `gpuop/evaluation.py: arrays`."""
        ...

    def fetch(self, field: Field, out: Array | None) -> Any:
        """An Event of copying the field's values to the host: `gpuop/submission.py: fetch`."""
        ...

    def keep(self, field: Field) -> Field:
        """The field, evaluated and kept on the device in use: `gpuop/evaluation.py: keep`."""
        ...

    def buffer(self, field: Field) -> Any:
        """The evaluated field's buffer on the device in use, a handle of the device's: `gpuop/evaluation.py: buffer`."""
        ...

    def source(self, fields: Sequence[Field], target: str | None, form: str) -> str:
        """The text generated for fields; None is the device in use: `gpuop/texts.py: source`."""
        ...

    def adopt(self, array: Any, make: Making, copy: bool, name: str) -> tuple[Node, FieldType]:
        """A node with the values of an array in a device's memory, and its type: `gpuop/interop.py: adopt`.

        Args:
            make: how such an array, if it were NumPy's, would become a field.
            copy: False lets the node use the array's own memory.
        """
        ...

    def export(self, field: Field) -> Any:
        """What has `__dlpack__`, or is NumPy's array, of an evaluated field: `gpuop/interop.py: export`."""
        ...

    def own(self, node: Node) -> Node:
        """The node, or a copy where its memory is another library's: `gpuop/interop.py: own`."""
        ...

    def set_next(self, state: Field, value: Any) -> None:
        """`state.next = value`, in the graph that is being defined: `gpuop/graphs/defining.py: set_next`."""
        ...

    def device_in_use(self) -> str:
        """The name of the device in use: `gpuop/interop.py: device_in_use`."""
        ...

    def array_namespace(self, api_version: str | None) -> Any:
        """The module of the array API standard's names: `gpuop/array_namespace/__init__.py: of_version`."""
        ...

    def show(self, field: Field) -> str:
        """HTML of the field's values, for notebooks: `gpuop/graphs/inspection.py: show`."""
        ...


above: Services
# NumPy's functions that take fields, called with a name, arguments and keywords: `gpuop/ops/array_functions.py`
array_functions: dict[str, Callable[[str, Any, Any], Any]] = {}
algebra: dict[str, Callable[..., Field]] = {}  # host algebra by NumPy's names, filled in by the modules of `gpuop/ops/`
