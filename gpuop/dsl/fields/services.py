"""Services of upper layers that fields and operators call, loaded by name at first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpuop.dsl.fields.from_arrays import Array, Making
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node

if TYPE_CHECKING:
    from gpuop.dsl.fields.field import Field


class Services(Protocol):
    """One method for each question; each docstring names the function that answers it."""

    def evaluate(self, *fields: Field) -> list[Array]:
        """Evaluate fields together, wait, and give their arrays: `gpuop/engine/evaluate.py: arrays`."""
        ...

    def fetch(self, field: Field, out: Array | None) -> Any:
        """An Event of copying the field's values to the host: `gpuop/engine/async_evaluation.py: fetch`."""
        ...

    def keep(self, field: Field) -> Field:
        """The field, evaluated and kept on the device in use: `gpuop/engine/evaluate.py: keep`."""
        ...

    def buffer(self, field: Field) -> Any:
        """The evaluated field's buffer on the current device, a device handle: `gpuop/engine/evaluate.py: buffer`."""
        ...

    def source(self, fields: Sequence[Field], target: str | None, form: str) -> str:
        """The text generated for fields; None is the device in use: `gpuop/engine/dump.py: source`."""
        ...

    def adopt(self, array: Any, make: Making, copy: bool, name: str) -> tuple[Node, FieldType]:
        """A node with the values of an array in a device's memory, and its type: `gpuop/engine/interop.py: adopt`.

        Args:
            make: conversion of such an array to a field, if it were a NumPy array.
            copy: False lets the node use the array's own memory.
        """
        ...

    def export(self, field: Field) -> Any:
        """Object with `__dlpack__`, or NumPy array, of an evaluated field: `gpuop/engine/interop.py: export`."""
        ...

    def own(self, node: Node) -> Node:
        """The node, or a copy if its memory is that of another library: `gpuop/engine/interop.py: own`."""
        ...

    def set_next(self, state: Field, value: Any) -> None:
        """`state.next = value`, in the graph that is being defined: `gpuop/engine/graphs/active_graph.py: set_next`."""
        ...

    def device_in_use(self) -> str:
        """The name of the device in use: `gpuop/engine/interop.py: device_in_use`."""
        ...

    def array_namespace(self, api_version: str | None) -> Any:
        """The module of the array API standard's names: `gpuop/array_namespace.py: of_version`."""
        ...

    def show(self, field: Field) -> str:
        """HTML of the field's values, for notebooks: `gpuop/engine/show/html.py: show`."""
        ...


above: Services  # provided by `gpuop/providers.py`

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name != "above":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = import_module("gpuop.providers").PROVIDERS
        return value


Function = TypeVar("Function")
OF_LINALG = ("cross", "diagonal", "dot", "einsum", "matmul", "matvec", "trace", "vecdot", "vecmat")
REDUCTIONS = (
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "nanargmax", "nanargmin", "nanmax", "nanmean",
    "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var",
)  # fmt: skip


class Registry(dict[str, Function]):
    """Functions by names: the module of a name fills it in when it is first asked for that name.

    Args:
        modules: by names, or by a package's name and a dot for all in it; "" is the module of all other names.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        super().__init__()
        self.modules = modules
        self._loaded = set[str]()

    def module_of(self, name: str) -> str:
        return self.modules.get(name) or self.modules.get(name[: name.rfind(".") + 1]) or self.modules[""]

    def _load(self, name: str) -> None:
        module = self.module_of(name)
        if module not in self._loaded:
            import_module(module)
            self._loaded.add(module)

    def __missing__(self, name: str) -> Function:
        self._load(name)
        if not super().__contains__(name):
            raise KeyError(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self._load(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        for module in dict.fromkeys(self.modules.values()):
            import_module(module)
        return super().__iter__()


# NumPy functions that take fields, called with a name, arguments and keywords
array_functions = Registry[Callable[[str, Any, Any], Any]](
    {
        "": "gpuop.ops.array_functions",
        "linalg.": "gpuop.lib.linalg.numpy_names",
        "fft.": "gpuop.lib.fft.numpy_names",
        **dict.fromkeys(OF_LINALG, "gpuop.lib.linalg.numpy_names"),
    }
)
# host algebra under NumPy names
algebra = Registry[Callable[..., "Field"]](
    {
        "": "gpuop.ops.elementwise.algebra",
        "matmul": "gpuop.lib.linalg.numpy_names",
        "getitem": "gpuop.ops.select.take",
        "named": "gpuop.ops.layout.axes",
        "matrix_transpose": "gpuop.ops.layout.shape_functions",
        "with_tensor_order": "gpuop.ops.layout.shape_functions",
        **dict.fromkeys(REDUCTIONS, "gpuop.ops.reduce.functions"),
    }
)
