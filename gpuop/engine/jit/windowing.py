"""Footprints and windows of pipelines."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpuop.dsl.fields.from_arrays import is_array
from gpuop.dsl.fields.sources import Deferred
from gpuop.engine.jit.call import Trace
from gpuop.engine.jit.partition import GridPartition
from gpuop.engine.jit.window_call import ArraySpec, InWindows, PipelineWindow
from gpuop.fusion.windows.footprint import Footprint, Place
from gpuop.ir.axis_limit import in_windows
from gpuop.ir.types import FieldType, is_integer
from gpuop.ir.values import Leaf


class Windowing(InWindows):
    """Has pipelines compute windows of a grid."""

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
        args, kwargs = tuple(map(_standing, arguments)), {name: _standing(v) for name, v in named.items()}
        bound, given = self._bound(args, kwargs)
        with in_windows([a.shape for a in given.values()]):
            made = self._trace(
                bound, {n: ArraySpec.of(a, a.shape) for n, a in given.items()}, self._on_device(given)
            ).trace
        places = tuple(k for k, name in enumerate(given) if name in shared)
        of_arguments = _grids(made, places)
        largest = max((*of_arguments, *(tuple(kind.field_shape) for kind in made.kinds)), key=math.prod)
        found = self._parts(made, largest, places)
        if largest in of_arguments or not of_arguments or not _is_whole(found):
            return found
        other = self._parts(made, max(of_arguments, key=math.prod), places)
        return found if _is_whole(other) else other

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


def _standing(value: Any) -> Any:
    """A placeholder array of a type, without memory."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and not is_array(value[1]):
        return np.broadcast_to(np.zeros((), value[1]), value[0])
    if isinstance(value, FieldType):
        return np.broadcast_to(np.zeros((), value.array_dtype), value.array_shape)
    return value


def _grids(trace: Trace, shared: Collection[int]) -> list[Place]:
    """The grids of a program's arguments, but for those that are whole."""
    sources = (n.source for n in trace.program.leaves.values() if isinstance(n, Leaf))
    given = [s for s in sources if isinstance(s, Deferred)]
    return [tuple(s.kind.field_shape) for s in given if s.placeholder.position not in shared]


def _is_whole(of: GridPartition) -> bool:
    """Return whether no axis can be cut."""
    return len(of.footprint.whole) == len(of.footprint.grid)
