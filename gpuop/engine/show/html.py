"""Fields and source as HTML, for notebooks."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuop.engine.show.images import Picture, pictures
from gpuop.engine.show.png import data_uri
from gpuop.ir.types import FieldType

LEAST = 192  # CSS pixels that the longer side of an image is given
SMALL = "color: #667788; font-size: 85%"
COMMENT = re.compile(r"(?m)^(\s*)(//.*)$")


def field_html(title: str, values: NDArray[Any], kind: FieldType) -> str:
    """A field's values: as images, or in a table."""
    with np.errstate(all="ignore"):  # extreme values are shown too
        found = pictures(values, kind)
        if not found:
            return f"{_line(title)}{_table(values)}"
    images = "".join(map(_image, found))
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
