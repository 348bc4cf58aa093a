"""Checks of a stream's arguments: arrays must have points, and every argument must be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuop.base.errors import SemanticError, meant
from gpuop.engine.jit.pipeline import Pipeline

OPTIONS = ("source", "out", "chunks", "batch", "shared", "progress", "resume")  # keywords of gp.stream


def check_points(extents: Sequence[int]) -> None:
    """Refuse arguments without points to cut, or with only one."""
    if not extents or 0 in extents:
        what = f"a grid of {'×'.join(map(str, extents))} has none" if extents else "a 0-D array has no axes"
        raise SemanticError(f"a stream goes through points, and {what}; call the pipeline itself")


def source_names(of: Pipeline, constants: dict[str, Any], count: int) -> list[str]:
    """Return the names of the source arguments, for this number of sources."""
    parameters = of.signature.parameters
    unknown = next((name for name in constants if name not in parameters), None)
    if unknown is not None and not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        near = meant(unknown, (*parameters, *OPTIONS))
        raise SemanticError(
            f"neither gp.stream nor pipeline `{of.name}` takes `{unknown}=`"
            f"{near or '; `chunks=` says how large windows are'}"
        )
    names = [name for name in parameters if name not in constants]
    if count > len(names) and not any(each.kind is each.VAR_POSITIONAL for each in parameters.values()):
        raise SemanticError(
            f"`source=` has {count} arrays, one for each argument, and pipeline `{of.name}` takes {len(names)}; images in "
            "files of their own are a single source, the list of their paths, with `batch=1`"
        )
    return names
