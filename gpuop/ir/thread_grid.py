"""Thread grids of kernels, and work-groups that suit them."""

from __future__ import annotations

from gpuop.base.records import dataclass
from gpuop.ir.nodes import AXES, GRID_AXES
from gpuop.ir.types import Shape

WIDTHS = (256, 128, 64)  # columns of a group, widest first: neighbours in memory are neighbours in the group
GROUP = 256  # threads of a group whose grid is narrower than that
SMALL, MOST_LAYERS = (
    32,
    64,
)  # threads of a small layer: a group takes several; CUDA limit of these
SURPLUS = 8  # at most one thread in so many is added by rounding a row up, if a width allows it


def _power(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


@dataclass(frozen=True, slots=True)
class Domain:
    """The thread grid: a grid of points, and an axis of tensor elements where a thread handles only one of them."""

    shape: Shape
    elements: int = 1

    @property
    def threads(self) -> int:
        return self.shape.points * self.elements

    def extent(self, axis: str) -> int:
        """Threads along an axis; 1 where the grid has no such axis."""
        if axis == "element":
            return self.elements
        missing = 3 - len(self.shape)
        position = AXES.index(axis)
        return self.shape[position - missing] if position >= missing else 1

    @property
    def group(self) -> Shape:
        """(layers × elements, rows, columns) of the work-groups that suit it: pieces of rows, or several short rows or layers."""
        columns = self.extent("column")
        if columns > WIDTHS[-1]:
            fitting = (width for width in WIDTHS if -columns % width * SURPLUS <= columns)
            return Shape(1, 1, next(fitting, WIDTHS[-1]))
        width = _power(columns)
        rows = min(GROUP // width, _power(self.extent("row")))
        if rows * width >= SMALL or self.elements > 1:
            return Shape(1, rows, width)
        return Shape(min(GROUP // (rows * width), MOST_LAYERS, _power(self.extent("layer"))), rows, width)

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the grid's axes, slowest first."""
        return GRID_AXES[3 - len(self.shape) :]

    def __str__(self) -> str:
        grid = "×".join(map(str, self.shape)) or "0D"
        return grid + (f" × {self.elements} elements" if self.elements > 1 else "")
