"""Device operators: libraries that compute on device arrays, among the operators of a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import gpuop.dsl as k
from gpuop.base.errors import Loc, SemanticError, described, here, naming_arguments
from gpuop.base.records import dataclass
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import is_big_tensor
from gpuop.dsl.operators.gpu_operator import results_of, slots_of
from gpuop.dsl.operators.host_operator import name_of_function
from gpuop.dsl.operators.operator import library_call
from gpuop.ir.bfloat16 import BFLOAT16
from gpuop.ir.dtype_names import COMPLEX_DTYPES, part_dtype
from gpuop.ir.kernel import DeviceFunction, LibraryCost, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.types import FieldType
from gpuop.ir.values import Leaf
from gpuop.ops.elementwise.algebra import copied
from gpuop.ops.layout.gather import Reading, flat, gathered


@naming_arguments
def DeviceOperator(function: Callable[..., Any], *fields: Field, outputs: Any, pure: bool = False) -> Any:
    """Apply a Python function of the device's arrays to Fields: a library computes in gpuop's memory, in order with the kernels.

        product = gp.DeviceOperator(lambda a, b, c: np.matmul(a, b, out=c), f, g, outputs=gp.FieldType((480, 640)))

    On a CUDA device the arrays are CuPy's, and while the function runs CuPy's current stream is gpuop's, so that nothing waits;
    on CPUs and the reference they are NumPy's. NumPy's functions take either. Nothing is copied: an array has the shape
    `field_shape + tensor_shape` and the field's dtype, and elements of tensors lie in planes; complex numbers alone are brought to
    one place each, by the kernels before and behind. Arrays hold only while the function runs. Nothing is fused across. A graph
    calls the function at every evaluation, or a pure one when its fields change; eager fields once; equal calls are made once.

    Args:
        function: gets an array of each field, which it must not change, then one of each output, which it fills, as by `out=`. It
            returns nothing, or the arrays that it has filled.
        fields: Fields; what is no Field belongs into the function.
        outputs: a FieldType, or a tuple of up to 10.
        pure: whether the function only fills its outputs, the same for equal fields, as a Fourier transform does: a graph or a
            pipeline then calls it once for constant fields, and a graph for those that follow from parameters when these are set.

    Returns:
        A Field, or a tuple of them where `outputs` is a tuple. Results are those of the library: their bits are its own.

    Raises:
        SemanticError: for arguments of other kinds, and bfloat16; and when it is evaluated, for results in other arrays than the
            outputs'.
        DeviceError: when it is evaluated, on CUDA without CuPy, and on OpenCL devices that are no CPUs.
    """
    return apply_library(function, fields, outputs, pure)


def apply_library(
    function: Callable[..., Any], fields: Sequence[Field], outputs: Any, pure: bool, cost: LibraryCost | None = None
) -> Any:
    """Apply the function of a `DeviceOperator`; `cost` is for predictions."""
    name = name_of_function("device", function, fields)
    several = isinstance(outputs, (tuple, list))
    types = [slot.kind for slot in slots_of(tuple(outputs) if several else (outputs,), None)]
    if BFLOAT16 in [*(f.dtype for f in fields), *(kind.dtype for kind in types)]:
        raise SemanticError(
            f"device operator `{name}` has no bfloat16 fields: NumPy and CuPy have no such dtype; write `f.astype('float32')` and "
            "outputs of float32",
            here(),
        )
    inputs = [_on_device(f) for f in fields]
    run = Filled(function, name, tuple(f.type for f in fields), tuple(types), here())
    params = tuple(FieldParam(f.name or f"in{n}", f.node.type) for n, f in enumerate(inputs))
    written = tuple(Output(slot.param) for slot in slots_of(tuple(map(_flat_type, types)), None))
    kernel = DeviceFunction(name, params, written, loc=run.loc, run=run, pure=pure, cost=cost)
    shapes = [tuple(f.type.array_shape) for f in fields]
    identity = f"device {id(function)} {name} {types} {shapes} {pure}"  # the cached value keeps the function alive
    flat_types = list(map(_flat_type, types))
    result = results_of(kernel, identity, tuple(services.above.own(f.node) for f in inputs), run.loc, flat_types)
    results = tuple(_complex(f, kind) for f, kind in zip(result, types, strict=True))
    return results if several else results[0]


def _flat_type(kind: FieldType) -> FieldType:
    """Return the type of the function's array for a field: complex numbers as a row of their parts."""
    flat = FieldType(kind.planes * kind.field_shape.points, dtype=part_dtype(kind.dtype))
    return flat if kind.dtype in COMPLEX_DTYPES else kind


def _on_device(field: Field) -> Field:
    """Return the field in device memory, in the layout for libraries."""
    if field.dtype not in COMPLEX_DTYPES:
        return copied(field) if isinstance(field.node, Leaf) and field.node.by_value else field
    return library_call("interleave", (_flat_type(field.type),), [field], lambda: _interleave(field), ())[0]


def _interleave(field: Field) -> None:
    """Interleave the parts of complex numbers: a thread for each point, so that this fuses with the operator of the field."""
    planes = field.type.planes
    k._globalThreads(field)
    first = k._index() * planes
    if is_big_tensor(field):
        with k._forEachTensorElement(planes):
            k._writeTensor(k._out0, k._readTensorElement(field), first + k._tensorElement)
    else:
        for n in range(planes):
            k._writeTensor(k._out0, k._readTensorElement(field, n), first + n)


def _complex(parts: Field, kind: FieldType) -> Field:
    """Return the complex field of parts in a row; other fields are returned as they are."""
    if kind.dtype not in COMPLEX_DTYPES:
        return parts
    shape = (*kind.array_shape, 2)

    def value(place: Sequence[Any], read: Reading) -> Any:
        return Reading().at(parts, [flat((*place, read.part), shape)])

    return gathered("deinterleave", kind, [parts], value, ())


class TakesBatches(ABC):
    """A function of arrays that computes a batch of them at once, along a new first axis."""

    @property
    @abstractmethod
    def cost(self) -> LibraryCost:
        """The cost of a call, for predictions."""

    @abstractmethod
    def over_batch(self, count: int) -> TakesBatches:
        """The function of so many arrays at once."""

    @abstractmethod
    def __call__(self, *arrays: Any) -> None:
        """Fill the outputs, which are the last arrays."""


@dataclass(frozen=True)
class Filled:
    """The function, which fills the arrays of the outputs, or raises an error at the line of the DeviceOperator."""

    function: Callable[..., Any]
    name: str
    inputs: tuple[FieldType, ...]
    types: tuple[FieldType, ...]
    loc: Loc | None

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        read = [_array_of(kind, array) for kind, array in zip(self.inputs, inputs, strict=True)]
        filled = [_array_of(kind, array) for kind, array in zip(self.types, outputs, strict=True)]
        returned = self.function(*read, *filled)
        places = {_address(array) for array in filled}
        for value in returned if isinstance(returned, (tuple, list)) else (returned,):
            if value is not None and _address(value) not in places:
                raise SemanticError(
                    f"device operator `{self.name}` returns {described(value)} of its own; it must fill the arrays of its "
                    "outputs, which are its last arguments: by `out=`, or `result[...] = …`",
                    self.loc,
                )


def _array_of(kind: FieldType, array: Any) -> Any:
    """Return the array of a field in its memory."""
    values = array.view(str(kind.dtype)) if kind.dtype in COMPLEX_DTYPES else array
    return values.reshape(tuple(kind.array_shape))  # the same memory: a reshape splits axes at most


def _address(array: Any) -> int | None:
    """Return the address of a NumPy or CuPy array."""
    for name in ("__cuda_array_interface__", "__array_interface__"):
        if hasattr(array, name):
            return int(getattr(array, name)["data"][0])
    return None
