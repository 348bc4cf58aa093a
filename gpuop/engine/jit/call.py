"""Calls of pipelines: a pipeline that is traced, planned for the caller's arrays, compiled and run on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from gpuop.base.errors import ArgumentError, SemanticError
from gpuop.base.finalizers import WeakKeys, WeakValues
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.from_arrays import Placeholder
from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.evaluate import argument, plan_ahead, plan_on, prepare
from gpuop.engine.interop import has_layout, library_of, unfit
from gpuop.engine.jit.prepared_call import PreparedDeviceCall, PreparedHostCall
from gpuop.engine.jit.prepared_staged_call import PreparedStagedCall
from gpuop.engine.jit.prepared_stream_call import PreparedStreamCall
from gpuop.engine.jit.tier import Tier
from gpuop.fusion.launch import Rate, Rates
from gpuop.fusion.plan import Plan
from gpuop.fusion.program import Cycle, Program, program
from gpuop.ir.kernel import DeviceFunction
from gpuop.ir.layout import Layout, interleaved, layout_of, planar
from gpuop.ir.target import Target
from gpuop.ir.types import HALF, FieldType
from gpuop.ir.values import Leaf, Node
from gpuop.passes.schedules.pinning import pinned
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, download
from gpuop.runtime.base.device_sources import DeviceValue, marked
from gpuop.runtime.devices import use_device
from gpuop.runtime.execute import Prepared
from gpuop.runtime.profile.profiler import Profile, profile
from gpuop.runtime.tuning.chooser import choices_on

LEAST_STRIDED = 1 << 16  # bytes: copies of smaller arrays take no time, and kernels for their strides do to compile
LAYOUTS_KEPT = 16  # plans of a pipeline for arguments of the same types
MOST_STRIDED = 8  # strides of a pipeline's arguments that kernels are compiled for; others are copied
PreparedCall = PreparedHostCall | PreparedStagedCall | PreparedDeviceCall | PreparedStreamCall


@dataclass(frozen=True, eq=False)
class Trace:
    """The program of a pipeline for arguments of some types.

    Attributes:
        kinds: the types of the results, as users see them.
        planar: values that must lie in planes: inputs and outputs of calls without a body (host
            functions, iterations), and arguments that are also results.
        by_library: those of them that only device libraries take or make, for which planes are enough.
        several, optimize: True if a tuple is returned, and if operators are fused.
        plans, prepared: plans, and compiled plans while they are in use, by device and layouts.
        nodes: the results.
        once: values that all calls share, by compiled plan.
        again: the reason for another trace with equal arguments; empty if there was none.
        strided: layouts of NumPy arrays that are used in place and are not contiguous, by the number of the leaf and strides.
        tier: the tier of its kernels, if the pipeline has several sizes.
        numbers: a sentence on the numbers that are arguments of kernels, if there are any.
        sized: the program before numbers that follow from extents became arguments; None if there are none.
        target: what the program with such arguments is for; None for all.
    """

    program: Program
    kinds: tuple[FieldType, ...]
    planar: frozenset[int]
    by_library: frozenset[int]
    several: bool
    optimize: bool
    nodes: tuple[Node, ...] = ()
    again: str = ""
    tier: Tier | None = None
    numbers: str = ""
    sized: Program | None = None
    target: Target | None = None
    plans: BoundedCache[Any, Plan] = field(default_factory=lambda: BoundedCache(LAYOUTS_KEPT))
    prepared: WeakValues[Any, Prepared] = field(default_factory=WeakValues)
    strided: dict[tuple[int, tuple[int, ...]], Layout] = field(default_factory=dict)
    once: WeakKeys[Prepared, HoistedConstants] = field(default_factory=WeakKeys)

    @property
    def latest(self) -> Trace:
        """The trace with kernels of its size, if there is one by now."""
        own: Trace | None = None if self.tier is None else self.tier.own
        return self if own is None else own

    def suits(self, target: Target) -> bool:
        """Return whether the trace is for a target."""
        return self.target is None or self.target == target

    @property
    def about(self) -> str:
        """The tier and the numbers for `explain`; empty if there is nothing to say."""
        tier = "" if self.tier is None else self.tier.about
        return "\n".join(filter(None, (tier, self.numbers)))

    def of_size(self) -> Trace:
        """The trace of the same calls without open extents, of which nothing is planned."""
        return Trace(
            (self.sized or self.program).of_size(),
            self.kinds,
            self.planar,
            self.by_library,
            self.several,
            self.optimize,
            self.nodes,
            self.again,
            self.tier,
            self.numbers,
            target=self.target,
        )

    def takes(self, number: int, in_planes: bool) -> bool:
        """Return whether a value may lie in the caller's memory, `in_planes` or interleaved."""
        return number not in self.planar or (in_planes and number in self.by_library)

    def layout(self, number: int, kind: FieldType, array: Array) -> Layout | None:
        """The layout of a NumPy array that kernels read in place; None if it must be copied."""
        contiguous = array.flags.c_contiguous
        if not self.takes(number, contiguous and kind.planes == 1):
            return None
        if contiguous:
            return interleaved(kind) if kind.planes > 1 else planar(kind)
        key = number, array.strides
        strided = self.strided.get(key)
        if strided is None and len(self.strided) < MOST_STRIDED and array.nbytes >= LEAST_STRIDED:
            strided = _layout(kind, array)
            if strided is not None:
                self.strided[key] = strided
        return strided


def in_planes(what: Program) -> tuple[frozenset[int], frozenset[int]]:
    """The `planar` values of a program, and those `by_library`."""
    odd = [op for op in what.ops if op.kernel.unfusible or op.updates]
    by_library, others = (
        {v for op in odd if isinstance(op.kernel, DeviceFunction) is results for v in (*op.inputs, *op.outputs)}
        for results in (True, False)
    )
    others |= what.leaves.keys() & set(what.results)
    return frozenset(by_library | others), frozenset(by_library - others)


def trace_of(
    nodes: Sequence[Node],
    kinds: Iterable[FieldType],
    several: bool,
    optimize: bool,
    arguments: Container[Node] = (),
) -> Trace:
    """Build the trace that computes `nodes`; those in `arguments` are its leaves."""
    what = program(nodes, arguments)
    return Trace(what, tuple(kinds), *in_planes(what), several, optimize, tuple(nodes))


class PipelineCall(ABC):
    """One call of a pipeline, planned for the layouts of its arrays.

    Args:
        args: the caller's arrays, in the order of the parameters.
        out: the caller's arrays for the results; None: new ones.
        passed: the arguments for leaves that have no source.

    Attributes:
        arrays: the caller's arrays in the form that the call reads.
        sample: an array of the library that results belong to; None for NumPy.
        layouts: layouts of values in the caller's memory that are not planar.
        memory: buffers of the results that kernels write into arrays in place.
        arguments: the argument of each leaf of the program.
    """

    def __init__(
        self,
        trace: Trace,
        args: Sequence[Any],
        backend: Backend,
        out: Sequence[Any] | None,
        passed: Mapping[int, Argument] = MappingProxyType({}),
    ) -> None:
        self.trace, self.program, self.backend, self.out = trace, trace.program, backend, out
        self.arrays = [self._readable(array) for array in args]
        self.sample = args[0] if args and library_of(args[0]) != "numpy" else None
        self.layouts: dict[int, Layout] = {}
        self.memory: dict[int, Buffer] = {}
        self.arguments: dict[int, Argument] = {
            leaf: passed[leaf] if leaf in passed else self._argument(leaf, node)
            for leaf, node in self.program.leaves.items()
        }
        self._place_results()

    def _argument(self, number: int, node: Node) -> Argument:
        if not isinstance(node, Leaf) or not isinstance(node.source, Deferred):
            return argument(node, self.backend)
        return self._of_array(number, node.type, node.source, self.arrays[node.source.placeholder.position])

    @abstractmethod
    def _readable(self, array: Any) -> Any:
        """Return one of the caller's arrays in the form that the call reads."""

    @abstractmethod
    def _of_array(self, number: int, kind: FieldType, source: Deferred, array: Any) -> Argument:
        """Return the argument for the leaf of one of the caller's arrays."""

    @abstractmethod
    def _place_results(self) -> None:
        """Choose the results that kernels write into arrays in place, and their layouts."""

    @abstractmethod
    def _taken(self, values: dict[int, Buffer]) -> Sequence[Any]:
        """Return the arrays of the results from the buffers that the run has filled."""

    def results(self) -> Sequence[Any]:
        """Compute; return arrays of the library of the arguments, or those of `out=`."""
        try:
            return self._taken(self._run(self._prepared()))
        except BaseException:
            self.backend.keep(self)  # enqueued work may still use the arrays
            raise

    def returned(self) -> Any:
        """The return value of the pipeline: an array, or a tuple of arrays."""
        results = self.results()
        return tuple(results) if self.trace.several else results[0]

    @property
    def own_leaves(self) -> list[tuple[int, int, Node]]:
        """The leaves of the caller's arrays, with their numbers and the positions of the arrays."""
        leaves = [(n, node, node.source) for n, node in self.program.leaves.items() if isinstance(node, Leaf)]
        return [(n, source.placeholder.position, node) for n, node, source in leaves if isinstance(source, Deferred)]

    @property
    def other_leaves(self) -> list[tuple[int, Node]]:
        """The other leaves, with their numbers."""
        own_leaves = {n for n, _, _ in self.own_leaves}
        return [(n, node) for n, node in self.program.leaves.items() if n not in own_leaves]

    def repacked(self) -> tuple[list[int], list[int]]:
        """The arguments that the host copies from interleaved arrays to planes, and the results that it copies back."""
        return [], []

    @abstractmethod
    def prepared(self) -> PreparedCall | None:
        """Return what later calls with arrays that lie alike can run by; None if this call says too little about them."""

    def downloaded(self, count: int) -> tuple[list[Array], Sequence[Any]]:
        """Compute; return NumPy arrays of the first `count` results, which lie in planes, and the others as `results` does."""
        try:
            values = self._run(self._prepared())
            first = zip(self.program.results[:count], self.trace.kinds, strict=False)
            others = self._taken(values)[count:] if count < len(self.trace.kinds) else []
            return [download(kind, values[v], self.backend) for v, kind in first], others
        except BaseException:
            self.backend.keep(self)
            raise

    def _run(self, prepared: Prepared) -> dict[int, Buffer]:
        if not prepared.once:
            return prepared.run(dict(self.arguments), self.memory)
        shared = self.trace.once.setdefault(self._compiled(), HoistedConstants())
        constants = shared.of(prepared, lambda: dict(self.arguments))
        return prepared.run(self.arguments | constants, self.memory, prepared.once)

    @property
    def plan(self) -> Plan:
        """The plan for these layouts."""
        return self._planned(self.layouts)

    def plan_ahead(self, target: str) -> Plan:
        """The plan for a target by its name, for arrays of the same layouts."""
        return plan_ahead(self.program, target, pinned(), self.trace.optimize, self.layouts)

    def _planned(self, layouts: dict[int, Layout]) -> Plan:
        return self.trace.plans.find(
            self._key(layouts),
            lambda: plan_on(self.backend, self.program, pinned(), self.trace.optimize, layouts),
        )

    def _key(self, layouts: dict[int, Layout]) -> Any:
        return self.backend.main, pinned(), choices_on(self.backend), tuple(layouts.items())

    def _compiled(self) -> Prepared:
        """The plan, compiled for the device's main queue."""
        key = self._key(self.layouts)
        prepared = self.trace.prepared.get(key)
        if prepared is None:
            prepared = self.trace.prepared[key] = prepare(
                self.program, self.backend.main, pinned(), self.trace.optimize, self.layouts, lambda: self.plan
            )
        return prepared

    def _prepared(self) -> Prepared:
        return self._compiled().on(self.backend)

    def profile(self, times: int) -> Profile:
        """Run `times` times and measure the kernels."""
        return replace(profile(self._prepared(), times, self._through), again=self.trace.again)

    @contextmanager
    def _through(self, prepared: Prepared) -> Iterator[Callable[[], bool]]:
        """Yield a function that runs another preparation of the plan, which has run once."""

        def run() -> bool:
            self._run(prepared)
            return True

        self.backend.synchronize()
        try:
            run()
            yield run
        except BaseException:
            prepared.backend.keep(self)
            raise


def on_device(device: Any) -> AbstractContextManager[Any]:
    """The context that `device=` of a call selects: the name of a device, or None."""
    return nullcontext() if device is None else use_device(device)


def refuse_options(name: str, out: Any, device: Any) -> None:
    """Raise SemanticError for `out=` or `device=` in a call of a pipeline that returns Fields."""
    if out is not None:
        raise SemanticError(f"pipeline `{name}` gives Fields here, which have no memory yet; leave out `out=`")
    if device is not None:
        raise SemanticError(
            f"pipeline `{name}` gives Fields here, which are computed on the device in use where they are asked for; leave out "
            "`device=`, and choose it there with `gp.use_device`"
        )


def check_own(name: str, what: Program, stand_ins: Iterable[Placeholder]) -> None:
    """Raise SemanticError for an array of another pipeline or of another call."""
    for node in what.leaves.values():
        source = node.source if isinstance(node, Leaf) else None
        if isinstance(source, Deferred) and not any(source.placeholder is a for a in stand_ins):
            raise SemanticError(
                f"pipeline `{name}` uses {node.name or 'a field'} of an array that was an argument of another call "
                "of a pipeline; make it an argument of this one"
            )


def check_out(name: str, out: Any, kinds: Sequence[FieldType]) -> Sequence[Any]:
    """Return the caller's arrays for the results of a pipeline; ArgumentError if the results do not fit into them."""
    outs: Sequence[Any] = out if isinstance(out, (tuple, list)) else (out,)
    if len(outs) != len(kinds):
        raise ArgumentError(f"pipeline `{name}`: `out=` takes an array for each result, {len(kinds)}, not {len(outs)}")
    for kind, array in zip(kinds, outs, strict=True):
        wrong = unfit(array, kind)
        if wrong:
            raise ArgumentError(f"pipeline `{name}`: {wrong}")
    pairs = ((a, b) for n, a in enumerate(outs) for b in outs[:n])
    if any(np.shares_memory(*p) if all(isinstance(a, np.ndarray) for a in p) else p[0] is p[1] for p in pairs):
        raise ArgumentError(f"pipeline `{name}`: the arrays of `out=` lie in the same memory; give each result its own")
    return outs


def _layout(kind: FieldType, array: Array) -> Layout | None:
    """The layout of an array whose rows are contiguous or planar, with gaps between them; None for other arrays.

    For other arrays, and for halves, which some compilers load only at aligned addresses, schedules for planes gain more
    than a copy costs.
    """
    forward = all(step > 0 for n, step in zip(array.shape, array.strides, strict=True) if n > 1)
    strides = tuple(step // array.itemsize for step in array.strides)
    whole = all(step % array.itemsize == 0 for step in array.strides)
    if not (forward and whole and has_layout(kind, strides)) or kind.storage is HALF:
        return None
    layout = layout_of(kind, strides)
    columns = layout.point[-1:]
    return layout if columns == (1,) or (layout.element == 1 and columns == (kind.planes,)) else None


def by_calls(what: Program) -> Program:
    """The program with the rates of its values, if a library computes one that is the same at every call.

    Constant kernels are not hoisted, because they fuse with their consumers; nor are programs with constant results.
    """
    if not any(isinstance(op.kernel, DeviceFunction) and op.kernel.pure for op in what.ops):
        return what
    cycle = Cycle(frozenset(v for v, node in what.leaves.items() if not _is_constant(node)), frozenset(), ())
    rated = replace(what, cycle=cycle, key=(*what.key, "by calls", cycle))
    rates = Rates(rated)
    each_rate = [rates.add(op.kernel, op.inputs, op.outputs) for op in what.ops]
    once = any(
        rate is Rate.ONCE and isinstance(op.kernel, DeviceFunction)
        for rate, op in zip(each_rate, what.ops, strict=True)
    )
    return rated if once and all(rates.of.get(v) is Rate.EVERY_STEP for v in what.results) else what


def _is_constant(node: Node) -> bool:
    if not isinstance(node, Leaf) or isinstance(node.source, Deferred):
        return False
    return node.source.role == "constant" and node.source.version is None and not node.source.borrowed


class HoistedConstants:
    """The values that all calls of a plan share."""

    def __init__(self) -> None:
        self.values: dict[int, DeviceValue] | None = None

    def of(self, prepared: Prepared, arguments: Callable[[], dict[int, Argument]]) -> dict[int, Buffer]:
        """Return the values for a queue of the device; the first call computes them."""
        backend: Backend = prepared.backend
        if self.values is None:
            buffers = prepared.constants(arguments())
            mark = marked(backend)
            self.values = {v: DeviceValue(backend, buffer, (), mark) for v, buffer in buffers.items()}
        return {v: value.taken(backend) for v, value in self.values.items()}
