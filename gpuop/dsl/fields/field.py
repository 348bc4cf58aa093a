"""Fields: lazy, immutable nodes of a graph, created from arrays or by operators."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from gpuop.base.errors import ArgumentError, MissingError, SemanticError, UnsupportedError, here, meant
from gpuop.base.misspelt import hinted
from gpuop.base.trace import HostSpan
from gpuop.dsl.fields import services
from gpuop.dsl.fields.array_methods import ArrayMethods, Reductions
from gpuop.dsl.fields.copying import Copying
from gpuop.dsl.fields.from_arrays import (
    HOST,
    Array,
    ArrayLike,
    Making,
    Placeholder,
    as_field,
    check_fits,
    folding,
    host_array,
    is_device_array,
    kind_made,
)
from gpuop.dsl.fields.names import names_given
from gpuop.dsl.fields.numpy_hints import ATTRIBUTES, WAYS
from gpuop.dsl.fields.sources import Deferred, HostArray
from gpuop.dsl.recorder.arithmetic import Arithmetic
from gpuop.dsl.recorder.assignment_targets import is_chained
from gpuop.dsl.recorder.field_protocol import FieldLike
from gpuop.dsl.recorder.recorder import recording
from gpuop.dsl.recorder.trace_effects import values_seen
from gpuop.dsl.recorder.value import Value
from gpuop.ir.axis_limit import check_axes
from gpuop.ir.dims import Dims
from gpuop.ir.dtype_names import COMPLEX_DTYPES, DTypeName
from gpuop.ir.types import FieldType, Shape
from gpuop.ir.values import Leaf, Node, label

UNSAID: Any = object()  # an argument that the consumer does not know
THE_HOST = (1, 0)


class Field(FieldLike, Arithmetic["Field"], Reductions["Field"], ArrayMethods["Field"], Copying):
    """A grid of any number of dimensions, of which the last ones are (layers, rows, columns), with a tensor at every point.

    Args:
        array: anything array-like; the last `tensor_order` axes are the tensor's, the others the grid's. Arrays keep
            their dtype and are copied; Python numbers and lists become int32 or float32. A Field whose tensors have so many
            axes is taken as it is, so a function of arrays that makes its fields so is one of Fields too.
        tensor_order: 0 for scalars, 1 for vectors, 2 for matrices; 3 and more.
        dtype: converts to this dtype; "unorm8" reinterprets uint8.
        copy: False uses the array's own memory: it must not change while the field is in use. Arrays on a device (of CuPy,
            PyTorch, JAX, Numba, or what has `__dlpack__` or `__cuda_array_interface__`) are copied there, and not at all
            where they are immutable.
        dims: names of the array's axes, as "img:chan:y:x", or Dims that it has. They are labels: what is computed of a field,
            and how it is planned, does not depend on them.

    Attributes:
        next: only set, inside the `with` of a ComputeGraph, on a field that is made from an array there: the field is a
            state, which takes this Field's values, of the same type, at every step.

    Raises:
        SemanticError: a dtype that fields cannot have, or names that are not those of as many axes; a Field of other tensors or
            another dtype.
    """

    __slots__ = ("__weakref__", "kind", "node")
    node: Node
    kind: FieldType | None  # the type, where it is more than the node's: with names, or with more dimensions

    @hinted
    def __init__(
        self, array: ArrayLike, tensor_order: int = 0, dtype: Any = None, copy: bool = True, dims: Any = ""
    ) -> None:
        if isinstance(array, Field):
            check_fits(array.type, tensor_order, dtype)
            self._stand_for(array.node, array.named(dims).kind if dims else array.kind)
        else:
            self._from(array, lambda a: as_field(a, tensor_order, dtype, copy, dims), copy, dtype)

    def _from(self, array: ArrayLike, make: Making, copy: bool = True, dtype: Any = None) -> None:
        name = "".join(names_given(1))
        if is_device_array(array):
            node, kind = services.above.adopt(array, make, copy, name)
        elif isinstance(array, Placeholder):
            kind = kind_made(make, array.shape, array.dtype)
            node = Leaf(kind.folded, Deferred(array, folding(make), kind), name=name)
        else:
            with HostSpan("convert"):
                host = host_array(array, dtype)
                kind, values = make(host)
                check_axes(kind)  # before any value is copied
                node = Leaf(kind.folded, HostArray(values().reshape(kind.folded.array_shape)), name=name)
        self._stand_for(node, kind)

    def _stand_for(self, node: Node, kind: FieldType | None) -> None:
        check_axes(kind or node.type)
        object.__setattr__(self, "node", node)
        object.__setattr__(self, "kind", None if kind is None or kind.folded is kind else kind)

    @staticmethod
    def of(node: Node, name: str = "", kind: FieldType | None = None) -> Field:
        """The field that stands for a node of the graph; `kind` is its type with names, and with all dimensions."""
        field = object.__new__(Field)
        field._stand_for(node, kind)
        if name:
            label(node, name)
        return field

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The variable that it was assigned to first, or what it was set to: for people, and for states in files; a str."""
        return self.node.name

    @name.setter
    def name(self, name: str) -> None:
        label(self.node, name)

    @property
    def type(self) -> FieldType:
        """Grid, tensor and dtype; its `array_shape` is that of the array."""
        return self.node.type if self.kind is None else self.kind

    @property
    def dims(self) -> Dims:
        """The axes of the array with their names and extents: `field.dims.y` is how many rows there are."""
        return self.type.dims

    @property
    def field_shape(self) -> Shape:
        """The extents of the grid: (layers, rows, columns), or the last of them; more before them where there are more."""
        recorder = recording()
        if recorder is not None:
            recorder.looked = recorder.looked or here()
        return self.type.field_shape

    @property
    def tensor_shape(self) -> Shape:
        """The extents of the tensor at every point; () of scalars."""
        return self.type.tensor_shape

    @property
    def dtype(self) -> DTypeName:
        """The name, which also equals the NumPy dtype: `field.dtype == np.float32`; "unorm8" has none."""
        return self.type.dtype

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

    @hinted
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
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """`gpuop.array_namespace`, the functions of the array API standard."""
        return services.above.array_namespace(api_version)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name + ' ' if self.name else ''}{self.type}>"

    def _repr_html_(self) -> str:
        """The values as images, in notebooks."""
        return services.above.show(self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "next":
            services.above.set_next(self, value)
        elif name == "name":
            object.__setattr__(self, name, str(value))
        else:
            raise MissingError(
                f"a Field has no attribute {name!r} to set; fields are immutable, `.next` and `.name` are all that can be set"
            )

    if not TYPE_CHECKING:  # a checker is to say of a name that there is none

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):  # Python and NumPy ask for these
                raise AttributeError(name)
            raise MissingError(
                f"a Field has no attribute {name!r}; {ATTRIBUTES.get(name, '`.numpy()` gives an array')}"
                + ("" if name in ATTRIBUTES else meant(name, dir(self)))
            )

    # --- evaluation ---------------------------------------------------------------------------------------------

    def numpy(self) -> Array:
        """Evaluate and wait.

        Returns:
            An array of `field_shape + tensor_shape` in the field's dtype (uint8 for unorm8); yours to change.

        Raises:
            SemanticError: there are no values: of a sensor, a state, an argument of a pipeline, or a field of a type only.
            CompileError: the device's compiler refuses a kernel.
            DeviceError: no device works, its memory does not suffice, or it lacks a type that a kernel uses.
        """
        values_seen(self.node)
        return services.above.evaluate(self)[0]

    @hinted
    def fetch(self, out: Array | None = None) -> Any:
        """Evaluate and copy the values to the host, without waiting: `f.fetch().result()`, or `await f.fetch()`.

        Args:
            out: takes the values: a C-contiguous NumPy array of `field_shape + tensor_shape` and the field's dtype, to be left
                alone until the Event is done. On CUDA only arrays of `gp.pinned` are copied to without waiting. None: a new one.

        Returns:
            An Event, whose result is the array.

        Raises:
            SemanticError, CompileError, DeviceError: as of `numpy`; an `out` of another shape or dtype.
        """
        values_seen(self.node)
        return services.above.fetch(self, out)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __iter__(self) -> NoReturn:
        raise SemanticError(
            "a Field cannot be iterated over or unpacked; slices of it are fields (`y, x = f[0], f[1]`), `.numpy()` gives an "
            "array, operators work on all points at once"
        )

    def __getitem__(self, index: Any) -> Field:
        return services.algebra["getitem"](self, index)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise SemanticError(
            "a Field is immutable: `gp.updated(f, index, values)` makes a new one, and `np.where(c, a, b)` chooses between values"
        )

    # --- Python numbers -------------------------------------------------------------------------------------------

    def _scalar(self, what: str) -> Any:
        if self.type.array_shape.points != 1 or self.type.field_shape:
            instead = "use `.numpy()`"
            if what == "the truth value":
                instead = "`&` and `|` join comparisons, `np.where` chooses, as do `np.maximum` and `np.minimum`"
            raise SemanticError(f"{what} of a {self.type} Field is ambiguous: only 0D scalars convert; {instead}")
        return self.numpy().reshape(())[()]

    def item(self, *index: Any) -> Any:
        """Evaluate, and return one value as a Python number.

        Args:
            index: of the value: a number for each axis of `array_shape`, one by one or in a tuple, or one in row-major order; none
                for a field of one value.

        Raises:
            SemanticError: no index for more values than one, an index out of bounds, or not one for each axis.
        """
        index = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
        shape = tuple(self.type.array_shape)
        if len(index) == 1 and len(shape) != 1:
            return self.ravel().item(index)
        if len(index) != len(shape) and (index or self.type.array_shape.points != 1):
            raise SemanticError(
                f"item() of a field of shape {shape} takes {len(shape)} numbers, or one in row-major order, not {len(index)}"
            )
        return (self[index] if index else self).numpy().item()

    def tolist(self) -> Any:
        """Evaluate, and return the values as nested lists of Python numbers, or one number of a field without axes."""
        return self.numpy().tolist()

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return self.size * self.itemsize

    def _real(self, what: str) -> Any:
        if self.dtype in COMPLEX_DTYPES:
            raise UnsupportedError(
                f"{what} of a {self.dtype} Field would drop its imaginary part: write `.real`, or `complex(f)`"
            )
        return self._scalar(what)

    def __bool__(self) -> bool:
        if self.type.array_shape.points != 1 and is_chained(sys._getframe(1)):
            raise SemanticError(
                f"a chained comparison such as `a < f < b` is an `and` in Python, which asks a {self.type} Field for one "
                "truth value; write `(a < f) & (f < b)`"
            )
        return bool(self._scalar("the truth value"))

    def __index__(self) -> NoReturn:
        raise UnsupportedError(
            "a Field is not a Python integer: its value is not known before it runs; `int(f)` evaluates a 0D one"
        )

    def __float__(self) -> float:
        return float(self._real("float()"))

    def __int__(self) -> int:
        return int(self._real("int()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __format__(self, spec: str) -> str:
        """The number of a 0D scalar, as in `f"{field.sum():.3f}"`; without a format as `repr`."""
        return format(self._scalar(f"the format {spec!r}").item(), spec) if spec else repr(self)

    def __round__(self, digits: Any = None) -> NoReturn:
        raise UnsupportedError("`round` of Python does not take Fields; `np.round(f, decimals)` rounds them")

    def __len__(self) -> int:
        raise UnsupportedError(
            "a Field has no len(); its grid is in `.field_shape`, its tensor in `.tensor_shape`, both in `.shape`"
        )

    # --- other libraries, which read the values where they are ---------------------------------------------------

    def __dlpack__(
        self, *, stream: Any = UNSAID, max_version: Any = None, dl_device: Any = UNSAID, copy: bool | None = None
    ) -> Any:
        """Evaluate, and share: `torch.from_dlpack(field)`. What the consumer's stream gets from then on waits for the values.

        A consumer that asks for the host, as `np.from_dlpack(field, device="cpu")` does, gets a copy of values that are on a GPU.

        Raises:
            BufferError: another device than theirs, or a copy on a GPU; values on a GPU for NumPy, or without a copy for the host.
        """
        values_seen(self.node)
        values = services.above.export(self)
        there, device = _device(values.__dlpack_device__()), None if dl_device in (UNSAID, None) else _device(dl_device)
        if there[0] not in HOST:
            if device == THE_HOST:
                if copy is False:
                    raise BufferError("the values are on a GPU, and `copy=False` leaves them there")
                return self.numpy().__dlpack__()
            if stream is UNSAID and dl_device is not UNSAID:  # a call by NumPy, which could not report the fault
                raise BufferError(
                    "the values are on a GPU, where NumPy cannot read them: `field.numpy()`, or "
                    '`np.from_dlpack(field, device="cpu")`, copies them'
                )
        if device is not None and device != there:
            raise BufferError(f"the values are on {there}, not on {device}")
        if copy and not hasattr(values, "copy"):
            raise BufferError(
                "this array is shared without a copy only: leave out `copy=True`, and copy the array that the other library "
                "has of it"
            )
        return (values.copy() if copy else values).__dlpack__(stream=None if stream is UNSAID else stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = services.above.export(self).__dlpack_device__()
        return device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA array interface of the evaluated values; AttributeError if the values are not in the memory of a CUDA device."""
        values_seen(self.node)
        facts: dict[str, Any] = services.above.export(self).__cuda_array_interface__
        return facts

    # --- host algebra -------------------------------------------------------------------------------------------

    def _operate(self, name: str, *operands: Any) -> Field:
        if any(isinstance(o, Value) for o in operands):
            return NotImplemented  # type: ignore[no-any-return]  # the value reads this field, if it is a 0D scalar
        return services.algebra[name](*operands)

    def __divmod__(self, other: Any) -> tuple[Field, Field]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Field, Field]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Field:
        return self._operate("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Field:
        return self._operate("matmul", other, self)

    def __enter__(self) -> NoReturn:
        raise UnsupportedError(
            "a Field does not open a block: `np.where(f > 0, a, b)` chooses between Fields, and kernels have `with "
            "_if(_readTensor(f) > 0):`"
        )

    def __exit__(self, *exc: object) -> None:
        """Python looks for it before it enters."""

    def __pos__(self) -> Field:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        call = ufunc.__name__ + (f".{method}" if method != "__call__" else "")
        if call in services.array_functions:
            return services.array_functions[call](call, inputs, kwargs)
        if kwargs or call not in services.algebra:
            raise UnsupportedError(
                f"numpy.{call} does not take Fields{' with options' * bool(kwargs)}; "
                f"{WAYS.get(call, 'evaluate first, with `.numpy()`')}"
            )
        return self._operate(call, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if function.__module__ in ("numpy.linalg", "numpy.fft"):
            name = f"{function.__module__[6:]}.{name}"  # some have other arguments than those beside them in `numpy`
        if name not in services.array_functions:
            raise UnsupportedError(
                f"numpy.{name} does not take Fields; {WAYS.get(name, 'evaluate first, with `.numpy()`')}"
            )
        return services.array_functions[name](name, args, kwargs)

    @hinted
    def astype(self, dtype: Any, *, copy: bool = True) -> Field:
        """A field of another dtype, converted as kernels write: integers truncate and saturate, bool is `!= 0`.

        Args:
            dtype: a NumPy dtype or its name, or "unorm8".
            copy: as of NumPy arrays; fields do not change, so it makes no difference.

        Returns:
            A Field of the same shapes.

        Raises:
            SemanticError: a dtype that fields cannot have, or a real one of complex numbers.
        """
        return services.algebra["astype"](self, dtype)

    @property
    def real(self) -> Field:
        """The real parts: float32 of complex64, float64 of complex128."""
        return services.algebra["real"](self)

    @property
    def imag(self) -> Field:
        """The imaginary parts, which are 0 of real numbers."""
        return services.algebra["imag"](self)

    def conj(self) -> Field:
        """The complex conjugates; real numbers as they are.

        Returns:
            A Field of the same type.
        """
        return services.algebra["conjugate"](self) if self.dtype in COMPLEX_DTYPES else self

    conjugate = conj


def _device(place: Any) -> tuple[int, int]:
    kind, number = map(int, place)
    return kind, number
