"""Kernels written by hand for CPUs (by_hand/opencl/): what a schedule should come near to, with the pipelines' own bits.

Their borders are only as good as a comparison needs, their sizes multiples of what they take at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .contestant import Contestant, Maker
from .pipeline import Array, Pipeline
from .stencils import SPATIAL, gaussian_weights

FOLDER = Path(__file__).parent / "by_hand" / "opencl"
EXACT = "#pragma OPENCL FP_CONTRACT OFF\n"
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Hand:
    """The launch of a text.

    Attributes:
        file: its name, which is the kernel's too.
        points: what a work-item computes, along each axis of the launch, columns first.
        multiple: of columns and rows, so that it works at all.
        crop: the points at the edges that it does not compute as the pipeline does.
        defines: of the compiler.
        outputs: their shapes and dtypes, of the grid's shape.
        launch: what is done instead of launching one kernel, given the buffers; gives those of the results.
    """

    file: str
    points: tuple[int, ...]
    multiple: tuple[int, int] = (16, 1)
    crop: int = 0
    defines: str = ""
    outputs: Callable[[Shape], Sequence[tuple[Shape, str]]] = lambda shape: ((shape, "float32"),)
    launch: Callable[..., Sequence[Any]] | None = None


def listed(values: Sequence[float]) -> str:
    return ",".join(f"{v!r}f" for v in values)


def gaussian(sigma: float) -> Hand:
    weights = gaussian_weights(sigma)
    defines = f"-DR={len(weights) // 2} -DWEIGHTS={listed(weights)}"
    return Hand("gauss", (1024, 16), (1024, 16), defines=defines)


def ten_steps(running: Running, u: Any, v: Any, *pairs: Any) -> Sequence[Any]:
    """From the inputs, which stay, to one pair, then to and fro."""
    rows, columns = running.shape
    there, back = pairs[:2], pairs[2:]
    source, target = (u, v), back
    for _ in range(10):
        running.launch("gray_scott", (columns // 16, rows), *source, *target)
        source, target = target, there if target is back else back
    return source


def two_launches(running: Running, image: Any, sums: Any, strips: Any) -> Sequence[Any]:
    rows, columns = running.shape
    running.launch("column_sums", (columns // 64, rows // 256), image, strips)
    running.launch("sum_strips", (columns,), strips, sums)
    return (sums,)


def counted(running: Running, levels: Any, counts: Any) -> Sequence[Any]:
    import pyopencl as cl

    cl.enqueue_fill_buffer(running.queue, counts, np.int32(0), 0, counts.size)
    running.launch("histogram", (64,), levels, counts)
    return (counts,)


def two_fields(shape: Shape) -> Sequence[tuple[Shape, str]]:
    return ((shape, "float32"),) * 2


def in_bytes(shape: Shape) -> Sequence[tuple[Shape, str]]:
    return ((shape, "uint8"),)


FOUR_ROWS: dict[str, Any] = {"points": (16, 4), "multiple": (16, 4), "crop": 17}
SPATIAL_DEFINE = f"-DSPATIAL={listed([w for row in SPATIAL for w in row])}"
HANDS = {
    "conv3x3": (Hand("conv3x3", **FOUR_ROWS),),
    "sobel": (Hand("sobel", **FOUR_ROWS),),
    "median3x3": (Hand("median3x3", **FOUR_ROWS),),
    "bilateral5x5": (Hand("bilateral5x5", (16, 1), crop=18, defines=SPATIAL_DEFINE),),
    "gauss2": (gaussian(2.0),),
    "gauss5": (gaussian(5.0),),
    "harris": (
        Hand("harris", (512, 32), (512, 32), crop=18),
        Hand("harris_rolling", (16, 32), (16, 32), crop=18),
    ),
    "mean_variance": (Hand("mean_variance", (1024, 32), (1024, 32), crop=16, outputs=two_fields),),
    "luma_blur_threshold": (Hand("luma_blur_threshold", (0, 64), (16, 64), outputs=in_bytes),),
    "life": (Hand("life", (64, 8), (64, 8), crop=65, outputs=in_bytes),),
    "histogram": (Hand("histogram", (), (4, 64), launch=counted, outputs=lambda _: (((256,), "int32"),)),),
    "transpose": (Hand("transpose", (16, 16), (16, 16), outputs=lambda s: ((s[::-1], "float32"),)),),
    "row_sums": (Hand("row_sums", (0, 1), (64, 1), outputs=lambda s: ((s[:1], "float32"),)),),
    "column_sums": (
        Hand(
            "column_sums", (), (64, 256), launch=two_launches,
            outputs=lambda s: ((s[1:], "float32"), ((s[0] // 256, s[1]), "float32")),
        ),
    ),
    "heat2": (Hand("heat2", (0, 16, 32), (32, 16)),),
    "gray_scott": (Hand("gray_scott", (), launch=ten_steps, outputs=lambda s: two_fields(s) * 2),),
}  # fmt: skip


def entries(pipeline: Pipeline, backend: Any) -> dict[str, Maker]:
    """The kernels by hand of a pipeline, with the bits of the pipeline and with contraction."""
    if backend.target.backend != "opencl" or backend.target.device != "cpu":
        return {}
    found: dict[str, Maker] = {}
    for n, hand in enumerate(HANDS.get(pipeline.name, ())):
        which = f", {hand.file.removeprefix(pipeline.name + '_')}" if n else ""
        found[f"by hand{which}"] = entry(hand, backend, EXACT, "")
        if hand.outputs((256, 256))[0][1] == "float32":
            found[f"by hand{which}, FMA"] = entry(hand, backend, "", "-cl-mad-enable")
    return found


def entry(hand: Hand, backend: Any, before: str, options: str) -> Maker:
    def make(arrays: tuple[Array, ...]) -> Contestant:
        running = Running(hand, backend, arrays, before, options)
        running.run(1)
        return Contestant(running.run, running.results, (running.text,), crop=hand.crop)

    return make


class Running:
    """A text that is compiled, with its buffers."""

    def __init__(self, hand: Hand, backend: Any, arrays: tuple[Array, ...], before: str, options: str) -> None:
        import pyopencl as cl

        planes = [np.ascontiguousarray(np.moveaxis(a, -1, 0)) if a.shape[-1] == 3 else a for a in arrays]
        self.hand, self.queue, self.shape = hand, backend.queue, planes[0].shape
        if planes[0] is not arrays[0]:
            self.shape = self.shape[1:]
        rows, columns = self.shape[-2:]
        if columns % hand.multiple[0] or rows % hand.multiple[1]:
            raise ValueError(f"it wants multiples of {hand.multiple[0]} columns and {hand.multiple[1]} rows")
        self.text = (FOLDER / f"{hand.file}.cl").read_text(encoding="utf-8")
        text = before + (FOLDER / "common.h").read_text(encoding="utf-8") + self.text
        program = cl.Program(backend.context, text).build(f"-DH={rows} -DW={columns} {hand.defines} {options}".split())
        self.kernels = {k.function_name: k for k in program.all_kernels()}
        self.outputs = [np.zeros(shape, dtype) for shape, dtype in hand.outputs(self.shape)]
        flags = cl.mem_flags.COPY_HOST_PTR | cl.mem_flags.READ_WRITE
        self.buffers = [cl.Buffer(backend.context, flags, hostbuf=a) for a in (*planes, *self.outputs)]
        self.written = self.buffers[len(planes) :]

    def launch(self, name: str, threads: tuple[int, ...], *given: Any) -> None:
        self.kernels[name](self.queue, threads, None, *given)

    def run(self, times: int) -> None:
        for _ in range(times):
            if self.hand.launch is not None:
                self.written = self.hand.launch(self, *self.buffers)
            else:
                axes = zip(self.shape[::-1], self.hand.points, strict=True)
                self.launch(self.hand.file, tuple(n // points for n, points in axes if points), *self.buffers)
        self.queue.finish()

    def results(self) -> tuple[Array, ...]:
        import pyopencl as cl

        for array, buffer in zip(self.outputs, self.written, strict=False):
            cl.enqueue_copy(self.queue, array, buffer)
        return tuple(self.outputs[: len(self.written)])
