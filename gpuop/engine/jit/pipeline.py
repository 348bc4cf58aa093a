"""Pipelines: functions of arrays, traced once per array types and other arguments, then compiled."""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, overload

import numpy as np

from gpuop.base.errors import Loc, SemanticError, UnsupportedError, described, located, naming_arguments, warn
from gpuop.base.lru import BoundedCache
from gpuop.base.trace import HostSpan, traced_again
from gpuop.dsl.fields.field import Field
from gpuop.dsl.fields.field_types import Parameter
from gpuop.dsl.fields.from_arrays import Placeholder, is_array, is_device_array, unfilled
from gpuop.dsl.guards.function_wrapper import Chosen, check_function
from gpuop.dsl.guards.guard import Snapshot
from gpuop.dsl.guards.guarded_cache import EVERY_CALL, GuardedCache
from gpuop.dsl.operators.arguments import check_size, contents, functions_among, leaves
from gpuop.dsl.operators.own_rules import WithRules
from gpuop.dsl.operators.variants import recording_for
from gpuop.dsl.recorder.frames import def_line, return_line
from gpuop.dsl.recorder.precisions import choosing, chosen
from gpuop.dsl.recorder.trace_effects import looks, warnings
from gpuop.engine.dump import explained, source_of
from gpuop.engine.evaluate import PLANS_KEPT
from gpuop.engine.interop import library_of, numpy_dtype, own
from gpuop.engine.jit.call import PipelineCall, Trace, by_calls, check_own, on_device, refuse_options, trace_of
from gpuop.engine.jit.grid_window import (
    GridPartition,
    WindowShape,
    WindowTrace,
    grids_of,
    is_whole,
    partition,
    standing,
    window_trace,
)
from gpuop.engine.jit.sizes import Shapes, Sizes, called, tier_of, with_numbers
from gpuop.engine.jit.tier import Tier
from gpuop.engine.jit.traced_call import TracedCall, open_call
from gpuop.engine.jit.window_call import ArraySpec, PipelineWindow
from gpuop.engine.number_arguments import NumberArguments, arguments_among
from gpuop.fusion.buffers import nbytes_of
from gpuop.fusion.plan import Plan
from gpuop.fusion.windows.footprint import Footprint, Place
from gpuop.ir.axis_limit import in_windows, most_points
from gpuop.ir.types import FieldType, is_integer
from gpuop.ops.call_cache import RESULT, CallCache, New
from gpuop.runtime.devices import current
from gpuop.runtime.profile.profiler import Profile

AUTO = "auto"
MOST_TRACES = 3  # with equal arguments, before a warning


class Pipeline(WithRules):
    """A function of arrays, traced per array types and compiled; made by `@gp.pipeline`.

    Args:
        function, precision, optimize, dynamic: as of `gp.pipeline`.
    """

    recorded_by = (*WithRules.recorded_by, "precision", "dynamic", "auto")
    options = ("out", "device")
    users = (*WithRules.users, "explain", "footprint", "profile", "source", "window")

    def __init__(self, function: Callable[..., Any], precision: str | None, optimize: bool, dynamic: Chosen) -> None:
        super().__init__(function)
        self.auto = isinstance(dynamic, str) and dynamic == AUTO
        self._declare("pipeline", False if self.auto else dynamic)
        self.precision, self.optimize, self.sizes = precision, optimize, Sizes()
        self.traces: GuardedCache[Trace] = GuardedCache(PLANS_KEPT)
        self._counts: BoundedCache[Any, int] = BoundedCache(PLANS_KEPT)  # traces, by arguments
        self._told: set[str] = set()
        self.numbers = NumberArguments(PLANS_KEPT)
        self.call_cache = CallCache(self.signature, {"out": RESULT})
        self._partitions: BoundedCache[Any, GridPartition] = BoundedCache(PLANS_KEPT)
        self._window_traces: BoundedCache[Any, WindowTrace] = BoundedCache(PLANS_KEPT)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.receiver or self.first or self.preset:
            return self.anew(args, kwargs)[0]
        return self.call_cache.result(args, kwargs, self.anew)

    def anew(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> New:
        """Make a call that is not cached: bind and check its arguments, then trace."""
        out, device = self._option("out", kwargs), self._option("device", kwargs)
        bound, arrays = self._bound(args, kwargs)
        if self._is_plain(bound, arrays):
            refuse_options(self.name, out, device)
            return self._result(bound), None, ()
        with on_device(device):
            with HostSpan("prepare"):
                traced, call = self._call(bound, arrays, out, new=True)
                called(traced.trace)
            entry = traced if isinstance(traced.captured, Snapshot) else None
            return call.returned(), entry, list(arrays.values())

    def _option(self, name: str, kwargs: dict[str, Any]) -> Any:
        """Remove `out=` or `device=` from a call's arguments and return it, unless the function has such a parameter."""
        return kwargs.pop(name, None) if name not in self.signature.parameters else None

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[inspect.BoundArguments, dict[str, Any]]:
        """Return the bound arguments of a call, and those of them that are arrays."""
        try:
            bound = self.bind(args, kwargs)
        except TypeError as wrong:
            raise UnsupportedError(f"pipeline `{self.name}`: {wrong}") from None
        return bound, {name: value for name, value in bound.arguments.items() if is_array(value)}

    def explain(self, *arguments: Any, format: str = "text", **named: Any) -> str:
        """The plan of a call with these arguments, on the current device, for arrays of the same layouts.

        Nothing runs, and the arrays stay as they are.

        Args:
            arguments, named: of the call, `out=` and `device=` too; a `gp.FieldType` stands for a NumPy array of its shape and
                dtype. The function's own argument that is called `format` is given by position.
            format: "text", "full" or "json", as of `ComputeGraph.explain`, which says what both tell; a step is a call here.

        Returns:
            A str.

        Raises:
            SemanticError: what a call with these arguments raises, another format, or Fields instead of arrays.
        """
        call = self._inspected(arguments, named)
        return explained(
            call.plan, call.backend, format, again=call.trace.again, repacked=call.repacked(), tier=call.trace.about
        )

    def source(self, *arguments: Any, target: str | None = None, form: str = "text", **named: Any) -> str:
        """The generated text of all kernels that a call with these arguments runs, on the current device or on a target.

        Args:
            arguments, named: as of `explain`.
            target, form: as of `ComputeGraph.source`.

        Returns:
            A str.

        Raises:
            SemanticError: what a call with these arguments raises, an unknown target or form, or Fields instead of arrays.
            DeviceError: as of `Operator.source`.
        """
        call = self._inspected(arguments, named)
        return source_of(call.plan if target is None else call.plan_ahead(target), target, form, call.backend)

    def result_types(self, *arguments: Any) -> tuple[Sequence[FieldType], bool]:
        """The types of the results of a call, and whether they are a tuple; nothing runs.

        Args:
            arguments: of a call; a `gp.FieldType`, or a shape and a dtype, stand for an array.

        Returns:
            A sequence of `gp.FieldType`, and a bool.
        """
        bound, arrays = self._bound(tuple(map(standing, arguments)), {})
        trace = self._trace(bound, arrays, self._on_device(arrays)).trace
        return trace.kinds, trace.several

    def planned(self, *arguments: Any) -> Plan:
        """The plan of a call with these arguments."""
        return self._inspected(arguments, {}).plan

    def nbytes(self, *arguments: Any, **named: Any) -> int:
        """The bytes of memory that a call with these arguments works on, at most: arrays, intermediate values, and results.

        Arrays that are used in place count too. What an iteration keeps between its iterations is not known before it runs.

        Args:
            arguments, named: as of `explain`.

        Returns:
            An int.

        Raises:
            SemanticError: what a call with these arguments raises, or Fields instead of arrays.
        """
        return nbytes_of(self._inspected(arguments, named).plan)

    def profile(self, *arguments: Any, steps: int = 20, **named: Any) -> Profile:
        """Measure how long each kernel takes, with the device's own clock, when the pipeline is called with these arguments.

        Results go to memory that nobody else has; host functions are called each time.

        Args:
            arguments, named: as of `explain`, but for `out=`.
            steps: how many calls; 1 or more.

        Returns:
            What `ComputeGraph.profile` gives.

        Raises:
            SemanticError: what a call with these arguments raises, `steps` is not 1 or more, `out=`, or Fields instead of arrays.
        """
        if self._option("out", named) is not None:
            raise SemanticError(f"pipeline `{self.name}` is measured with results of its own; leave out `out=`")
        return self._inspected(arguments, named).profile(steps)

    def _inspected(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PipelineCall:
        out, device = self._option("out", kwargs), self._option("device", kwargs)
        bound, arrays = self._bound(tuple(map(unfilled, args)), {name: unfilled(v) for name, v in kwargs.items()})
        if self._is_plain(bound, arrays):
            raise SemanticError(
                f"pipeline `{self.name}` is a plain function of Fields here, and has no plan of its own; give it arrays"
            )
        with on_device(device):
            return self._call(bound, arrays, out)[1]

    def _call(
        self, bound: inspect.BoundArguments, arrays: dict[str, Any], out: Any, new: bool = False
    ) -> tuple[TracedCall, PipelineCall]:
        """The trace of a call, and the call; where other sizes came before, with kernels of open extents if there can be.

        Args:
            new: whether its size counts as one that came.
        """
        device, values = self._on_device(arrays), list(arrays.values())
        traced = self._trace(bound, arrays, device, new)
        tier = traced.trace.tier
        if tier is None or tier.reason or tier.calls:
            return traced, traced.call(values, out)
        call = open_call(traced, values, out)
        if call is not None:
            return traced, call
        traced = self._trace(bound, arrays, device, refused=tier)
        return traced, traced.call(values, out)

    def settings(self) -> tuple[Any, ...]:
        return self.precision, self.optimize, "auto" if self.auto else self.dynamic

    def _result(self, bound: inspect.BoundArguments) -> Any:
        with HostSpan("record"), choosing(self.precision):
            return self._ruled(self.function(*bound.args, **bound.kwargs), bound, fresh=False)

    def _is_plain(self, bound: inspect.BoundArguments, arrays: dict[str, Any]) -> bool:
        """Return whether a call is one of the plain function: with Fields, or with placeholders while a pipeline is traced."""
        if len(arrays) == len(bound.arguments) and not any(isinstance(v, Placeholder) for v in arrays.values()):
            return False
        fields = [value for value in bound.arguments.values() if isinstance(value, Field)]
        if any(isinstance(v, Placeholder) for v in leaves(f"pipeline `{self.name}`", bound.arguments)):
            return True
        if arrays and not all(isinstance(value, Parameter) for value in fields):
            raise SemanticError(
                f"pipeline `{self.name}` gets Fields and arrays; give it arrays and Parameters only, or Fields only"
            )
        return bool(fields) and not arrays

    def _on_device(self, arrays: dict[str, Any]) -> bool:
        """Return whether the arrays are on a device; SemanticError if they are of several kinds."""
        if all(type(array) is np.ndarray for array in arrays.values()):
            return False
        kinds = {(library_of(array), is_device_array(array)): name for name, array in arrays.items()}
        if len(kinds) > 1:
            kinds_text = ", ".join(
                f"`{name}` is {kind}'s{' on a device' * device}" for (kind, device), name in kinds.items()
            )
            raise SemanticError(
                f"pipeline `{self.name}` gets arrays of several kinds ({kinds_text}); convert them to one"
            )
        return any(device for _, device in kinds)

    def _trace(
        self,
        bound: inspect.BoundArguments,
        arrays: dict[str, Any],
        device: bool,
        new: bool | None = None,
        refused: Tier | None = None,
    ) -> TracedCall:
        """The trace of a call.

        Args:
            new: whether its size counts as one that came; None if its extents are not to be open.
            refused: the tier of a trace with open extents whose place this one takes.
        """
        types = tuple((n, tuple(a.shape), numpy_dtype(a)) for n, a in arrays.items())
        known_by = self._known_by(bound, arrays) if len(arrays) < len(bound.arguments) else ()
        rest = device, known_by, self.precision or chosen(), most_points()
        key = types, *rest
        others = tuple(value for name, value in bound.arguments.items() if name not in arrays)
        owners = (*self.receiver, *functions_among(others)) if others else self.receiver
        cached, captured = self.traces.lookup(key, owners, (self.function, *others), large_arrays=True)
        if cached and refused is None and cached.suits(current().target):
            return TracedCall(self.name, cached.latest, device, captured)
        again = cached.again if cached else self.traces.reason_for_retrace(key, owners, captured)
        counted = self.auto and new is not None and isinstance(captured, Snapshot)
        family = self.sizes.family(types, (rest, *map(id, owners)), bool(new)) if counted else None
        tier = refused if refused is not None or family is None else tier_of(family, types)
        before, advised = looks(), warnings()
        trace = self._with_arguments(replace(self._recorded(bound, arrays, device, tier), tier=tier))
        captured = captured if warnings() == advised else ""  # what warns is traced again, and warns again
        if looks() != before:
            captured = again = f"{EVERY_CALL}it looks at values of Fields"
        trace = replace(trace, again=again)
        if family is not None and tier is None:
            family.began = weakref.ref(trace)
        if isinstance(captured, Snapshot):
            self.traces.keep(key, owners, captured, trace)
        traced_again(self.name, again)
        self._tell_of_traces((key, *map(id, owners)), again, getattr(captured, "loc", None))
        return TracedCall(self.name, trace, device, captured)

    def _with_arguments(self, trace: Trace) -> Trace:
        """The trace with numbers as arguments of its kernels, where calls before had others."""
        what = self.numbers.of(trace.program) if trace.sized is None else trace.program
        return replace(trace, program=what, numbers=arguments_among(trace.program, what))

    def _recorded(
        self, bound: inspect.BoundArguments, arrays: Mapping[str, Any], device: bool, tier: Tier | None
    ) -> Trace:
        """The trace of a new call; with open extents if the tier has them."""
        names, target = tier.names if tier is not None and not tier.reason else frozenset[str](), current().target
        with recording_for(target if names and tier is not None and target in tier.family.programs else None):
            trace = self._record(bound, arrays, device, names)
        if tier is None or not names:
            return trace

        def other(shape: Shapes) -> Trace:
            each = zip(arrays.items(), tier.family.first, strict=True)
            specs = {n: ArraySpec.of(a, shape(tuple(a.shape), first)) for (n, a), first in each}
            return self._record(bound, specs, device, names)

        return with_numbers(tier.family, trace, other)

    def _record(
        self, bound: inspect.BoundArguments, arrays: Mapping[str, Any], device: bool, names: Collection[str]
    ) -> Trace:
        """The trace of a new call, with open extents of the arguments of these names."""
        open_ = {n for n in arrays if n in names or self._is_dynamic(n)}
        each = enumerate(arrays.items())
        stand_ins = {n: Placeholder(k, tuple(a.shape), numpy_dtype(a), device, n in open_) for k, (n, a) in each}
        bound.arguments.update(stand_ins)
        trace = self._trace_results(self._result(bound))
        check_own(self.name, trace.program, stand_ins.values())
        return trace

    def _tell_of_traces(self, key: Any, again: str, loc: Loc | None) -> None:
        """Warn once, if a third trace of calls with equal arguments has a reason."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if again and count == MOST_TRACES and not self._told:
            self._told.add(again)
            why = f"pipeline `{self.name}` is traced for the third time with equal arguments: {again.removeprefix(EVERY_CALL)}"
            advice = "make it an argument or a gp.Parameter, or compute it outside"
            warn(located(f"{why}; {advice}", loc or def_line(self.function.__code__)))

    def _known_by(self, bound: inspect.BoundArguments, arrays: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
        """Return the arguments that are no arrays, by content."""
        constants = {n: v.node if isinstance(v, Field) else v for n, v in bound.arguments.items() if n not in arrays}
        plain = {n: v for n, v in constants.items() if not self._is_receiver(v)}
        known_by = contents(f"pipeline `{self.name}`", plain)
        check_size(f"pipeline `{self.name}`", constants)
        return known_by

    def _trace_results(self, returned: Any) -> Trace:
        several = isinstance(returned, (tuple, list))
        fields = returned if several else (returned,)
        for f in fields:
            if not isinstance(f, Field):
                code = self.function.__code__
                what = "an array argument as it is" if isinstance(f, Placeholder) else described(f)
                raise SemanticError(
                    f"pipeline `{self.name}` returns {what}; it returns a Field or a tuple of Fields, as `gp.ScalarField(image)`",
                    return_line(code) or def_line(code),
                )
        trace = trace_of([own(f.node) for f in fields], [f.type for f in fields], several, self.optimize)
        return replace(trace, program=by_calls(trace.program))

    # --- windows --------------------------------------------------------------------------------------------------

    def footprint(self, *arguments: Any, **named: Any) -> Footprint:
        """The halo of the pipeline: how far around a point of the grid results depend on arguments, through all operators.

        Nothing runs, and only the shapes and dtypes of arrays are used. The grid is the largest one that an
        argument or a result has; or that an argument has, if no other can be cut, as of histograms of small images.

        Args:
            arguments, named: of a call; a `gp.FieldType`, or a shape and a dtype, stand for an array.

        Returns:
            A Footprint, which `print` explains.

        Raises:
            SemanticError: what a call with these arguments raises, or there is no grid.
        """
        return self._in_parts(arguments, named).footprint

    def _in_parts(
        self, arguments: Sequence[Any], named: Mapping[str, Any], shared: Collection[str] = ()
    ) -> GridPartition:
        """The partition of the pipeline for arguments as of `footprint`; those in `shared` are whole."""
        args, kwargs = tuple(map(standing, arguments)), {name: standing(v) for name, v in named.items()}
        bound, arrays = self._bound(args, kwargs)
        with in_windows([a.shape for a in arrays.values()]):
            trace = self._trace(
                bound, {n: ArraySpec.of(a, a.shape) for n, a in arrays.items()}, self._on_device(arrays)
            ).trace
        places = tuple(k for k, name in enumerate(arrays) if name in shared)
        of_arguments = grids_of(trace, places)
        largest = max((*of_arguments, *(tuple(kind.field_shape) for kind in trace.kinds)), key=math.prod)
        result = self._partition(trace, largest, places)
        if largest in of_arguments or not of_arguments or not is_whole(result):
            return result
        other = self._partition(trace, max(of_arguments, key=math.prod), places)
        return result if is_whole(other) else other

    def window(
        self,
        whole: Sequence[int],
        start: Sequence[int],
        stop: Sequence[int],
        shared: str | Iterable[str] = (),
        stage: int | None = None,
        known: Sequence[Any] = (),
        computed: tuple[Sequence[int], Sequence[int]] | None = None,
    ) -> PipelineWindow:
        """Compute the points [start, stop) of a grid from windows of the arguments; results have the bits of the whole.

        Arguments are windows [start - halo, stop + halo) by `footprint`, cut at the ends of the grid, but not where its ends
        meet: `footprint.window(start, stop)` says which points these are. `_row`, `_rows`, `.shape`, borders, random numbers
        and `_assert` mean the whole grid.
        All windows of one shape have the same kernels; those of a stage that reduces where as many points are wanted.

        Args:
            whole: the extents of the grid.
            start, stop: for each axis of the grid the first point, and the one behind the last.
            shared: arguments, by their names, that are arrays of the whole and no windows; those that have not the extents of
                the first one that may be a window are anyway.
            stage: where the pipeline reduces over the grid, the stage (of `footprint.stages`) of which the window's parts are
                wanted; None: the results.
            known: what earlier stages have given: all that `footprint.known` has made of the parts of each, in order.
            computed: the first of the points that are computed, and the one behind the last, where they are more than [start,
                stop): so windows at the ends of a grid may be as long as others. Arguments are windows of these.

        Returns:
            What is called as the pipeline, with windows. Results of other grids are those of the whole. Of a stage it gives a
            tuple of parts, one for each reduction.

        Raises:
            SemanticError: points outside of the grid; when called, what the pipeline raises, windows of other extents, or what
                cannot be computed so, with the operator and its line.
        """
        grid = tuple(int(n) for n in whole) if not is_integer(whole) else (int(whole),)
        names = (shared,) if isinstance(shared, str) else tuple(shared)
        return PipelineWindow(self, grid, start, stop, names, stage, tuple(known), computed)

    def _partition(self, trace: Trace, grid: Place, shared: tuple[int, ...] = ()) -> GridPartition:
        """The partition of the pipeline; `shared` are the positions of arguments that every window gets whole."""
        return self._partitions.find((trace, grid, shared), lambda: partition(trace, grid, shared))

    def _window_trace(self, of: GridPartition, stage: int, shape: WindowShape) -> WindowTrace:
        key = of, stage, shape if of.pipeline_stages.reduces(stage) else replace(shape, points=())
        return self._window_traces.find(key, lambda: window_trace(of, stage, shape))


@overload
def pipeline(function: Callable[..., Any], /) -> Pipeline: ...
@overload
def pipeline(
    *, precision: str | None = None, optimize: bool = True, dynamic: Chosen = AUTO
) -> Callable[[Callable[..., Any]], Pipeline]: ...
@naming_arguments
def pipeline(
    function: Any = None, /, *, precision: str | None = None, optimize: bool = True, dynamic: Chosen = AUTO
) -> Any:
    """Make a pipeline of a function that builds Fields from its array arguments and returns a Field or a tuple of them.

    It is traced once per array types and other arguments, and again where what it captures has changed or may be another each
    time, which `explain` names; arrays of more than 64 KiB are constants, unless objects hold them. Called with Fields, or with
    what stands for an array while another pipeline is traced, it is the plain function. It returns NumPy arrays for NumPy arrays;
    for arrays of CuPy, PyTorch, JAX or Numba on a CUDA device the same kind, uncopied, in the order of the caller's stream.

    Args:
        function: gets what stands for the arrays (with `.shape`, `.dtype` and `.ndim`, taken by Field constructors), and the
            other arguments as they are; returns a Field or a tuple of them.
        precision: how exactly its operators compute, as of `gp.precision`.
        optimize: False leaves every operator a kernel of its own; in a pipeline that calls this one, that one decides.
        dynamic: True, or names of arguments: arrays whose extents are arguments of kernels, which are compiled once (`explain`).
            False: kernels are compiled for each size. "auto": for the first size and for those that come three times, while other
            sizes share kernels; the bits of results are the same.

    Returns:
        A Pipeline, called with the function's arguments; `out=` takes an array, or a tuple of them, to write the results to,
        and `device=` the name of a device to run on, as `use_device` around the call does.

    Raises:
        SemanticError: no Python function, an unknown precision or argument; when called, wrong arguments or results.
    """
    choosing(precision)
    if function is None:
        return partial(pipeline, precision=precision, optimize=optimize, dynamic=dynamic)
    check_function("a pipeline", function)
    return Pipeline(function, precision, optimize, dynamic)
