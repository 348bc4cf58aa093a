"""Operators: Python functions recorded into kernels; calling one with Fields yields lazy Fields."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, UnsupportedError, blaming, called_here, described, here, is_users, warn
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.base.trace import HostSpan, observers
from gpuop.dsl.builtins.access import _writeTensor, _writeTensorElement
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.dsl.guards.function_wrapper import Chosen
from gpuop.dsl.guards.guard import Snapshot
from gpuop.dsl.guards.guarded_cache import GuardedCache
from gpuop.dsl.operators import arguments
from gpuop.dsl.operators.body_checks import target
from gpuop.dsl.operators.finish import finish
from gpuop.dsl.operators.gpu_operator import results_of, slots_of
from gpuop.dsl.operators.inout import begin_updates, names_of, types_of
from gpuop.dsl.operators.own_rules import WithRules
from gpuop.dsl.operators.signature import checked as checked_inputs
from gpuop.dsl.operators.signature import inputs_of, is_open, outputs_of, result_type
from gpuop.dsl.operators.variants import Recording, on_grids, recorded_for
from gpuop.dsl.recorder.error_hints import explained
from gpuop.dsl.recorder.frames import check_called, closure_of, def_line, return_line
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.placeholders import COMPLEX
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.recorder import Recorder
from gpuop.dsl.recorder.source_checks import check_returns
from gpuop.dsl.recorder.target_facts import TargetExpression, misplaced
from gpuop.dsl.recorder.trace_effects import looks
from gpuop.dsl.recorder.value import NUMBERS, Value, literal_atom
from gpuop.ir.dims import Dims
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.kernel import Launchable
from gpuop.ir.nodes import Atomic
from gpuop.ir.text import identity
from gpuop.ir.types import BOOL, DType, FieldType, Shape
from gpuop.ir.values import Leaf, Node
from gpuop.ir.visit import walk

Grid = tuple[int, ...] | None  # a thread grid chosen by the target
MANY_CONSTANTS = 8
MOST_CACHED = 4096  # kernels of library operators; a number that changes at every call makes a new one each time
MOST_BODIES = 256  # kernels of one operator
_library: BoundedCache[Any, tuple[Launchable, str, tuple[int, ...]]] = BoundedCache(MOST_CACHED)


def library_call(
    name: str,
    types: tuple[FieldType, ...],
    fields: Sequence[Field],
    body: Callable[[], None],
    key: Any,
    whole: bool = False,
    remark: str = "",
    sparse: tuple[int, ...] = (),
) -> tuple[Field, ...]:
    """Record an operator of the library, once per `key` and field types; the captures of its body are constant.

    Args:
        whole: every point of the outputs is written, although the positions do not show it.
        remark: reason for this operator where others give the same; `explain` prints it.
        sparse: numbers of the outputs that may keep unwritten points: nobody reads these.
    """
    with HostSpan("record"):
        nodes = [f.node for f in fields]
        kinds = tuple((f.type, isinstance(f.node, Leaf) and f.node.by_value, nodes.index(f.node)) for f in fields)
        # repr(key) distinguishes 0.0 from -0.0 and 1 from True
        cache_key = name, types, key, repr(key), whole, remark, chosen(), recorded_for(), kinds
        loc = called_here()
        cached = _library.get(cache_key)
        if cached is None:

            def recorded(grid: tuple[int, ...] | None) -> Recording:
                recorder = Recorder(name, types[0].field_shape, loc, slots_of(types, None))  # names are irrelevant here
                recorder.grid_chosen = grid
                recorder.hints = {n: "abc"[min(i, 2)] for i, n in reversed(list(enumerate(nodes)))}
                return _library_recording(recorder, types, body, whole, remark, sparse)

            recording = on_grids(recorded)
            cached = _library[cache_key] = (
                recording.kernel,
                recording.identity,
                tuple(nodes.index(n) for n in recording.inputs),
            )
        kernel, digest, order = cached
        return results_of(kernel, digest, tuple(nodes[i] for i in order), loc, types)


def _library_recording(
    recorder: Recorder,
    types: tuple[FieldType, ...],
    body: Callable[[], None],
    whole: bool,
    remark: str,
    sparse: tuple[int, ...],
) -> Recording:
    recorder.inside = recorder.name
    with recorder:
        body()
    kernel = replace(finish(recorder, chosen()), remark=remark, called=recorder.loc)
    if whole:
        kernel = replace(kernel, outputs=tuple(replace(out, fill=None) for out in kernel.outputs))
    if sparse:
        written = enumerate(kernel.outputs)
        outputs = (replace(out, sparse=True, complete=False) if n in sparse else out for n, out in written)
        kernel = replace(kernel, outputs=tuple(outputs))
    return Recording(kernel, identity(kernel), tuple(recorder.inputs), types)


@dataclass(frozen=True)
class CachedRecording:
    """Recording of a body, without its fields.

    Attributes:
        names: names of the arguments that are inputs of the kernel.
        kinds: the public types of the outputs.
    """

    kernel: Launchable
    identity: str
    names: tuple[str, ...]
    kinds: tuple[FieldType, ...]


class Operator(WithRules):
    """Result of `@gp.operator` on a function: a call with its arguments gives lazy Fields.

    Args:
        function, outputs, name, default, precision, inout, inputs, dynamic: as of `gp.operator`.
    """

    recorded_by = (
        *WithRules.recorded_by,
        "declared",
        "name",
        "default",
        "precision",
        "updates",
        "inputs",
        "dynamic",
    )
    users = (*WithRules.users, "source")

    def __init__(
        self,
        function: Callable[..., Any],
        outputs: Any,
        name: str | None,
        default: Any,
        precision: str | None,
        inout: Any,
        inputs: Any,
        dynamic: Chosen,
    ) -> None:
        super().__init__(function, name)
        self._declare("operator", dynamic)
        self.declared, self.default, self.precision = outputs, default, precision
        self.updates = names_of(inout, self.signature, outputs, default)
        self.inputs = inputs_of(self.function, self.name, dict(inputs) if isinstance(inputs, tuple) else inputs)
        self.memo: GuardedCache[CachedRecording] = GuardedCache(MOST_BODIES)
        self.constants: dict[str, set[Any]] = {}
        self.elsewhere = frozenset[str]()  # updated fields of which the last call accessed other points

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        loc = here() or def_line(self.function.__code__)  # the `def` if library code makes the call
        span = HostSpan("record").__enter__() if observers else None
        try:
            recording = self._results(args, kwargs)
            results = results_of(recording.kernel, recording.identity, recording.inputs, loc, recording.kinds)
        finally:
            if span is not None:
                span.__exit__()
        returned = results[0] if len(results) == 1 else results
        return returned if self.own_rules is None else self._ruled(returned, self._bind(args, kwargs))

    def _results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recording:
        """Recording that computes the results of a call."""
        return self._recorded(self._bind(args, kwargs))

    def settings(self) -> tuple[Any, ...]:
        return self.declared, self.name, self.default, self.precision, self.updates, self.inputs, self.dynamic

    def source(self, *field_types: Any, target: str | None = None, form: str = "text") -> str:
        """The generated text for arguments of these FieldTypes, or what compilers make of it.

        Args:
            field_types: a FieldType or a Field for each Field; other arguments as they are.
            target: "cuda" or an architecture as "cuda:sm_75", as a GPU of it runs them; "opencl:cpu", as CPUs run them; "opencl",
                as any device takes them; by default what the current device runs.
            form: "text"; "resources", what a thread and a work-group take, with the compiler's log: registers, bytes that are
                spilled to memory, and local memory on CUDA, private and local memory and sizes of work-groups as OpenCL's
                driver says them; or on CUDA "ptx", and "sass", the machine's instructions, where the CUDA toolkit's nvdisasm is.

        Returns:
            A str: the kernels, one after the other; OpenCL's for the reference.

        Raises:
            SemanticError: what is wrong in the body, an unknown target or form, or a form that the target does not have.
            CompileError, DeviceError: of forms but "text": the compiler refuses a kernel, or there is none, or no nvdisasm.
        """
        fields = [Field.of(Leaf(t.folded), kind=t) if isinstance(t, FieldType) else t for t in field_types]
        outputs = self(*fields)
        return services.above.source(outputs if isinstance(outputs, tuple) else (outputs,), target, form)

    # --- recording ----------------------------------------------------------------------------------------------

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        try:
            bound = self.bind(args, kwargs)
        except TypeError as wrong:
            raise UnsupportedError(f"operator `{self.name}`: {wrong}") from None
        arguments.check(self.name, bound)
        if self.inputs:
            checked_inputs(self.name, self.inputs, bound)
        return bound

    def _key(self, bound: inspect.BoundArguments, members: Mapping[str, Any]) -> Any:
        parts: list[Any] = [
            self.precision or chosen(),
            recorded_for(),
            tuple(map(arguments.nesting, bound.arguments.values())),
        ]
        nodes: dict[Node, int] = {}
        for name, value in members.items():
            if isinstance(value, Field):
                number = nodes.setdefault(value.node, len(nodes))
                by_value = isinstance(value.node, Leaf) and value.node.by_value
                parts.append((name, value.type, value.type.names, by_value, number))
                continue
            if self._is_receiver(value):
                continue
            constant = arguments.hashed_content(self.name, name, value)
            if name in bound.arguments:
                self._count(name, value, constant)
            parts.append((name, constant))
        return tuple(parts)

    def _count(self, name: str, value: Any, constant: Any) -> None:
        constants = self.constants.setdefault(name, set())
        if isinstance(value, (*NUMBERS, np.ndarray)) and len(constants) <= MANY_CONSTANTS:
            constants.add(constant)
            if len(constants) == MANY_CONSTANTS + 1:
                instead = "a Field" if isinstance(value, np.ndarray) else "a gp.Parameter or another 0D field"
                message = f"operator `{self.name}` is compiled anew for every value of `{name}`; "
                warn(f"{message}pass {instead}, whose value can change")

    def _recorded(self, bound: inspect.BoundArguments) -> Recording:
        flat = arguments.members(bound)
        key = self._key(bound, flat)
        constants = [v for v in flat.values() if not isinstance(v, (Field, np.ndarray, list))]
        cached, captured = self.memo.lookup(key, self.receiver, (self.function, self.declared, *constants))
        if cached:
            return Recording(
                cached.kernel, cached.identity, tuple(flat[name].node for name in cached.names), cached.kinds
            )
        reads = looks()
        by_node = {value.node: name for name, value in flat.items() if isinstance(value, Field)}
        recording = on_grids(lambda grid: self._finished(self._record(bound, grid), by_node))
        if isinstance(captured, Snapshot) and looks() == reads and all(node in by_node for node in recording.inputs):
            names = tuple(by_node[node] for node in recording.inputs)
            self.memo.keep(
                key,
                self.receiver,
                captured,
                CachedRecording(recording.kernel, recording.identity, names, recording.kinds),
            )
        return recording

    def _finished(self, recorder: Recorder, names: Mapping[Node, str]) -> Recording:
        kernel = finish(recorder, self.precision or chosen())
        kinds = tuple(slot.kind for slot in recorder.outputs)
        inputs = zip(kernel.inputs, recorder.inputs, strict=True)
        dynamic = frozenset(param for param, node in inputs if self._is_dynamic(names.get(node, "")))
        called = None if is_users(self.function.__code__.co_filename) else here()
        kernel = replace(kernel, dynamic=dynamic, called=called) if dynamic or called else kernel
        return Recording(kernel, identity(kernel), tuple(recorder.inputs), kinds)

    def _record(self, bound: inspect.BoundArguments, grid_chosen: Grid) -> Recorder:
        """Recorder of the body. Recorded again if threads turn out to access other points of updated fields than a call before."""
        in_memory, expected = frozenset[str](), self.elsewhere
        while True:
            recorder = self._run(bound, grid_chosen, in_memory or expected)
            elsewhere = frozenset(updated.name for updated in recorder.updated.values() if updated.elsewhere)
            if elsewhere == expected or (not expected and elsewhere <= in_memory):
                self.elsewhere = elsewhere
                return recorder
            in_memory, expected = frozenset() if expected else in_memory | elsewhere, frozenset()

    def _run(self, bound: inspect.BoundArguments, grid_chosen: Grid, in_memory: frozenset[str]) -> Recorder:
        bound.arguments.update({name: arguments.own(value) for name, value in bound.arguments.items()})
        flat = arguments.members(bound)
        fields = [v for v in flat.values() if isinstance(v, Field)]
        loc = def_line(code := self.function.__code__)
        check_called(code, ChainMap(closure_of(self.function), self.function.__globals__))
        check_returns(code)
        declared = outputs_of(self.name, self.declared, bound)
        threads: FieldType | None
        if self.updates:
            declared = types_of(self.name, {name: bound.arguments[name] for name in self.updates})
        if declared is not None:
            types = declared if isinstance(declared, (tuple, list)) else (declared,)
            dtype = fields[0].dtype if fields else "float32"
            completed = tuple(result_type(declaration, flat, dtype) for declaration in types)
            slots = slots_of(completed, self.default, declared=not is_open(declared))
            threads, grid_of = slots[0].kind, "as _out0 is"
        else:
            slots = slots_of((fields[0].type,), self.default, declared=False) if fields else []
            first = next((f for f in fields if f.field_shape), fields[0] if fields else None)
            threads = None if first is None else first.type
            grid_of = next((f"as `{name}` is, the first Field" for name, v in flat.items() if v is first), "")
        grid = None if threads is None else threads.field_shape
        names = threads.names[: len(threads.field_shape)] if threads is not None else ()
        recorder = Recorder(self.name, grid, loc, slots, names)
        recorder.grid_of, recorder.grid_chosen = grid_of, grid_chosen
        recorder.array = arguments.array_like(bound) if grid is None else ""
        recorder.constants, recorder.called = arguments.no_fields(bound, flat), here()
        recorder.hints = {v.node: name for name, v in reversed(flat.items()) if isinstance(v, Field)}
        arguments_of_body = begin_updates(recorder, self.updates, bound, in_memory)
        with recorder, explained():
            returned = self.function(*arguments_of_body.args, **arguments_of_body.kwargs)
            if returned is not None:
                with blaming(return_line(code) or loc):
                    if self.updates:
                        raise SemanticError(
                            f"operator `{self.name}` updates its arguments, so it returns nothing; write them"
                        )
                    write_returned(recorder, returned, fields, declared, self.default)
        return recorder


# --- returned values, which are written at the own point and give the output types ------------------------------------


MATRICES = (
    "; a matrix is written by its elements, which count row by row: `_writeTensorElement(_out0, value, 1)` of "
    "`outputs=gp.FieldType(f.field_shape, (2, 2))`"
)
ARRAYS = "; `_readTensor(f)` is the value of a Field at a point, and `f.numpy()` those of all points, for the host"


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

    A pair of the parts of complex numbers is a complex number if that field is one of them.
    """
    similar = next((kind for kind in field_types if kind.planes == lanes), None)
    if similar is not None and dtype is similar.element and similar.dtype in COMPLEX_DTYPES and not axis:
        return FieldType(grid, similar.tensor_shape, similar.dtype)
    fitting = [axis] if axis else [kind.tensor_shape for kind in field_types if kind.tensor_points == lanes]
    tensor = fitting[0] if fitting else (() if lanes == 1 else (lanes,))
    return FieldType(grid, tensor, "bool" if dtype is BOOL else dtype.name)
