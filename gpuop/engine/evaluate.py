"""Evaluation: from lazy fields to planned, compiled, launched kernels. Fusion and runtime meet here alone."""

from __future__ import annotations

import gc
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError, described
from gpuop.base.finalizers import WeakKeys
from gpuop.base.garbage import uncollected
from gpuop.base.lru import BoundedCache, forget_all
from gpuop.base.trace import HostSpan, observers
from gpuop.codegen.generate import target_named
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.names import names_given
from gpuop.dsl.fields.sources import HostArray
from gpuop.dsl.recorder.trace_effects import values_seen
from gpuop.engine.interop import own
from gpuop.engine.number_arguments import NumberArguments
from gpuop.fusion.iteration import Repeating
from gpuop.fusion.plan import Plan, plan
from gpuop.fusion.program import Program, program
from gpuop.fusion.program_cache import shape_of
from gpuop.ir.kernel import DeviceFunction, HostFunction, Kernel, Pin
from gpuop.ir.layout import Layout
from gpuop.ir.types import FieldType
from gpuop.ir.values import Call, Leaf, LeafSource, Node, Result, calls
from gpuop.ops.elementwise.algebra import copied
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer
from gpuop.runtime.base.device_sources import DeviceValue, Evaluated, Shared, marked
from gpuop.runtime.base.host_arrays import array_of, planes_of
from gpuop.runtime.devices import current, usable
from gpuop.runtime.execute import Prepared
from gpuop.runtime.tuning.chooser import choices_on, limits_for, limits_on

Functions = (HostFunction, DeviceFunction)
Together = (*Functions, *Repeating)  # they compute all of their outputs, even if one is read
PLANS_KEPT = 128  # in all pipelines and fields together: drivers keep megabytes for a kernel


_computed: WeakKeys[Call, dict[int, DeviceValue]] = WeakKeys()
_uploaded: WeakKeys[Leaf, DeviceValue] = WeakKeys()
_scalars: WeakKeys[Leaf, tuple[Array, tuple[Any, ...]]] = WeakKeys()  # of Parameters, by their arrays
driven: WeakKeys[Leaf, None] = WeakKeys()  # the states of graphs
_plans: BoundedCache[Any, Prepared] = BoundedCache(PLANS_KEPT)
_numbers = NumberArguments(PLANS_KEPT)


class _DeviceCache:
    """The values that the device has already. A value that was looked up stays valid, even if a parameter is set meanwhile."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.values: dict[Node, DeviceValue] = {}

    def __contains__(self, node: object) -> bool:
        if type(node) is not Result:
            return False
        if not self.values or node not in self.values:
            value = computed(node, self.backend)
            if value is None:
                return False
            self.values[node] = value
        return True

    def versions(self, needed: Sequence[Call]) -> tuple[tuple[LeafSource, int], ...]:
        """The parameters of the needed calls with their versions: the current one, or that of a cached value."""
        numbers: dict[LeafSource, int] = {}
        for call in needed:
            for node in call.inputs:
                if type(node) is Leaf and node.source not in numbers:
                    version = node.source.version
                    if version is not None:
                        numbers[node.source] = version
        if self.values:
            for source, version in (each for value in self.values.values() for each in value.versions):
                numbers[source] = min(version, numbers.get(source, version))
        return tuple(numbers.items())


def computed(node: Result, backend: Backend) -> DeviceValue | None:
    values = _computed.get(node.call)
    value = values.get(node.index) if values else None
    return value if value is not None and value.holds_on(backend) else None


# --- planning -----------------------------------------------------------------------------------------------------


def prepare(
    what: Program,
    backend: Backend,
    pin: Pin | None,
    optimize: bool = True,
    layouts: Mapping[int, Layout] = MappingProxyType({}),
    planned: Callable[[], Plan] | None = None,
) -> Prepared:
    """The compiled plan of a program, cached by its structure.

    Args:
        planned: returns a plan that the caller keeps.
    """
    key = _plan_key(what.key, backend, pin, optimize, frozenset({**layouts, **what.layouts}.items()))

    def made() -> Prepared:
        with HostSpan("plan"), uncollected():
            new = planned() if planned else plan_on(backend, what, pin, optimize, layouts)
        with HostSpan("compile"):
            return Prepared(backend.main, replace(new, program=new.program.without_values()))

    return _plans.find(key, made).on(backend)


def _plan_key(
    program: Any, backend: Backend, pin: Pin | None, optimize: bool = True, layouts: frozenset[Any] = frozenset()
) -> Any:
    return program, choices_on(backend), optimize, pin, layouts


def plan_on(
    backend: Backend,
    what: Program,
    pin: Pin | None,
    optimize: bool = True,
    layouts: Mapping[int, Layout] = MappingProxyType({}),
) -> Plan:
    """The plan of a program for a device."""
    return plan(what, optimize, limits_on(backend, pin), layouts)


def plan_ahead(
    what: Program,
    target: str,
    pin: Pin | None,
    optimize: bool = True,
    layouts: Mapping[int, Layout] = MappingProxyType({}),
) -> Plan:
    """The plan of a program for a target by its name, without a device; "opencl" stands for every OpenCL device."""
    return plan(what, optimize, replace(limits_for(target_named(target)), pin=pin), layouts)


def refuse_state(leaf: Leaf) -> None:
    """Raise SemanticError for a state, whose array is only its initial value, also while its graph is being defined."""
    if leaf in driven:
        name = f"`{leaf.name}`" if leaf.name else "this field"
        raise SemanticError(
            f"{name} is a state of a ComputeGraph, and has no values outside of its steps: probe it, or what is computed of it, "
            "inside the graph's `with`, and `graph.read` that"
        )


def argument(node: Node, backend: Backend) -> Argument:
    """The argument for a leaf: a buffer, or scalars."""
    assert isinstance(node, Leaf)
    source = node.source
    if node.by_value and type(source) is HostArray:
        if source.scalars is None:
            object.__setattr__(source, "scalars", tuple(planes_of(node.type, source.array).reshape(-1).tolist()))
        return source.scalars
    refuse_state(node)
    value = _uploaded.get(node)
    if value is not None and value.backend is backend and not value.versions and not backend.queues:
        return value.buffer
    there = source.buffer(backend)
    if there is not None:
        return there
    array, version = source.read()
    if node.by_value:
        return _scalars_of(node, array)
    if value is None or not value.holds_on(backend):
        versions = () if version is None else ((source, version),)
        buffer = backend.upload(node.type, planes_of(node.type, array))
        _uploaded[node] = value = DeviceValue(backend, buffer, versions, marked(backend))
    return value.taken(backend)


def _scalars_of(node: Leaf, array: Array) -> tuple[Any, ...]:
    """The numbers of a leaf that is passed by value, converted once for each array: `set` of a Parameter makes a new one."""
    last = _scalars.get(node)
    if last is not None and last[0] is array:
        return last[1]
    numbers = tuple(planes_of(node.type, array).reshape(-1).tolist())
    _scalars[node] = array, numbers
    return numbers


# --- evaluation ---------------------------------------------------------------------------------------------------


class Computation:
    """A computation of several values, planned and compiled for a queue."""

    def __init__(self, nodes: Sequence[Node], backend: Backend) -> None:
        self.nodes, self.asked, self.backend = [own(node) for node in nodes], len(nodes), backend
        span = HostSpan("prepare").__enter__() if observers else None
        try:
            self._prepare()
        finally:
            if span is not None:
                span.__exit__()

    def _prepare(self) -> None:
        """Look up the plan of the graph, or make it."""
        backend = self.backend
        cache = _DeviceCache(backend)
        needed = calls(self.nodes, cache)
        self.nodes += _computed_with(self.nodes, needed, cache)
        self.cached = cache.values
        # before a parameter is read: setting it meanwhile makes the values stale
        self.versions = cache.versions(needed)
        shape = shape_of(self.nodes, needed, self.cached)
        what = None if shape is None else shape.numbered()
        ready = None if what is None else _plans.get(_plan_key(what.key, backend, pinned()))
        if what is not None and ready is not None:
            self.leaves, self.results, self.prepared = what.leaves, what.results, ready.on(backend)
            return
        new = _numbers.of(program(self.nodes, self.cached))
        self.leaves, self.results, self.prepared = new.leaves, new.results, prepare(new, backend, pinned())
        if shape is not None:
            shape.keep(new)

    def run(self) -> list[Buffer]:
        """Compute; the values stay on the device for the next evaluation."""
        backend, leaves, cached = self.backend, self.leaves.items(), self.cached
        passed = {n: cached[node].taken(backend) if node in cached else argument(node, backend) for n, node in leaves}
        values, mark = self.prepared.run(passed), marked(backend)
        results = [(node, values[number]) for node, number in zip(self.nodes, self.results, strict=True)]
        for node, value in results:
            if isinstance(node, Result):
                _computed.setdefault(node.call, {})[node.index] = DeviceValue(backend, value, self.versions, mark)
        return [boxed(node.type, value, backend) for node, value in results[: self.asked]]


def _computed_with(nodes: Sequence[Node], needed: Sequence[Call], arguments: Container[Node]) -> list[Node]:
    """Other results of the needed calls, which are kept for the next evaluation.

    They are the results of functions with effects, which must not be called again for another output or reader, and the
    other outputs of iterations and libraries.
    """
    for call in needed:
        if type(call.kernel) is not Kernel:
            break
    else:
        return []
    nodes_set = set(nodes)
    whole = {node.call for node in nodes_set if isinstance(node, Result) and isinstance(node.call.kernel, Together)}
    whole_calls = [
        call for call in needed if call in whole or (isinstance(call.kernel, Functions) and call.kernel.acts)
    ]
    values = [Result(call, n) for call in whole_calls for n in range(len(call.kernel.outputs))]
    return [value for value in values if value not in nodes_set and value not in arguments]


def compute(nodes: Sequence[Node], backend: Backend) -> list[Buffer]:
    """Evaluate values together."""
    return Computation(nodes, backend).run()


def copy_into(target: Shared, source: Shared, kind: FieldType) -> None:
    """Copy a field on its device, from one layout to another."""
    what = program([copied(Field.of(Leaf(kind, source))).node])
    layouts = {} if target.layout is None else {what.results[0]: target.layout}
    values = {what.ops[0].inputs[0]: source.memory}
    prepare(what, target.backend, pinned(), layouts=layouts).run(values, {what.results[0]: target.memory})


def boxed(kind: FieldType, value: Argument, backend: Backend) -> Buffer:
    """The buffer of a value; scalars of a parameter are uploaded."""
    if not isinstance(value, tuple):
        return value
    return backend.upload(kind, np.array(value, kind.memory_dtype)[:, None])


def arrays(*fields: Field) -> list[Array]:
    """Evaluate fields together, wait, and return their arrays."""
    backend = current()
    buffers = compute([f.node for f in fields], backend)
    kinds = [f.type for f in fields]
    return [array_of(kind, backend.download(kind, b)) for kind, b in zip(kinds, buffers, strict=True)]


def evaluate(*fields: Field) -> Any:
    """Evaluate fields together without waiting; their values stay on the device.

    It computes several results of one operator in one run, which separate reads would compute one by one:
    `values, vectors = gp.evaluate(*gp.linalg.eigh(f))`. Later operators read the results from memory and do not fuse with it.

    Args:
        fields: one Field or several.

    Returns:
        Fields that are leaves: iterating `u = gp.evaluate(sweep(u))` neither grows nor replans. One for one field, else
        a tuple.

    Raises:
        SemanticError: no Field, or one without values: a sensor, a state, an argument of a pipeline.
        CompileError: the device's compiler refuses a kernel.
        DeviceError: no device works, its memory does not suffice, or it lacks a type that a kernel uses.
    """
    for f in fields:
        if not isinstance(f, Field):
            raise SemanticError(f"evaluate wants Fields, not {described(f)}")
        values_seen(f.node)
    backend = current()
    buffers, mark = compute([f.node for f in fields], backend), marked(backend)
    names = names_given(len(fields)) or tuple(f.name for f in fields)
    leaves = tuple(
        Field.of(Leaf(f.node.type, Evaluated(f.node.type, backend, b, mark), name=name), kind=f.type)
        for f, b, name in zip(fields, buffers, names, strict=True)
    )
    return leaves[0] if len(leaves) == 1 else leaves


def buffer(field: Field) -> Buffer:
    """The buffer of a field on the device in use; enqueued, without waiting."""
    return compute([field.node], current())[0]


def keep(field: Field) -> Field:
    """The field as a leaf whose values are on the device in use."""
    backend = current()
    (value,) = compute([field.node], backend)
    kind = field.node.type
    return Field.of(Leaf(kind, Evaluated(kind, backend, value, marked(backend)), name=field.name), kind=field.type)


def release() -> None:
    """Free all caches: compiled kernels, plans, values of lazy fields, and pooled memory.

    It waits for all devices. Fields and pipelines stay usable: they are computed, or compiled, again at their next use
    (compiled kernels are on disk too). Results of `gp.evaluate` and live graphs keep their memory.

    Raises:
        DeviceError: enqueued work failed.
    """
    _computed.clear()
    _uploaded.clear()
    forget_all()
    gc.collect()  # programs and buffers in cycles
    for queue in usable():
        queue.trim()
