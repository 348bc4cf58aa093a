"""Host operators: Python functions of arrays among the operators of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import Loc, SemanticError, described, here, naming_arguments
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import Array, host_array
from gpuop.dsl.operators.gpu_operator import results_of, slots_of
from gpuop.ir.kernel import HostFunction, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf


@naming_arguments
def HostOperator(function: Callable[..., Any], *fields: Field, outputs: Any) -> Any:
    """Apply a Python function of NumPy arrays to Fields: it runs on the host, in order with the kernels around it.

        labels, count = gp.HostOperator(label, mask, outputs=(mask.type.replace(dtype="int32"), gp.FieldType((), dtype="int32")))

    The values go from the device to the host and back, and nothing is fused across. A graph calls the function at every
    evaluation, whether its inputs change or not, eager fields once; equal calls are made once, so it should be deterministic.

    Args:
        function: gets an array of each field, its own to change, of `field_shape + tensor_shape` in the field's dtype; it
            returns an array of each output, in a tuple if there are several.
        fields: Fields; other values belong into the function.
        outputs: a FieldType, or a tuple of up to 10.

    Returns:
        A Field, or a tuple of them where `outputs` is a tuple.

    Raises:
        SemanticError: for arguments of other kinds; and when it is evaluated, for a result that is not of the declared
            shape, or whose dtype does not convert to the declared one without losing its kind.
    """
    name = name_of_function("host", function, fields)
    types = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
    written = [slot.param for slot in slots_of(types, None)]
    shapes = tuple(tuple(f.type.array_shape) for f in fields)
    run = Checked(function, name, shapes, types, isinstance(outputs, (tuple, list)), here())
    identity = f"host {id(function)} {name} {types} {shapes}"  # the kernel with this key keeps the function alive
    results = results_of(
        _kernel(run, fields, written), identity, tuple(services.above.own(f.node) for f in fields), run.loc, types
    )
    return results if run.several else results[0]


def name_of_function(kind: str, function: Callable[..., Any], fields: Sequence[Any]) -> str:
    """The name of a function of arrays.

    Raises:
        SemanticError: it is no function, or an argument is no Field.
    """
    if not callable(function):
        raise SemanticError(f"a {kind.title()}Operator wants a function of arrays, not {described(function)}")
    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    for field in fields:
        if not isinstance(field, Field):
            raise SemanticError(
                f"{kind} operator `{name}` wants Fields, not {described(field)}; other values belong into the function"
            )
    return name


def _kernel(run: Checked, fields: Sequence[Field], written: Sequence[FieldParam]) -> HostFunction:
    inputs = tuple(FieldParam(f.name or f"in{k}", f.node.type, _by_value(f)) for k, f in enumerate(fields))
    return HostFunction(run.name, inputs, tuple(map(Output, written)), loc=run.loc, run=run)


def _by_value(field: Field) -> bool:
    return isinstance(field.node, Leaf) and field.node.by_value


@dataclass(frozen=True)
class Checked:
    """The function, whose results are arrays of the declared types or an error at the line of the HostOperator.

    Attributes:
        shapes: shapes of its array arguments.
    """

    function: Callable[..., Any]
    name: str
    shapes: tuple[tuple[int, ...], ...]
    types: tuple[FieldType, ...]
    several: bool
    loc: Loc | None

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        returned = self.function(*(a.reshape(shape) for a, shape in zip(arrays, self.shapes, strict=True)))
        values = returned if self.several else (returned,)
        if not isinstance(values, (tuple, list)) or len(values) != len(self.types):
            actual = f"{len(values)} values" if isinstance(values, (tuple, list)) else described(values)
            raise SemanticError(
                f"host operator `{self.name}` returns {actual}, and it was declared to return a tuple of {len(self.types)} arrays",
                self.loc,
            )
        return [self._converted(kind, value) for kind, value in zip(self.types, values, strict=True)]

    def _converted(self, kind: FieldType, value: Any) -> Array:
        if value is None:
            raise SemanticError(f"host operator `{self.name}` returns None; it must return an array", self.loc)
        try:
            array = host_array(value)
        except SemanticError as wrong:
            raise SemanticError(f"host operator `{self.name}`: {wrong.message}", self.loc) from None
        if array.shape != tuple(kind.array_shape):
            raise SemanticError(
                f"host operator `{self.name}` returns an array of shape {array.shape}; its output is a {kind} field, "
                f"whose arrays have shape {tuple(kind.array_shape)}",
                self.loc,
            )
        expected = kind.array_dtype
        if not np.can_cast(array.dtype, expected, "same_kind"):
            raise SemanticError(
                f"host operator `{self.name}` returns {array.dtype.name}, and its output is a {kind} field; "
                f'convert it, with `.astype("{expected.name}")`',
                self.loc,
            )
        return array.astype(expected, copy=False)
