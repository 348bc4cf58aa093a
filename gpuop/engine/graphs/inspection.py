"""Pictures of a ComputeGraph, and fields as HTML."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gpuop.base.errors import GpuopError, SemanticError
from gpuop.dsl.fields.field import Field
from gpuop.engine.show.html import field_html, no_values_html
from gpuop.engine.show.raster import write_png
from gpuop.engine.show.scene import Scene
from gpuop.engine.show.svg import svg


def write_picture(path: str | os.PathLike[str], scene: Callable[[], Scene]) -> None:
    """Write a scene to a .svg or .png file; SemanticError for another ending."""
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".png"):
        raise SemanticError(f"draw writes .svg and .png files, not {Path(path).name!r}; name the file so")
    if ending == ".png":
        write_png(scene(), path)
    else:
        Path(path).write_text(svg(scene()), encoding="utf-8")


def show(field: Field) -> str:
    """A field as HTML: evaluated and drawn by its type, or a line of text if it has no values. Raises no GpuopError."""
    title = f"{field.name} {field.type}".strip()
    try:
        values = field.numpy()
    except GpuopError as none:
        return no_values_html(title, str(none))
    kind = field.node.type
    return field_html(title, values.reshape(kind.array_shape), kind)
