"""The values of a field as images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.engine.show.png import Pixels
from gpuop.ir.nodes import GRID_AXES
from gpuop.ir.types import FieldType

Array = NDArray[Any]
MOST = 512  # pixels along a side; larger images are averaged over blocks
PLOT = (96, 512)  # rows and most columns of the plot of a 1D field
NO_NUMBER = (255, 0, 255)  # the colour of NaN
LINES = ((31, 119, 180), (214, 39, 40), (44, 160, 44), (140, 86, 200))  # the colours of a plot, by component


@dataclass(frozen=True)
class Picture:
    """An image and what it shows."""

    pixels: Pixels
    caption: str


def pictures(values: Array, kind: FieldType) -> list[Picture]:
    """The images of a field; none for 0D fields, matrices, complex vectors and tensors of more than 4 elements.

    Args:
        values: of `field_shape + tensor_shape`.
    """
    grid = kind.field_shape
    if not grid or not grid.points or len(kind.parts) > 1 or kind.tensor_points > 4:
        return []
    if len(grid) == 1:
        return [Picture(*_plot(values.reshape(grid[0], -1)))]
    if len(grid) == 2:
        return [Picture(*_colored(values, kind))]
    found = []
    for axis, (name, extent) in enumerate(zip(GRID_AXES, grid, strict=True)):
        pixels, caption = _colored(np.take(values, extent // 2, axis), kind)
        found.append(Picture(pixels, f"{name} {extent // 2} of {extent}: {caption}"))
    return found


def _colored(values: Array, kind: FieldType) -> tuple[Pixels, str]:
    """The colours of a 2D field."""
    if kind.dtype == "complex64":
        pixels, caption = wheel(values.real, values.imag)
    elif kind.tensor_points == 1:
        pixels, caption = grey(values.reshape(values.shape[:2]))
    elif kind.tensor_points == 2:
        pixels, caption = wheel(values[..., 0], values[..., 1])
    else:
        pixels, caption = colors(values)
    return _smaller(pixels), caption


def _reals(values: Array) -> Array:
    return values.astype(np.float64)


def _range(values: Array) -> tuple[float, float]:
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _with_nan(pixels: Array, missing: Array) -> tuple[Pixels, str]:
    pixels[missing] = NO_NUMBER
    return pixels.astype(np.uint8), f", {int(missing.sum())} NaN (magenta)" if missing.any() else ""


def grey(values: Array) -> tuple[Pixels, str]:
    """Scalars from black, the least, to white, the greatest; false and true."""
    real = _reals(values)
    low, high = (0.0, 1.0) if values.dtype == np.bool_ else _range(real)
    scaled = np.clip((np.nan_to_num(real) / 2 - low / 2) / ((high / 2 - low / 2) or 1.0), 0.0, 1.0) * 255
    pixels, missing = _with_nan(np.repeat(scaled[..., None], 3, -1), np.isnan(real))
    return pixels, f"black {low:.6g}, white {high:.6g}{missing}"


def wheel(x: Array, y: Array) -> tuple[Pixels, str]:
    """Pairs on a colour wheel (HSV): the hue is the direction atan2(y, x), 0 red and 120° green; the value is the length."""
    x, y = _reals(x), _reals(y)
    length = np.hypot(x, y)
    most = _range(length)[1]
    value = np.clip(np.nan_to_num(length / (most or 1.0)), 0.0, 1.0)
    hue = np.nan_to_num(np.arctan2(y, x)) / (2 * np.pi) * 6
    shades = [value * np.clip(np.abs((hue - turn) % 6 - 3) - 1, 0, 1) for turn in (0, 2, 4)]  # red, green, blue
    pixels, missing = _with_nan(np.stack(shades, -1) * 255, np.isnan(length))
    return pixels, f"hue atan2(y, x), red 0°, green 120°; brightness length, up to {most:.6g}{missing}"


def colors(values: Array) -> tuple[Pixels, str]:
    """Three or four components as red, green, blue and alpha: bytes as they are, other numbers from 0 to 1."""
    if values.dtype == np.uint8:
        return values, "RGB" if values.shape[-1] == 3 else "RGBA"
    real = _reals(values)
    low, high = _range(real)
    pixels = np.clip(np.nan_to_num(real), 0.0, 1.0) * 255
    missing = np.asarray(np.isnan(real).any(-1))
    if pixels.shape[-1] == 4:
        pixels[..., 3][missing] = 255
    shown, note = _with_nan(pixels[..., :3], missing)
    if pixels.shape[-1] == 4:
        shown = np.concatenate([shown, pixels[..., 3:].astype(np.uint8)], -1)
    return shown, f"{'RGBA'[: values.shape[-1]]} clipped to 0…1, values {low:.6g} … {high:.6g}{note}"


def _plot(values: Array) -> tuple[Pixels, str]:
    """The graph of each component of a 1D field over its columns."""
    components = [values.real, values.imag] if np.iscomplexobj(values) else [values]
    real = np.concatenate([_reals(part) for part in components], -1)
    low, high = _range(real)
    count, rows = len(real), PLOT[0]
    columns = min(PLOT[1], count * max(1, PLOT[1] // count))
    pixels = np.full((rows, columns, 3), 255, np.uint8)
    places = (high / 2 - np.clip(np.nan_to_num(real), low, high) / 2) / ((high / 2 - low / 2) or 1.0) * (rows - 5) + 2
    missing = np.isnan(real)
    for column in range(columns):
        first = column * count // columns
        last, before = (
            max((column + 1) * count // columns, first + 1),
            max((column - 1) * count // columns, first - 1, 0),
        )
        for k, color in enumerate(LINES[: real.shape[1]]):
            if missing[first:last, k].any():
                pixels[:, column] = NO_NUMBER
                continue
            shown = places[first if missing[before, k] else before : last, k].astype(int)
            pixels[shown.min() : shown.max() + 2, column] = color
    return pixels, f"from {low:.6g} to {high:.6g}"


def _smaller(pixels: Pixels) -> Pixels:
    """The mean over blocks, so that no side is longer than MOST."""
    block = max(-(-side // MOST) for side in pixels.shape[:2])
    if block == 1:
        return pixels
    padded = np.pad(pixels, [(0, -side % block) for side in pixels.shape[:2]] + [(0, 0)], mode="edge")
    rows, columns = (side // block for side in padded.shape[:2])
    blocks = padded.reshape(rows, block, columns, block, -1)
    smaller: Pixels = blocks.mean((1, 3)).round().astype(np.uint8)
    return smaller
