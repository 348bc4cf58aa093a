"""The plan of a stream: its pipeline, its sources, and their chunks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.dsl.fields.from_arrays import is_array
from gpuop.engine.jit.partition import GridPartition
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.fusion.windows.kernel_halo import EndToEnd
from gpuop.ir.types import is_integer
from gpuop.scaleout.stream.arguments import check_points, source_names
from gpuop.scaleout.stream.chunking import Chunking, choose_chunks, memory, multiple, window_bytes

FIELDS = 2  # typical number of fields in a window, between arguments and results


class StreamPlan:
    """A pipeline, its sources, and their chunks."""

    def __init__(
        self, of: Pipeline, sources: Sequence[Any], batch: int, shared: tuple[str, ...], constants: dict[str, Any]
    ) -> None:
        self.pipeline, self.sources, self.shared, self.constants = of, sources, shared, constants
        names = source_names(of, constants, len(sources))
        if not sources:
            raise SemanticError("`source=` has no arrays; give one for each argument of the pipeline")
        check_points(sources[0].shape)
        most = len(sources[0].shape) - 1
        if not is_integer(batch) or not 0 <= batch <= most:
            raise SemanticError(
                f"`batch=` is a number of axes, from 0 to {most}, not {batch!r}: the pipeline gets the others"
            )
        self.lead = tuple(sources[0].shape[:batch])
        self.batched = [batch > 0 and tuple(each.shape[:batch]) == self.lead for each in sources]
        self.types = [
            (tuple(each.shape)[batch * b :], np.dtype(each.dtype))
            for each, b in zip(sources, self.batched, strict=True)
        ]
        self.of: GridPartition = of._in_parts(self.types, constants, shared)
        self.grid = self.of.footprint.grid
        check_points((*self.lead, *self.grid))
        windows = [shape[: len(self.grid)] == self.grid for shape, _ in self.types]
        arrays = {name: value for name, value in constants.items() if is_array(value)}
        self.named = dict(zip(names, sources, strict=False)) | arrays
        self.windowed = [w and name not in shared for w, name in zip(windows, names, strict=False)]
        traced, footprint = self.of.programs[-1]
        self.kinds = traced.kinds
        self.inside = [v in footprint.cut for v in traced.program.wanted]
        self.several = traced.several

    # --- chunks ---------------------------------------------------------------------------------------------------

    def cut(self, chunks: Any, out: Any) -> None:
        needed = self.of.footprint
        if isinstance(chunks, str) and chunks == "auto":
            self.chunking = choose_chunks(needed, self._point_bytes(), self._units(out), *window_bytes())
            self._check_uncut()
            return
        extents = tuple(chunks) if isinstance(chunks, Iterable) else (chunks,)
        if len(extents) != len(self.grid) or not all(is_integer(n) and n > 0 for n in extents):
            raise SemanticError(
                f'`chunks=` is "auto" or an extent for each axis of the grid {self.grid}, not {chunks!r}'
            )
        if self.uncut and any(c < n for c, n in zip(extents, self.grid, strict=True)):
            if not all(isinstance(reason, EndToEnd) for reason in needed.whole.values()):
                raise SemanticError(f"`chunks=` {extents} cuts the grid {self.grid}, and {self.uncut}")
            self._check_uncut()  # every window would be the whole, so that is the only one
        sizes = (-(-int(c) // multiple(needed, a)) * multiple(needed, a) for a, c in enumerate(extents))
        whole = needed.whole.keys()
        self.chunking = Chunking(
            needed, tuple(n if a in whole else min(c, n) for a, (c, n) in enumerate(zip(sizes, self.grid, strict=True)))
        )

    def _check_uncut(self) -> None:
        """Refuse a grid that cannot be cut and needs more memory than there is."""
        room, size = memory(), self._point_bytes() * math.prod(self.grid)
        if self.uncut and size > room:
            raise SemanticError(f"the grid {self.grid} takes {size} bytes where there are {room}, and {self.uncut}")

    @property
    def uncut(self) -> str:
        """The reason why no axis can be cut; "" if one can."""
        whole = self.of.footprint.whole
        return f"none of its axes can be cut: {whole[0]}" if len(whole) == len(self.grid) else ""

    def _point_bytes(self) -> int:
        points = math.prod(self.grid)
        inputs = [
            math.prod(shape) * dtype.itemsize for (shape, dtype), w in zip(self.types, self.windowed, strict=True) if w
        ]
        inputs += [
            math.prod(kind.array_shape) * kind.array_dtype.itemsize
            for kind, c in zip(self.kinds, self.inside, strict=True)
            if c
        ]
        return int(-(-sum(inputs) // points) + FIELDS * -(-max(inputs, default=0) // points))

    def _units(self, out: Any) -> list[int]:
        """Return the multiples for chunks: the chunks of a result's store, so that none is written twice, or those of a source."""
        axes, lead = len(self.grid), len(self.lead)
        of_out = [getattr(each, "chunks", None) for each in (out if isinstance(out, (tuple, list)) else (out,))]
        of_source = [getattr(each, "chunks", None) for each, w in zip(self.sources, self.windowed, strict=True) if w]
        chunk = next((c for c in (*of_out, *of_source) if c and len(c) >= lead + axes), None)
        return [1] * axes if chunk is None else [min(int(c), n) for c, n in zip(chunk[lead:], self.grid, strict=False)]

    @property
    def is_cut(self) -> bool:
        """Whether images are cut into windows; otherwise the pipeline is called for each."""
        return math.prod(self.chunking.counts) > 1

    @property
    def results_stage(self) -> int:
        """The stage number of the results, after all stages."""
        return len(self.of.pipeline_stages.stages) if self.is_cut else 0

    @property
    def values_stage(self) -> int:
        """The stage number of an image's other values."""
        return self.results_stage + 1

    @property
    def at_once(self) -> bool:
        """Whether the last stage and the results are computed in one pass."""
        return self.is_cut and self.of.footprint.at_once

    @property
    def stages(self) -> int:
        """The number of passes before that of the results."""
        return self.results_stage - self.at_once

    @property
    def plan(self) -> str:
        images = f"{math.prod(self.lead)} images, each in " * bool(self.lead)
        passes = self.stages + any(self.inside)
        return f"{images}{self.chunking}" + f", {passes} passes that each compute what they need" * (passes > 1)
