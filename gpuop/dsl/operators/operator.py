"""Operators: Python functions recorded into kernels; calling one with Fields yields lazy Fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.bounded import BoundedCache
from gpuop.dsl.fields import services
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators import arguments
from gpuop.dsl.operators.alternatives import Recording, on_grids
from gpuop.dsl.operators.closure_key import Snapshot, snapshot
from gpuop.dsl.operators.decorated import Decorated
from gpuop.dsl.operators.finish import finish
from gpuop.dsl.operators.gpu_operator import results_of, slots_of
from gpuop.dsl.operators.inout import begin_updates, names_of, types_of
from gpuop.dsl.operators.mistaken import explained
from gpuop.dsl.recorder.frames import check_called, def_line, return_line
from gpuop.dsl.recorder.looks import looks
from gpuop.dsl.recorder.outputs import OutputRef
from gpuop.dsl.recorder.precisions import chosen
from gpuop.dsl.recorder.record import Recorder
from gpuop.dsl.recorder.syntax import check_returns
from gpuop.dsl.recorder.target_facts import TargetExpression, misplaced
from gpuop.dsl.recorder.value import NUMBERS, Value, literal_atom
from gpuop.dsl.words.access import _writeTensor, _writeTensorElement
from gpuop.errors import SemanticError, blaming, described, here, warn
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.text import identity
from gpuop.ir.types import BOOL, FLOAT, DType, FieldType, Shape
from gpuop.ir.values import Leaf, Node
from gpuop.ir.visit import walk

MANY_CONSTANTS = 8
MOST_KEPT = 4096  # kernels of gpuop's own operators: numbers that change at every call make one each
MOST_BODIES = 256  # kernels of one operator
_library: BoundedCache[Any, tuple[Kernel, str, tuple[int, ...]]] = BoundedCache(MOST_KEPT)


def library_call(
    name: str,
    types: tuple[FieldType, ...],
    fields: Sequence[Field],
    body: Callable[[], None],
    key: Any,
    whole: bool = False,
) -> tuple[Field, ...]:
    """Record one of gpuop's own operators, once per `key` and field types: its body captures nothing that changes.

    Args:
        whole: all of the outputs is written, at places from which that is not seen.
    """
    nodes = [f.node for f in fields]
    told = (
        name,
        types,
        key,
        whole,
        chosen(),
        tuple((n.type, isinstance(n, Leaf) and n.by_value, nodes.index(n)) for n in nodes),
    )
    loc = here()
    found = _library.get(told)
    if found is None:
        recorder = Recorder(name, types[0].field_shape, loc, slots_of(types, None))
        recorder.hints = {n: "abc"[min(i, 2)] for i, n in reversed(list(enumerate(nodes)))}
        with recorder:
            body()
        kernel = finish(recorder, chosen())
        if whole:
            kernel = replace(kernel, outputs=tuple(replace(out, fill=None) for out in kernel.outputs))
        found = _library[told] = (kernel, identity(kernel), tuple(nodes.index(n) for n in recorder.inputs))
    kernel, digest, order = found
    return results_of(kernel, digest, tuple(nodes[i] for i in order), loc)


class Operator(Decorated):
    """What `@gp.operator` makes of a function: called with its arguments it gives lazy Fields.

    Args:
        function, outputs, name, default, precision, inout: as of `gp.operator`.
    """

    recorded_by = (*Decorated.recorded_by, "declared", "name", "default", "precision", "updates")
    users = (*Decorated.users, "source")

    def __init__(
        self,
        function: Callable[..., Any],
        outputs: Any,
        name: str | None,
        default: Any,
        precision: str | None,
        inout: Any,
    ) -> None:
        super().__init__(function, name)
        self.declared, self.default, self.precision = outputs, default, precision
        self.updates = names_of(inout, self.signature, outputs, default)
        self.memo: BoundedCache[Any, tuple[Snapshot, Launchable, str, tuple[str, ...]]] = BoundedCache(MOST_BODIES)
        self.constants: dict[str, set[Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        loc = here()
        made = self._results(args, kwargs)
        results = results_of(made.kernel, made.identity, made.inputs, loc)
        return results[0] if len(results) == 1 else results

    def _results(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recording:
        """What a call's results are computed by."""
        return self._recorded(self._bind(args, kwargs))

    def settings(self) -> tuple[Any, ...]:
        return self.declared, self.name, self.default, self.precision, self.updates

    def source(self, *field_types: Any, target: str | None = None) -> str:
        """The generated text for arguments of these FieldTypes.

        Args:
            field_types: a FieldType or a Field for each Field; other arguments as they are.
            target: "cuda" or an architecture as "cuda:sm_75", as a GPU of it runs them; "opencl:cpu", as CPUs run them; "opencl",
                as any device takes them; by default what the current device runs.

        Returns:
            A str: the kernels, one after the other; OpenCL's for the reference.

        Raises:
            SemanticError: what is wrong in the body, or an unknown target.
        """
        fields = [Field.of(Leaf(t)) if isinstance(t, FieldType) else t for t in field_types]
        outputs = self(*fields)
        return services.above.source(outputs if isinstance(outputs, tuple) else (outputs,), target)

    # --- recording ----------------------------------------------------------------------------------------------

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        try:
            bound = self.bind(args, kwargs)
        except TypeError as wrong:
            raise SemanticError(f"operator `{self.name}`: {wrong}") from None
        arguments.check(self.name, bound)
        return bound

    def _key(self, bound: inspect.BoundArguments, members: Mapping[str, Any]) -> Any:
        parts: list[Any] = [self.precision or chosen(), tuple(map(arguments.nesting, bound.arguments.values()))]
        nodes: dict[Node, int] = {}
        for name, value in members.items():
            if isinstance(value, Field):
                number = nodes.setdefault(value.node, len(nodes))
                parts.append((name, value.type, isinstance(value.node, Leaf) and value.node.by_value, number))
                continue
            if self._is_receiver(value):
                continue
            constant = arguments.hashed_content(self.name, name, value)
            if name in bound.arguments:
                self._count(name, value, constant)
            parts.append((name, constant))
        return tuple(parts)

    def _count(self, name: str, value: Any, constant: Any) -> None:
        seen = self.constants.setdefault(name, set())
        if isinstance(value, (*NUMBERS, np.ndarray)) and len(seen) <= MANY_CONSTANTS:
            seen.add(constant)
            if len(seen) == MANY_CONSTANTS + 1:
                instead = "a Field" if isinstance(value, np.ndarray) else "a gp.Parameter or another 0D field"
                message = f"operator `{self.name}` is compiled anew for every value of `{name}`; "
                warn(f"{message}pass {instead}, whose value can change")

    def _recorded(self, bound: inspect.BoundArguments) -> Recording:
        given = arguments.members(bound)
        key = self._key(bound, given)
        constants = [v for v in given.values() if not isinstance(v, (Field, np.ndarray, list))]
        known = self.memo.get(key)
        captured = known[0] if known and known[0].holds() else snapshot(self.function, self.declared, *constants)
        if known and captured and known[0] == captured:
            _, kernel, digest, names = known
            if captured is not known[0]:
                self.memo[key] = captured, kernel, digest, names
            return Recording(kernel, digest, tuple(given[name].node for name in names))
        seen = looks()
        made = on_grids(lambda grid: self._finished(self._record(bound, grid)))
        by_node = {value.node: name for name, value in given.items() if isinstance(value, Field)}
        if captured and looks() == seen and all(node in by_node for node in made.inputs):
            self.memo[key] = (captured, made.kernel, made.identity, tuple(by_node[node] for node in made.inputs))
        return made

    def _finished(self, recorder: Recorder) -> Recording:
        kernel = finish(recorder, self.precision or chosen())
        return Recording(kernel, identity(kernel), tuple(recorder.inputs))

    def _record(self, bound: inspect.BoundArguments, grid_chosen: tuple[int, ...] | None) -> Recorder:
        bound.arguments.update({name: arguments.own(value) for name, value in bound.arguments.items()})
        given = arguments.members(bound)
        fields = [v for v in given.values() if isinstance(v, Field)]
        code = self.function.__code__
        check_called(code)
        check_returns(code)
        loc = def_line(code)
        declared = self.declared(*bound.args, **bound.kwargs) if callable(self.declared) else self.declared
        if self.updates:
            declared = types_of(self.name, {name: bound.arguments[name] for name in self.updates})
        if declared is not None:
            slots = slots_of(declared if isinstance(declared, (tuple, list)) else (declared,), self.default)
            grid: Shape | None = slots[0].param.type.field_shape
            grid_of = "as _out0 is"
        else:
            slots = slots_of((fields[0].type,), self.default, declared=False) if fields else []
            first = next((f for f in fields if f.field_shape), fields[0] if fields else None)
            grid = None if first is None else first.field_shape
            grid_of = next((f"as `{name}` is, the first Field" for name, v in given.items() if v is first), "")
        recorder = Recorder(self.name, grid, loc, slots)
        recorder.grid_of, recorder.grid_chosen = grid_of, grid_chosen
        recorder.hints = {v.node: name for name, v in reversed(given.items()) if isinstance(v, Field)}
        bound = begin_updates(recorder, self.updates, bound)
        with recorder, explained():
            returned = self.function(*bound.args, **bound.kwargs)
            if returned is not None:
                with blaming(return_line(code) or loc):
                    self._return(recorder, returned, fields)
        return recorder

    def _return(self, recorder: Recorder, returned: Any, fields: list[Field]) -> None:
        """Write the returned values at the thread's own point."""
        if self.updates:
            raise SemanticError(f"operator `{self.name}` updates its arguments, so it returns nothing; write them")
        if any(
            getattr(stmt, "field", getattr(stmt, "memory", None)) in [s.param for s in recorder.outputs]
            for stmt in walk(tuple(recorder.scopes[0].statements))
        ):
            raise SemanticError(f"operator `{self.name}` both writes outputs and returns a value; do one of them")
        values = returned if isinstance(returned, (tuple, list)) else (returned,)
        for value in values:
            if isinstance(value, TargetExpression):
                raise misplaced(value)
            if not isinstance(value, (Value, *NUMBERS)) and not isinstance(value, Field):
                raise SemanticError(
                    f"operator `{self.name}` returns {described(value)}; it returns kernel values, or nothing after `_writeTensor`"
                )
        if self.declared is None:
            atoms = [literal_atom(value) for value in values]
            grid = recorder.domain.shape
            known = [f.type for f in fields] + [node.type for node in recorder.inputs]
            types = tuple(_type_of(grid, a.type.dtype, a.type.lanes, known, recorder.tensor) for a in atoms)
            recorder.outputs[:] = slots_of(types, self.default)
        if len(values) != len(recorder.outputs):
            raise SemanticError(
                f"operator `{self.name}` returns {len(values)} value{'s' * (len(values) > 1)}, "
                f"its declared outputs are {len(recorder.outputs)}"
            )
        for k, value in enumerate(values):
            (_writeTensorElement if recorder.tensor else _writeTensor)(OutputRef(k), value)


def _type_of(grid: Shape, dtype: DType, lanes: int, known: Sequence[FieldType], axis: Shape) -> FieldType:
    """The type of a returned value: its tensor is the threads' axis, or that of the first known one whose tensors are such.

    A pair of floats is complex64 where that one is.
    """
    alike = next((kind for kind in known if kind.planes == lanes), None)
    if alike is not None and alike.dtype == "complex64" and dtype is FLOAT and not axis:
        return FieldType(grid, alike.tensor_shape, "complex64")
    fitting = [axis] if axis else [kind.tensor_shape for kind in known if kind.tensor_points == lanes]
    tensor = fitting[0] if fitting else (() if lanes == 1 else (lanes,))
    return FieldType(grid, tensor, "bool" if dtype is BOOL else dtype.name)
