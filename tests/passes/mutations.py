"""Mistakes by one in the index arithmetic of schedules: what forced schedules on small grids must find without a GPU.

    python -m tests.passes.mutations [NAME …]

A mistake is a text of a function and what stands there instead.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from gpuop.base.lru import BoundedCache
from gpuop.engine import evaluate
from gpuop.passes import pipeline
from gpuop.passes.coarsen import Coarsening
from gpuop.passes.collectives import participants
from gpuop.passes.schedules.common import register_windows, strips, transpose_kernel
from gpuop.passes.schedules.gpu import (
    ghost_points,
    halo_exchange,
    roll_kernel,
    shifted_rows,
    tile_kernel,
    tile_regions,
    tile_windows,
    unaligned_words,
)
from gpuop.passes.swar import packed_lanes

from .forced import compared


@dataclass(frozen=True)
class Mutation:
    """A mistake.

    Attributes:
        owner: a module, or a class.
        function: whose text has it.
        right, wrong: a part of the text, which occurs once, and what stands in its place.
        forced: which of FORCED is to find it.
        proof: whether the accesses are not shown to be inside either, so that the schedule would not be taken.
    """

    owner: Any
    function: str
    right: str
    wrong: str
    forced: str
    proof: bool = False

    def planted(self) -> AbstractContextManager[Any]:
        right: Callable[..., Any] = inspect.unwrap(getattr(self.owner, self.function))
        text = textwrap.dedent(inspect.getsource(right))
        assert text.count(self.right) == 1, f"{self.function} has another text: {self.right}"
        results: dict[str, Any] = {}
        exec(compile(text.replace(self.right, self.wrong), f"<{self.function}>", "exec"), right.__globals__, results)
        return mock.patch.object(self.owner, self.function, results[self.function])

    def findings(self) -> set[str]:
        """The check that detects it: "run", as memory or values are wrong, and "proof", as accesses are not shown to be inside."""
        plans: BoundedCache[Any, Any] = BoundedCache(1)  # what is planned with the mistake is not used again
        cache: BoundedCache[Any, Any] = BoundedCache(1)
        proof, results = pipeline._unproved, set[str]()

        def note(done: tuple[pipeline.AfterPass, ...]) -> list[pipeline.Unproved]:
            """The schedule is taken all the same, so that it runs."""
            if proof(done):
                results.add("proof")
            return []

        noted = mock.patch.multiple(pipeline, _unproved=note, _outside=cache)
        with mock.patch.object(evaluate, "_plans", plans), noted, self.planted():
            try:
                compared(self.forced)
            except Exception:  # noqa: BLE001 - whatever it is, it is found
                results.add("run")
        return results


MUTATIONS: dict[str, Mutation] = {
    "tile: a window in local memory begins a row further": Mutation(
        tile_windows.StripWindows, "index", 'away[0] + there.rows[0] - own.rows[0]', 'away[0] + there.rows[0] - own.rows[0] + 1',
        "tile", proof=True,
    ),
    "tile: the last column that is needed is one less": Mutation(
        tile_regions.Frame, "behind", "along(axis)[1]", "along(axis)[1] - 1", "tile", proof=True,
    ),
    "tile: a group more is in the interior": Mutation(
        tile_kernel.TileKernel, "_interior", "(self.source.domain.extent(axis) - high) // size",
        "(self.source.domain.extent(axis) - high) // size + 1", "tile", proof=True,
    ),
    "tile: points outside are copied from a column beside": Mutation(
        tile_kernel, "_correct", '"column": region.computed.columns[0]', '"column": region.computed.columns[0] + 1', "tile"
    ),
    "roll: rows move up by one less": Mutation(
        roll_kernel.RollKernel, "moved", 'b.apply("add", k, self.walk.turn)', 'b.apply("add", k, self.walk.turn - 1)', "roll"
    ),
    "roll: the first rows are one further": Mutation(
        roll_kernel.RollKernel, "before", "behind = b.apply(\"add\", k, low)", "behind = b.apply(\"add\", k, low + 1)", "roll"
    ),
    "roll: columns outside are those of a point beside": Mutation(
        ghost_points.GhostPoints, "_columns", "self._inside(view, k)", "self._inside(view, k) + 1", "roll of stages"
    ),
    "roll: columns outside are those of a thread that there is not": Mutation(
        ghost_points.GhostPoints, "_columns", "threads - 1 - thread", "threads - thread", "roll of stages in columns"
    ),
    "roll: a stage runs a row less ahead": Mutation(
        register_windows.Windows, "_place_stage", "self.early[view.reader] + ahead - rows[0]",
        "self.early[view.reader] + ahead - rows[0] - 1", "roll of stages",
    ),
    "layers: the last thread that writes does not": Mutation(
        roll_kernel, "positioned", 'b.apply("lt", local, before + writing)', 'b.apply("lt", local, before + writing - 1)', "layers"
    ),
    "layers: a neighbour's column is one further": Mutation(
        halo_exchange.HaloExchange, "_column", 'b.apply("add", Ref(FIRST), k)', 'b.apply("add", Ref(FIRST), b.apply("add", k, 1))',
        "layers",
    ),
    "transpose: the last tile begins one further": Mutation(
        transpose_kernel.TransposeKernel, "start", "extent - size", "extent - size + 1", "transpose", proof=True,
    ),
    "ragged words: the last columns begin one earlier": Mutation(
        unaligned_words.UnalignedWords, "at_end", "self.columns - left - right", "self.columns - left - right - 1", "ragged words"
    ),
    "ragged words: the row behind the last may be missing": Mutation(
        unaligned_words.UnalignedWords, "inner_rows", ' - (axis == "row")', "", "ragged words", proof=True,
    ),
    "shifted rows: a column more is within a row": Mutation(
        shifted_rows.ShiftedRows, "are_within", "end - self.thread.count", "end - self.thread.count + 1", "shifted rows"
    ),
    "shifted rows: whole accesses reach behind the end of a row": Mutation(
        shifted_rows.ShiftedRows, "sides", "field_shape[-1] - high", "field_shape[-1] + high", "shifted rows at ends", proof=True,
    ),
    "shifted rows: whole accesses begin before a row": Mutation(
        shifted_rows.ShiftedRows, "sides", "max(limits[0], -low)", "max(limits[0], 0)", "shifted rows at ends", proof=True,
    ),
    "privatize: a point more is inside of the last group": Mutation(
        strips.GroupStrips, "along", "(count - 1) * size", "(count - 2) * size", "privatize", proof=True,
    ),
    "group sums: a group has a member more": Mutation(
        participants._Group, "__init__", 'b.apply("sub", end, before)', 'b.apply("sub", b.apply("add", end, 1), before)',
        "group sums",
    ),
    "words of bytes: neighbours begin a byte later": Mutation(
        packed_lanes.PackedLanes, "beside", "0x3210 + shift * 0x1111", "0x3210 + (shift + 1) * 0x1111", "words of bytes"
    ),
    "points of a thread: threads are a point apart less": Mutation(
        Coarsening, "first_point", 'Apply("mul", (COLUMN, constant(count, INT)), COLUMN.type)',
        'Apply("mul", (COLUMN, constant(count - 1, INT)), COLUMN.type)', "points of a thread",
    ),
    "points of a thread: those behind the last have a position of their own": Mutation(
        Coarsening, "positions", "self.points - 1", "self.points", "points of a thread by tables"
    ),
}  # fmt: skip


def main(names: list[str]) -> int:
    """The number of mutations that a run misses."""
    by_mutation = {name: MUTATIONS[name].findings() for name in names or MUTATIONS}
    sys.stdout.writelines(f"{' and '.join(sorted(by)) or 'not found':14} {name}\n" for name, by in by_mutation.items())
    return sum("run" not in by for by in by_mutation.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
