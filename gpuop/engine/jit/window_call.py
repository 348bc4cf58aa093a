"""Calls of pipelines with windows of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.records import dataclass
from gpuop.engine.interop import numpy_dtype
from gpuop.engine.jit.array_calls import DeviceCall, HostCall
from gpuop.engine.jit.call import PipelineCall, check_out, on_device
from gpuop.engine.jit.grid_window import GridPartition, GridWindow, WindowTrace
from gpuop.engine.jit.window_stages import WindowPart
from gpuop.fusion.windows.footprint import Place, places
from gpuop.ir.axis_limit import in_windows
from gpuop.runtime.base.backend import Argument, Array, Backend
from gpuop.runtime.base.host_arrays import planes_of
from gpuop.runtime.devices import current

if TYPE_CHECKING:
    from gpuop.engine.jit.pipeline import Pipeline


@dataclass(frozen=True)
class ArraySpec:
    """The shape and dtype of an array, which is all that tracing needs."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @staticmethod
    def of(array: Any, shape: Sequence[int]) -> ArraySpec:
        return ArraySpec(tuple(shape), numpy_dtype(array))


class PipelineWindow:
    """The points [start, stop) of a grid, as a pipeline computes them: called as the pipeline, with windows.

    Args:
        pipeline, whole, start, stop, shared, stage, known, computed: as of `pipeline.window`.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        whole: Place,
        start: Sequence[int],
        stop: Sequence[int],
        shared: tuple[str, ...],
        stage: int | None,
        known: tuple[Any, ...],
        computed: tuple[Sequence[int], Sequence[int]] | None,
    ) -> None:
        self.pipeline, self.whole, self.shared, self.stage, self.known = pipeline, whole, shared, stage, known
        self.start, self.stop = places(start, stop, whole)
        self.computed = places(*computed, whole) if computed is not None else (self.start, self.stop)
        ends = zip(*self.computed, self.start, self.stop, strict=True)
        if not all(first <= a and b <= last for first, last, a, b in ends):
            raise SemanticError(
                f"the points from {self.start} to {self.stop} are wanted, and not all of them are computed, from "
                f"{self.computed[0]} to {self.computed[1]}"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute.

        Args:
            args, kwargs: as of the pipeline; `out=` takes an array of [start, stop), or a tuple of them, `device=` a name.

        Returns:
            Arrays of [start, stop), which may be views; of a stage a tuple of parts.
        """
        with on_device(self.pipeline._option("device", kwargs)):
            return self._computed(args, kwargs)

    def at_once(self, *args: Any, **kwargs: Any) -> tuple[tuple[WindowPart, ...], list[Any]]:
        """Compute the parts of the last stage and the results on the grid, of [start, stop); requires `footprint.at_once`.

        Args:
            args, kwargs: as of a call.
        """
        with on_device(self.pipeline._option("device", kwargs)):
            result: tuple[tuple[WindowPart, ...], list[Any]] = self._computed(args, kwargs, with_results=True)
            return result

    def _computed(self, args: tuple[Any, ...], kwargs: dict[str, Any], with_results: bool = False) -> Any:
        pipeline = self.pipeline
        out = pipeline._option("out", kwargs)
        bound, arrays = pipeline._bound(args, kwargs)
        windows, axes = self._windows(arrays), len(self.whole)
        whole = {
            n: ArraySpec.of(a, (*self.whole, *a.shape[axes:]) if n in windows else a.shape) for n, a in arrays.items()
        }
        device = pipeline._on_device(arrays)
        with in_windows([a.shape for a in whole.values()]):
            trace = pipeline._trace(bound, whole, device).trace
        of = pipeline._partition(trace, self.whole, tuple(k for k, name in enumerate(arrays) if name not in windows))
        window = GridWindow.of(of.footprint, self.start, self.stop, self.computed)
        self._check(arrays, windows, window)
        stage = self._stage(of)
        traced = pipeline._window_trace(of, stage + 2 * with_results, window.shape)
        kind, backend = DeviceCall if device else HostCall, current()
        passed = self._passed(of, traced, window, backend)
        if stage < len(of.pipeline_stages.stages):
            call = kind(traced.trace, list(arrays.values()), backend, None, passed)
            values, results = call.downloaded(traced.cut.count(False))
            downloads = iter(values)
            parts = tuple(each.part(downloads, self.start, self.stop) for each in of.pipeline_stages.stages[stage][0])
            return (parts, [array[window.inner] for array in results]) if with_results else parts
        outs = None if out is None else self._outs(traced, out)
        direct = outs if window.shape.points == window.shape.extents else None
        call = kind(traced.trace, list(arrays.values()), backend, direct, passed)
        return self._results(call, traced, window, outs if direct is None else None)

    # --- what is given --------------------------------------------------------------------------------------------

    def _windows(self, arrays: dict[str, Any]) -> set[str]:
        """The names of arguments that are windows: those with the extents of the first one that is large enough."""
        unknown = [name for name in self.shared if name not in arrays]
        if unknown:
            raise SemanticError(f"pipeline `{self.pipeline.name}` has no array {unknown[0]!r} to share")
        axes, least = len(self.whole), [b - a for a, b in zip(*self.computed, strict=True)]
        shapes = {n: tuple(a.shape[:axes]) for n, a in arrays.items() if n not in self.shared and len(a.shape) >= axes}
        like = next((s for s in shapes.values() if all(m >= n for m, n in zip(s, least, strict=True))), None)
        return {n for n, shape in shapes.items() if shape == like}

    def _check(self, arrays: dict[str, Any], windows: set[str], window: GridWindow) -> None:
        extents = window.shape.extents
        for name in arrays:
            actual = tuple(arrays[name].shape[: len(extents)])
            if name in windows and actual != extents:
                ends = ", ".join(f"{a}:{b}" for a, b in window.ends)
                raise SemanticError(
                    f"pipeline `{self.pipeline.name}`: the points from {self.computed[0]} to {self.computed[1]} need a window "
                    f"[{ends}], of extents {extents}, and `{name}` has {actual}; `footprint(…).window(start, stop)` says what is "
                    "needed"
                )

    def _stage(self, of: GridPartition) -> int:
        """The number of the program to run; SemanticError if reductions of earlier stages are missing."""
        stages = [len(reductions) for reductions, _ in of.pipeline_stages.stages]
        stage = len(stages) if self.stage is None else self.stage
        if not 0 <= stage <= len(stages) or (stage == len(stages) and self.stage is not None):
            raise SemanticError(f"pipeline `{self.pipeline.name}` has {len(stages)} stages, and no stage {self.stage}")
        if len(self.known) < sum(stages[:stage]):
            raise SemanticError(
                f"pipeline `{self.pipeline.name}` reduces over the grid: {of.footprint.stages[0][0]}; compute the parts of all "
                f"windows first, by `stage=`, and give what they join to as `known=`, {sum(stages[:stage])} arrays"
            )
        return stage

    # --- the window -----------------------------------------------------------------------------------------------

    def _passed(
        self, of: GridPartition, traced: WindowTrace, window: GridWindow, backend: Backend
    ) -> dict[int, Argument]:
        """The arguments of leaves that are no arrays of the caller: numbers of the window, and earlier reductions."""
        more, types = len(self.whole) - len(of.programs[-1][1].grid), traced.trace.program.types
        passed: dict[int, Argument] = {
            leaf: (window.number(name, axis + more),) for leaf, (name, axis) in traced.numbers.items()
        }
        for leaf, number in traced.known.items():
            array = np.asarray(self.known[number], types[leaf].array_dtype).reshape(types[leaf].array_shape)
            passed[leaf] = backend.upload(types[leaf], planes_of(types[leaf], array))
        return passed

    # --- results --------------------------------------------------------------------------------------------------

    def _outs(self, traced: WindowTrace, out: Any) -> Sequence[Any]:
        points = tuple(b - a for a, b in zip(self.start, self.stop, strict=True))
        kinds = [k.replace(field_shape=points) if c else k for k, c in zip(traced.trace.kinds, traced.cut, strict=True)]
        return check_out(self.pipeline.name, out, kinds)

    def _results(self, call: PipelineCall, traced: WindowTrace, window: GridWindow, outs: Sequence[Any] | None) -> Any:
        """Run a call and cut the wanted points out of its results; copy them to `outs` if it is given."""
        results = zip(call.results(), traced.cut, strict=True)
        points: list[Array] = [array[window.inner] if c else array for array, c in results]
        if outs is not None:
            for array, result in zip(outs, points, strict=True):
                array[...] = result
            points = list(outs)
        return tuple(points) if traced.trace.several else points[0]


def takes_cores() -> bool:
    """Return whether the device in use computes each window on all cores of the host."""
    return current().target.device == "cpu"
