"""The elements of a picture, and the width of text; `svg` and `raster` write them."""

from __future__ import annotations

from dataclasses import field, replace
from itertools import pairwise
from typing import TypeAlias

from gpuop.base.records import dataclass

Point = tuple[float, float]
NARROW, WIDE = "fijlrtI.,:;'|!()[]/ ", "mwMW%@×→"
RATIOS = {
    **dict.fromkeys(NARROW, 0.42),
    **dict.fromkeys(WIDE, 0.99),
}  # the width of a character, relative to the size of the text


@dataclass(frozen=True)
class Box:
    """A rounded rectangle; `tip` is shown when the mouse is over it."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    stroke: str
    radius: float = 6.0
    dashed: bool = False
    tip: str = ""
    group: str = ""  # "kernel", "operator", "input" or "output"


@dataclass(frozen=True)
class Label:
    """A line of text; (x, y) is the left end, the middle or the right end of its base line."""

    x: float
    y: float
    text: str
    size: float
    fill: str = "#1f2933"
    anchor: str = "start"
    bold: bool = False


@dataclass(frozen=True)
class Curve:
    """A smooth line through points, vertical in each: straight where two are above one another; `arrow` at its end."""

    points: tuple[Point, ...]
    stroke: str
    width: float = 1.4
    dashed: bool = False
    smooth: bool = True
    arrow: bool = True
    tip: str = ""

    def segments(self) -> list[tuple[Point, Point, Point, Point]]:
        """Cubic Bézier curves."""
        curves = []
        for (x0, y0), (x1, y1) in pairwise(self.points):
            if (x0, y0) == (x1, y1):
                continue
            bend = (y1 - y0) / 2 if self.smooth else 0.0
            curves.append(((x0, y0), (x0, y0 + bend), (x1, y1 - bend), (x1, y1)))
        return curves


Item: TypeAlias = Box | Label | Curve


@dataclass
class Scene:
    """A picture; later items cover earlier ones."""

    width: float = 0.0
    height: float = 0.0
    items: list[Item] = field(default_factory=list)

    def move(self, x: float, y: float, other: Scene) -> None:
        """Add the items of another scene, moved by (x, y)."""
        self.items += [_moved(item, x, y) for item in other.items]


def _moved(item: Item, x: float, y: float) -> Item:
    if isinstance(item, Curve):
        return replace(item, points=tuple((a + x, b + y) for a, b in item.points))
    return replace(item, x=item.x + x, y=item.y + y)


def text_width(text: str, size: float) -> float:
    """An upper bound of a line's width in the usual sans-serif fonts."""
    return size * sum(RATIOS.get(c, 0.71 if c.isupper() else 0.64) for c in text)
