"""What pipelines know of windows of their grids: footprints, and calls that compute a part of a whole."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.bounded import BoundedCache
from gpuop.dsl.fields.arrays import is_array
from gpuop.dsl.fields.sources import Deferred
from gpuop.dsl.operators.tokens import Tokenized
from gpuop.errors import SemanticError
from gpuop.evaluation import PLANS_KEPT
from gpuop.interop import numpy_dtype
from gpuop.ir.types import FieldType, Shape, is_integer
from gpuop.ir.values import Leaf
from gpuop.pipelines.device_call import DeviceCall
from gpuop.pipelines.host_call import HostCall
from gpuop.pipelines.pipeline_call import PipelineCall, Traced, check_out, in_planes, on_device
from gpuop.runtime.devices import current
from gpuop.windows.footprint import Footprint, Place, kernels_grid, places, positions, told
from gpuop.windows.surroundings import Surroundings, surroundings
from gpuop.windows.windowed_kernel import Name, WindowOf
from gpuop.windows.windowed_program import on_window


@dataclass(frozen=True, eq=False)
class Parted:
    """A pipeline's program, and what windows of its grid need.

    Attributes:
        windows: the leaves that come in windows.
    """

    traced: Traced
    found: Surroundings
    footprint: Footprint
    windows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Windowed:
    """What computes windows of some extents, and the leaves that are the numbers of a window."""

    traced: Traced
    numbers: dict[int, Name]


class Windowing(Tokenized, ABC):
    """Has pipelines compute windows of a grid."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self.parted: BoundedCache[Any, Parted] = BoundedCache(PLANS_KEPT)
        self.windowed: BoundedCache[Any, Windowed] = BoundedCache(PLANS_KEPT)

    @abstractmethod
    def _bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[inspect.BoundArguments, dict[str, Any]]: ...

    @abstractmethod
    def _on_device(self, given: dict[str, Any]) -> bool: ...

    @abstractmethod
    def _trace(self, bound: inspect.BoundArguments, given: dict[str, Any], device: bool) -> Traced: ...

    @abstractmethod
    def _option(self, name: str, kwargs: dict[str, Any]) -> Any: ...

    def footprint(self, *arguments: Any, **named: Any) -> Footprint:
        """How far around a point of the grid results depend on arguments, through the whole fused graph.

        Nothing is run, and arrays are not looked at: their shapes and dtypes say all. The grid is the largest one that an
        argument or a result has.

        Args:
            arguments, named: of a call; a `gp.FieldType`, or a shape and a dtype, stand for an array.

        Returns:
            A Footprint, which `print` explains.

        Raises:
            SemanticError: what a call with these arguments raises, or there is no grid.
        """
        args, kwargs = tuple(map(_standing, arguments)), {name: _standing(v) for name, v in named.items()}
        bound, given = self._bound(args, kwargs)
        traced = self._trace(bound, {n: _like(a, a.shape) for n, a in given.items()}, self._on_device(given))
        return self._parted(traced, _largest(traced), ()).footprint

    def window(
        self, whole: Sequence[int], start: Sequence[int], stop: Sequence[int], shared: str | Iterable[str] = ()
    ) -> PipelineWindow:
        """What computes the points [start, stop) of a grid, of windows of its arguments; results have the bits of the whole.

        Arguments are windows [start - halo, stop + halo) by `footprint`, cut at the ends of the grid, but not where its ends
        meet: `footprint.window(start, stop)` says which points these are. `_row`, `_rows`, `.shape`, borders, random numbers
        and `_assert` mean the whole grid. All windows of one shape have the same kernels.

        Args:
            whole: the extents of the grid.
            start, stop: for each axis of the grid the first point, and the one behind the last.
            shared: arguments, by their names, that are arrays of the whole and no windows; those that have not the extents of
                the first one that may be a window are anyway.

        Returns:
            What is called as the pipeline, with windows. Results of other grids are those of the whole.

        Raises:
            SemanticError: points outside of the grid; when called, what the pipeline raises, windows of other extents, or what
                cannot be computed so, with the operator and its line.
        """
        grid = tuple(int(n) for n in whole) if not is_integer(whole) else (int(whole),)
        first, last = places(start, stop, grid)
        return PipelineWindow(self, grid, first, last, (shared,) if isinstance(shared, str) else tuple(shared))

    def _parted(self, traced: Traced, grid: Place, shared: Sequence[int]) -> Parted:
        """What windows of this grid need; `shared` are the places of arguments that are whole."""
        return self.parted.find((traced, grid, tuple(shared)), lambda: _parted(traced, grid, shared))


def _parted(traced: Traced, grid: Place, shared: Sequence[int]) -> Parted:
    what, kernels = traced.program, kernels_grid(grid)
    windows = tuple(
        v
        for v, node in what.leaves.items()
        if isinstance(node, Leaf)
        and isinstance(node.source, Deferred)
        and node.source.kind.field_shape == grid
        and node.source.placeholder.position not in shared
    )
    found = surroundings(what, kernels, windows)
    return Parted(traced, found, told(grid, found, windows, positions(what, found)), windows)


class PipelineWindow:
    """The points [start, stop) of a grid, as a pipeline computes them: called as the pipeline, with windows.

    Args:
        pipeline, whole, start, stop, shared: as of `pipeline.window`.
    """

    def __init__(self, pipeline: Windowing, whole: Place, start: Place, stop: Place, shared: tuple[str, ...]) -> None:
        self.pipeline, self.whole, self.start, self.stop, self.shared = pipeline, whole, start, stop, shared

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute.

        Args:
            args, kwargs: as of the pipeline; `out=` takes an array of [start, stop), or a tuple of them, `device=` a name.

        Returns:
            Arrays of [start, stop), which may be views.
        """
        pipeline = self.pipeline
        out, where = pipeline._option("out", kwargs), pipeline._option("device", kwargs)
        bound, given = pipeline._bound(args, kwargs)
        windows = self._windows(given)
        whole = {
            n: _like(a, (*self.whole, *a.shape[len(self.whole) :]) if n in windows else a.shape)
            for n, a in given.items()
        }
        device = pipeline._on_device(given)
        traced = pipeline._trace(bound, whole, device)
        shared = [k for k, name in enumerate(given) if name not in windows]
        parted = pipeline._parted(traced, self.whole, shared)
        ends = parted.footprint.window(self.start, self.stop)
        self._check(given, windows, ends)
        made = self._made(parted, ends)
        with on_device(where):
            return self._results(made, parted, ends, list(given.values()), device, out)

    def _windows(self, given: dict[str, Any]) -> set[str]:
        """The arguments that are windows: they have the extents of the first one that may be."""
        unknown = [name for name in self.shared if name not in given]
        if unknown:
            raise SemanticError(f"pipeline `{self.pipeline.name}` has no array {unknown[0]!r} to share")
        axes, least = len(self.whole), [b - a for a, b in zip(self.start, self.stop, strict=True)]
        shapes = {n: tuple(a.shape[:axes]) for n, a in given.items() if n not in self.shared and len(a.shape) >= axes}
        like = next((s for s in shapes.values() if all(m >= n for m, n in zip(s, least, strict=True))), None)
        return {n for n, shape in shapes.items() if shape == like}

    def _check(self, given: dict[str, Any], windows: set[str], ends: Sequence[tuple[int, int]]) -> None:
        extents = tuple(b - a for a, b in ends)
        for name in given:
            got = tuple(given[name].shape[: len(extents)])
            if name in windows and got != extents:
                told = ", ".join(f"{a}:{b}" for a, b in ends)
                raise SemanticError(
                    f"pipeline `{self.pipeline.name}`: the points from {self.start} to {self.stop} need a window [{told}], of "
                    f"extents {extents}, and `{name}` has {got}; `footprint(…).window(start, stop)` says what is needed"
                )

    def _made(self, parted: Parted, ends: Sequence[tuple[int, int]]) -> Windowed:
        extents = tuple(b - a for a, b in ends)
        cut = frozenset(
            a
            for a, (first, last) in enumerate(zip(self.start, self.stop, strict=True))
            if (first, last) != (0, self.whole[a])
        )
        return self.pipeline.windowed.find((parted, extents, cut), lambda: _windowed(parted, self.whole, extents, cut))

    def _results(
        self, made: Windowed, parted: Parted, ends: Sequence[tuple[int, int]], arrays: list[Any], device: bool, out: Any
    ) -> Any:
        inner = tuple(slice(a - first, b - first) for a, b, (first, _) in zip(self.start, self.stop, ends, strict=True))
        cut = [v in parted.found.cut for v in made.traced.program.wanted]
        exact = all(s == slice(0, b - a) for s, (a, b) in zip(inner, ends, strict=True))
        outs = None
        if out is not None:
            points = tuple(s.stop - s.start for s in inner)
            kinds = [k.replace(field_shape=points) if c else k for k, c in zip(made.traced.kinds, cut, strict=True)]
            outs = check_out(self.pipeline.name, out, kinds)
        more = len(self.whole) - len(parted.found.grid)
        numbers = {v: self._number(what, axis + more, ends[axis + more]) for v, (what, axis) in made.numbers.items()}
        call: PipelineCall = (DeviceCall if device else HostCall)(
            made.traced, arrays, current(), outs if exact else None, numbers
        )
        found = [array[inner] if c else array for array, c in zip(call.results(), cut, strict=True)]
        if outs is not None and not exact:
            for array, result in zip(outs, found, strict=True):
                array[...] = result
            found = list(outs)
        return tuple(found) if made.traced.several else found[0]

    def _number(self, what: str, axis: int, ends: tuple[int, int]) -> int:
        if what == "origin":
            return ends[0] % self.whole[axis]
        return (self.start if what == "first" else self.stop)[axis] - ends[0]


def _windowed(parted: Parted, whole: Place, extents: Place, cut: frozenset[int]) -> Windowed:
    found, traced = parted.found, parted.traced
    more = len(whole) - len(found.grid)
    axes = frozenset(a - more for a in cut)
    window = WindowOf(found.grid, kernels_grid(extents), axes, axes & frozenset(found.periodic))
    made = on_window(traced.program, found, window)
    kinds = tuple(
        k.replace(field_shape=extents) if v in found.cut else k
        for v, k in zip(traced.program.wanted, traced.kinds, strict=True)
    )
    again = Traced(made.program, kinds, *in_planes(made.program), traced.several, traced.optimize)
    return Windowed(again, {number: name for name, number in made.numbers.items()})


def _standing(value: Any) -> Any:
    """What stands for an array of a type, without memory."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and not is_array(value[1]):
        return np.broadcast_to(np.zeros((), value[1]), value[0])
    if isinstance(value, FieldType):
        return np.broadcast_to(np.zeros((), value.array_dtype), value.array_shape)
    return value


@dataclass(frozen=True)
class _Like:
    """What tracing asks of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _like(array: Any, shape: Sequence[int]) -> Any:
    return _Like(tuple(shape), numpy_dtype(array))


def _largest(traced: Traced) -> Place:
    """The grid of a program: the largest one of its arguments and results."""
    leaves = (n.source for n in traced.program.leaves.values() if isinstance(n, Leaf))
    grids = [Shape(s.kind.field_shape) for s in leaves if isinstance(s, Deferred)] + [
        k.field_shape for k in traced.kinds
    ]
    return tuple(max(grids, key=math.prod))
