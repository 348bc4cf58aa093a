"""A scene in a file: as SVG, or as PNG, through Pillow."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpuop.base.errors import SemanticError
from gpuop.engine.show.scene import Box, Curve, Label, Point, Scene
from gpuop.engine.show.svg import ARROW, printable, svg

FINER = 2  # drawn so many times larger, then reduced: Pillow's lines have no smooth edges
MOST_PIXELS = 12_000_000  # in the picture; larger scenes get fewer pixels per unit
STEPS = 16  # straight pieces of a curve
PLAIN = str.maketrans({"×": "x", "→": ">", "…": "."})  # the font of Pillow has few signs beyond ASCII


def write_picture(path: str | os.PathLike[str], scene: Callable[[], Scene]) -> None:
    """Write a scene to a .svg or .png file; SemanticError for another ending."""
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".png"):
        raise SemanticError(f"draw writes .svg and .png files, not {Path(path).name!r}; name the file so")
    if ending == ".png":
        write_png(scene(), path)
    else:
        Path(path).write_text(svg(scene()), encoding="utf-8")


def write_png(scene: Scene, path: str | os.PathLike[str], scale: float = 2.0) -> None:
    """Write a PNG, of two pixels per unit where that is not too large.

    Raises:
        SemanticError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise SemanticError(
            "drawing a .png needs Pillow, which is not installed: `pip install pillow` brings it, or draw an .svg"
        ) from None
    scale = min(scale, (MOST_PIXELS / max(scene.width * scene.height, 1.0)) ** 0.5)
    width, height = (max(1, round(side * scale)) for side in (scene.width, scene.height))
    image = Image.new("RGB", (width * FINER, height * FINER), "#ffffff")
    painter = _Painter(ImageDraw.Draw(image), scale * FINER)
    for item in scene.items:
        painter.paint(item)
    image.resize((width, height), Image.Resampling.BOX).save(path, format="png")


class _Painter:
    def __init__(self, draw: Any, scale: float) -> None:
        from PIL import ImageFont

        self.draw, self.scale = draw, scale
        self.load = ImageFont.load_default
        self.fonts: dict[float, Any] = {}

    def paint(self, item: Box | Label | Curve) -> None:
        match item:
            case Box():
                self.box(item)
            case Label():
                self.text(item)
            case Curve():
                self.curve(item)

    def box(self, box: Box) -> None:
        s = self.scale
        corners = [box.x * s, box.y * s, (box.x + box.width) * s, (box.y + box.height) * s]
        outline = None if box.dashed or box.stroke == "none" else box.stroke
        self.draw.rounded_rectangle(corners, box.radius * s, fill=box.fill, outline=outline, width=round(s))
        if box.dashed:
            x0, y0, x1, y1 = box.x, box.y, box.x + box.width, box.y + box.height
            self.line([(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)], box.stroke, 1.0, (4, 3))

    def text(self, text: Label) -> None:
        font = self.fonts.setdefault(text.size, self.load(text.size * self.scale))
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[text.anchor]
        place = (text.x * self.scale, text.y * self.scale)
        bold = round(self.scale / 4) if text.bold else 0
        shown = printable(text.text).translate(PLAIN)
        self.draw.text(place, shown, fill=text.fill, font=font, anchor=anchor, stroke_width=bold * 0.5)

    def curve(self, curve: Curve) -> None:
        points: list[Point] = []
        for segment in curve.segments():
            points += [_bezier(segment, k / STEPS) for k in range(STEPS + 1)]
        if points:
            self.line(points, curve.stroke, curve.width, (5, 4) if curve.dashed else None)
        if points and curve.arrow:
            x, y = points[-1]
            tip = [(x, y), (x - 3.5, y - ARROW), (x + 3.5, y - ARROW)]
            self.draw.polygon([(a * self.scale, b * self.scale) for a, b in tip], fill=curve.stroke)

    def line(self, points: list[Point], stroke: str, width: float, dash: tuple[int, int] | None) -> None:
        for piece in _dashes(points, *dash) if dash else [points]:
            scaled = [(x * self.scale, y * self.scale) for x, y in piece]
            self.draw.line(scaled, fill=stroke, width=max(1, round(width * self.scale)), joint="curve")


def _bezier(segment: tuple[Point, Point, Point, Point], t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
    x, y = (sum(w * p[axis] for w, p in zip(weights, segment, strict=True)) for axis in (0, 1))
    return x, y


def _dashes(points: list[Point], on: float, off: float) -> list[list[Point]]:
    """The dashes of a polyline."""
    pieces: list[list[Point]] = [[points[0]]]
    drawing, left = True, on
    for (x0, y0), (x1, y1) in pairwise(points):
        length, done = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 0.0
        while length - done > left:
            done += left
            at = (x0 + (x1 - x0) * done / length, y0 + (y1 - y0) * done / length)
            if drawing:
                pieces[-1].append(at)
            else:
                pieces.append([at])
            drawing = not drawing
            left = on if drawing else off
        left -= length - done
        if drawing:
            pieces[-1].append((x1, y1))
    return [piece for piece in pieces if len(piece) > 1]
