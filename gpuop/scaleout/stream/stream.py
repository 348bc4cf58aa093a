"""`gp.stream`: a pipeline on arrays that are larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpuop.base.errors import naming_arguments
from gpuop.engine.jit.pipeline import Pipeline, pipeline
from gpuop.scaleout.stream.progress import Progress
from gpuop.scaleout.stream.stacked_files import source_of
from gpuop.scaleout.stream.work import StreamWork


@naming_arguments
def stream(
    function: Callable[..., Any],
    source: Any,
    out: Any = None,
    *,
    chunks: Any = "auto",
    batch: int = 0,
    shared: str | Iterable[str] = (),
    progress: bool = True,
    resume: bool = False,
    **constants: Any,
) -> Any:
    """Compute a pipeline on arrays that are larger than memory, window by window: results have the bits of one call.

    The next window is read, and the previous one written, meanwhile. A checkpoint file beside the result lists finished chunks.

    Args:
        function: a pipeline, or a function that becomes one.
        source: an array that has a shape, a dtype and slices, or the path of one (.npy, .tif, .zarr, `volume.h5:/data`), or a
            list of paths, whose arrays are stacked; or a tuple of these, one for each argument.
        out: an array or a path for each result on the grid, which replaces an array there; None: new arrays in memory.
        chunks: the extents of a chunk, or "auto": by the device's memory, the store's chunks, and what is recomputed.
        batch: how many of the first axes count images, each of which is computed by itself.
        shared: arguments, by their names, that are needed whole; those of another grid are anyway.
        progress: whether a line on stderr says what is done, of how much.
        resume: continue an earlier stream that was the same (docs/how-to/stream.md) and left notes beside `out`; keep them.
        constants: the function's other arguments, by their names.

    Returns:
        What the pipeline returns, as it lies in `out`; reductions as NumPy's arrays, of images with their axes in front.

    Raises:
        SemanticError: what `pipeline.window` raises; files that are damaged, unknown, another stream's, a source's, or differ.
        OSError: a file cannot be opened or written.
    """
    of = function if isinstance(function, Pipeline) else pipeline(function)
    sources = [source_of(each) for each in (source if isinstance(source, tuple) else (source,))]
    work = StreamWork(of, sources, batch, (shared,) if isinstance(shared, str) else tuple(shared), constants)
    work.cut(chunks, out)
    return work.run(out, resume, Progress(of.name, work.plan, progress))
