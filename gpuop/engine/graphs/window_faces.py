"""Faces of a window: points that other windows need after its next steps. They are computed first and sent while it steps."""

from __future__ import annotations

from collections.abc import Collection

from gpuop.engine.graphs.window import GraphWindow
from gpuop.engine.graphs.window_regions import Region
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Effect
from gpuop.ir.visit import effects
from gpuop.runtime.base.backend import Buffer


class WindowFace(GraphWindow):
    """Points of a window with the halo of its steps, which the window has."""

    def __init__(self, window: GraphWindow, region: Region) -> None:
        start, stop = zip(*region, strict=True)
        super().__init__(window._graph, start, stop, window.steps, None, probed=False)
        self.window = window

    def run_ahead(self) -> None:
        """Enqueue these points as they are after the window's next steps."""
        window, given = self.window, iter(self.window.packed([self.ends]))
        places = zip(window._places, self.states, strict=True)
        self._bound.copy_states([next(given) if state.parted else place for place, state in places], window.tick)
        self.left = self.steps
        self.step(self.steps)


class WindowFaces:
    """Regions of a window that other windows need after its steps; one within another is computed with it.

    Args:
        window: its steps may be computed twice.
        regions: of its points.
    """

    def __init__(self, window: GraphWindow, regions: Collection[Region]) -> None:
        outer = {r for r in regions if not any(r != other and _inside(r, other) for other in regions)}
        self.faces = {region: WindowFace(window, region) for region in sorted(outer)}
        self._of = {r: next(face for o, face in self.faces.items() if _inside(r, o)) for r in regions}

    def run_ahead(self) -> None:
        """Enqueue all faces as they are after the window's next steps."""
        for face in self.faces.values():
            face.run_ahead()

    def packed(self, regions: Collection[Region]) -> list[Buffer]:
        """Memory of the device with the points of regions, as of `GraphWindow.packed`."""
        return [buffer for region in regions for buffer in self._of[region].packed([region])]


def repeatable(window: GraphWindow) -> bool:
    """Return whether steps can be computed twice: they have no effects and wait for no reduction over the grid."""
    needs = window._needs
    kernels = [op.kernel for op in needs.turn.ops]
    return not needs.waits and all(isinstance(k, Kernel) and not effects(k.body) & Effect.HOST for k in kernels)


def _inside(region: Region, other: Region) -> bool:
    return all(a <= first and last <= b for (first, last), (a, b) in zip(region, other, strict=True))
