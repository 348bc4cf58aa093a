"""Return values of a body: written at the own point; they give the output types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuop.base.errors import SemanticError, described
from gpuop.dsl.builtins.access import _writeTensor, _writeTensorElement
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.dsl.operators.body_checks import target
from gpuop.dsl.operators.gpu_operator import slots_of
from gpuop.dsl.operators.signature import is_open
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.placeholders import COMPLEX
from gpuop.dsl.recorder.recorder import Recorder
from gpuop.dsl.recorder.target_facts import TargetExpression, misplaced
from gpuop.dsl.recorder.value import NUMBERS, Value, literal_atom
from gpuop.ir.dims import Dims
from gpuop.ir.nodes import Atomic
from gpuop.ir.types import BOOL, FLOAT, DType, FieldType, Shape
from gpuop.ir.visit import walk

MATRICES = (
    "; a matrix is written by its elements, which count row by row: `_writeTensorElement(_out0, value, 1)` of "
    "`outputs=gp.FieldType(f.field_shape, (2, 2))`"
)
ARRAYS = "; what a Field holds at each point is `_readTensor(f)` there, and `f.numpy()` of all points is for the host"


def write_returned(recorder: Recorder, returned: Any, fields: list[Field], declared: Any, default: Any) -> None:
    """Write the returned values at the own point."""
    _check_unused(recorder)
    values = returned if isinstance(returned, (tuple, list)) else (returned,)
    for value in values:
        if isinstance(value, TargetExpression):
            raise misplaced(value)
        if not isinstance(value, (Value, *NUMBERS, *COMPLEX)) and not isinstance(value, Field):
            nested = isinstance(value, (tuple, list))
            raise SemanticError(
                f"operator `{recorder.name}` returns {described(value)}{' in a list' * nested}; it returns kernel values, or "
                f"nothing after `_writeTensor`{MATRICES * nested}{ARRAYS * is_array(value)}"
            )
    if declared is None:
        atoms = [literal_atom(value) for value in values]
        grid = recorder.domain.shape if recorder.grid is None else recorder.grid
        field_types = [f.type for f in fields] + [node.type for node in recorder.inputs]
        types = [_type_of(grid, a.type.dtype, a.type.lanes, field_types, recorder.tensor) for a in atoms]
        recorder.outputs[:] = slots_of([_named(kind, recorder.names, field_types) for kind in types], default)
    elif is_open(declared) and len(values) == len(recorder.outputs):
        _with_dtypes(recorder, declared, values, default)
    if len(values) != len(recorder.outputs):
        raise SemanticError(
            f"operator `{recorder.name}` returns {len(values)} value{'s' * (len(values) > 1)}, "
            f"its declared outputs are {len(recorder.outputs)}"
        )
    for k, value in enumerate(values):
        (_writeTensorElement if recorder.tensor else _writeTensor)(OutputRef(k), value)


def _check_unused(recorder: Recorder) -> None:
    """Raise SemanticError if the body writes or reads outputs: a returned value is written at the end."""
    outputs = [slot.param for slot in recorder.outputs]
    statements = list(walk(tuple(recorder.scopes[0].statements)))
    if any(target(stmt) in outputs for stmt in statements):
        raise SemanticError(f"operator `{recorder.name}` both writes outputs and returns a value; do one of them")
    for stmt in statements:
        if isinstance(stmt, Atomic) and stmt.memory in outputs:
            out = f"_{stmt.memory.hint}"
            raise SemanticError(
                f"operator `{recorder.name}` reads {out} and returns a value, which is written after all else; keep the value in "
                f"a variable, or write it by `_writeTensor({out}, v)` before it is read, and return nothing",
                stmt.loc,
            )


def _with_dtypes(recorder: Recorder, declared: Any, values: Sequence[Any], default: Any) -> None:
    """Give outputs that are declared by dimensions the dtypes of the returned values."""
    dims = declared if isinstance(declared, (tuple, list)) else (declared,)
    atoms = [literal_atom(value).type.dtype for value in values]
    kinds = [
        slot.kind.replace(dtype="bool" if dtype is BOOL else dtype.name) if isinstance(each, Dims) else slot.kind
        for slot, each, dtype in zip(recorder.outputs, dims, atoms, strict=True)
    ]
    recorder.outputs[:] = slots_of(kinds, default)


def _named(kind: FieldType, grid: Sequence[str], field_types: Sequence[FieldType]) -> FieldType:
    """Type of a returned value with the dimension names of the threads, and the tensor names of the first type like it."""
    split = len(kind.field_shape)
    similar = next((k for k in field_types if k.names and k.tensor_shape == kind.tensor_shape), None)
    tensor = similar.names[len(similar.field_shape) :] if similar is not None else ("",) * len(kind.tensor_shape)
    names = (*(grid or ("",) * split), *("" if name in grid else name for name in tensor))
    return kind.labelled(names) if any(names) else kind


def _type_of(grid: Shape, dtype: DType, lanes: int, field_types: Sequence[FieldType], axis: Shape) -> FieldType:
    """Type of a returned value: its tensor is the axis of the threads, or that of the first field with such tensors.

    A pair of floats is complex64 if that field is.
    """
    similar = next((kind for kind in field_types if kind.planes == lanes), None)
    if similar is not None and similar.dtype == "complex64" and dtype is FLOAT and not axis:
        return FieldType(grid, similar.tensor_shape, "complex64")
    fitting = [axis] if axis else [kind.tensor_shape for kind in field_types if kind.tensor_points == lanes]
    tensor = fitting[0] if fitting else (() if lanes == 1 else (lanes,))
    return FieldType(grid, tensor, "bool" if dtype is BOOL else dtype.name)
