"""Fields and source as HTML, for notebooks; the values of fields as images, which are PNG files in data URIs."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.base.errors import GpuopError
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.nodes import GRID_AXES
from gpuop.ir.types import FieldType

Pixels = NDArray[np.uint8]
COLORS = {1: 0, 3: 2, 4: 6}  # the PNG colour type, by channels
Array = NDArray[Any]
MOST = 512  # pixels along a side; larger images are averaged over blocks
PLOT = (96, 512)  # rows and most columns of the plot of a 1D field
NO_NUMBER = (255, 0, 255)  # the colour of NaN
LINES = ((31, 119, 180), (214, 39, 40), (44, 160, 44), (140, 86, 200))  # the colours of a plot, by component
LEAST = 192  # CSS pixels that the longer side of an image is given
SMALL = "color: #667788; font-size: 85%"
COMMENT = re.compile(r"(?m)^(\s*)(//.*)$")


def show(field: Field) -> str:
    """A field as HTML: evaluated and drawn by its type, or a line of text if it has no values. Raises no GpuopError."""
    title = f"{field.name} {field.type}".strip()
    try:
        values = field.numpy()
    except GpuopError as none:
        return no_values_html(title, str(none))
    kind = field.node.type
    return field_html(title, values.reshape(kind.array_shape), kind)


def field_html(title: str, values: NDArray[Any], kind: FieldType) -> str:
    """A field's values: as images, or in a table."""
    with np.errstate(all="ignore"):  # extreme values are shown too
        images_of = pictures(values, kind)
        if not images_of:
            return f"{_line(title)}{_table(values)}"
    images = "".join(map(_image, images_of))
    return f'{_line(title)}<div style="display: flex; flex-wrap: wrap; gap: 12px">{images}</div>'


def no_values_html(title: str, why: str) -> str:
    """A field that cannot be evaluated."""
    return f'{_line(title)}<div style="{SMALL}">{escape(why)}</div>'


def _line(title: str) -> str:
    return f"<div><code>{escape(title)}</code></div>"


def _image(picture: Picture) -> str:
    rows, columns = picture.pixels.shape[:2]
    larger = max(1, LEAST // max(rows, columns))
    style = f"width: {columns * larger}px; height: {rows * larger}px; image-rendering: pixelated; background: #ffffff"
    return (
        f'<figure style="margin: 4px 0"><img src="{data_uri(picture.pixels)}" style="{style}">'
        f'<figcaption style="{SMALL}">{escape(picture.caption)}</figcaption></figure>'
    )


def _table(values: NDArray[Any]) -> str:
    """The numbers themselves if they are few, else statistics."""
    if values.size <= 64:
        return f"<pre>{escape(str(values))}</pre>"
    real = np.abs(values) if np.iscomplexobj(values) else values.astype(np.float64)
    finite = real[np.isfinite(real)]
    facts = {"values": f"{values.size}", "not finite": f"{values.size - finite.size}"}
    if finite.size:
        facts |= {name: f"{getattr(finite, name)():.6g}" for name in ("min", "mean", "max", "std")}
    head, cells = (
        "".join(f"<{tag}>{escape(x)}</{tag}>" for x in row) for tag, row in (("th", facts), ("td", facts.values()))
    )
    return f"<table><tr>{head}</tr><tr>{cells}</tr></table>"


class SourceText(str):
    """Generated text; notebooks show it with its comments, which name the operators, in another colour."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        text = COMMENT.sub(r'\1<span style="color: #2e7d32; font-weight: 600">\2</span>', escape(self, quote=False))
        return f"<pre>{text}</pre>"


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
    slices = []
    for axis, (name, extent) in enumerate(zip(GRID_AXES, grid, strict=True)):
        pixels, caption = _colored(np.take(values, extent // 2, axis), kind)
        slices.append(Picture(pixels, f"{name} {extent // 2} of {extent}: {caption}"))
    return slices


def _colored(values: Array, kind: FieldType) -> tuple[Pixels, str]:
    """The colours of a 2D field."""
    if kind.dtype in COMPLEX_DTYPES:
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


def png(pixels: Pixels) -> bytes:
    """The bytes of a PNG file, from uint8 of shape (rows, columns) or (rows, columns, 3 or 4)."""
    rows, columns = pixels.shape[:2]
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    lines = np.zeros((rows, 1 + columns * channels), np.uint8)  # each line starts with its filter, none
    lines[:, 1:] = pixels.reshape(rows, -1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, COLORS[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(map(_chunk, chunks))


def _chunk(named: tuple[bytes, bytes]) -> bytes:
    name, data = named
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def data_uri(pixels: Pixels) -> str:
    """An image as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")
