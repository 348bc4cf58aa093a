"""Kernels written by hand for GPUs (by_hand/cuda/), launched through CuPy: exact ones, with FMA, and with native functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .by_hand_opencl import listed
from .contestant import Contestant, Maker
from .pipeline import Array, Pipeline
from .stencils import SPATIAL, gaussian_weights

FOLDER = Path(__file__).parent / "by_hand" / "cuda"
ROWS, LAYERS = 64, 16  # of a thread
EXACT, FMA = ("--fmad=false",), ("--fmad=true",)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Hand:
    """The launch of a text.

    Attributes:
        file: its name, which is the kernel's too.
        block: the threads of a block.
        grid: the blocks for a shape.
        crop: the points at the edges that it does not compute.
        multiple: of columns, and of rows, so that it works at all.
        separable: whether it is one of the two stages in a tile.
        defines: more of them.
        outputs: their shapes and dtypes.
        launch: what is done instead of launching one kernel.
    """

    file: str
    block: tuple[int, ...]
    grid: Callable[[Shape], tuple[int, ...]]
    crop: int = 0
    multiple: tuple[int, int] = (4, 1)
    separable: bool = False
    defines: str = ""
    outputs: Callable[[Shape], tuple[tuple[Shape, str], ...]] = lambda shape: ((shape, "float32"),)
    launch: Callable[..., None] | None = None


def up(n: int, step: int) -> int:
    return -(-n // step)


def rolling(file: str, columns: int = 4, dtype: str = "float32", defines: str = "") -> Hand:
    def grid(s: Shape) -> tuple[int, ...]:
        return up(s[1], 128 * columns), up(s[0], ROWS)

    return Hand(file, (128, 1), grid, 64, (columns, 1), defines=defines, outputs=lambda s: ((s, dtype),))


def tiles(file: str, radius: int, height: int, defines: str, fields: int = 1) -> Hand:
    def grid(s: Shape) -> tuple[int, ...]:
        return up(s[1], 128), up(s[0], height)

    more = f"#define R {radius}\n#define HEIGHT {height}\n{defines}"
    return Hand(file, (256,), grid, separable=True, defines=more, outputs=lambda s: ((s, "float32"),) * fields)


def gaussian(sigma: float) -> Hand:
    weights = gaussian_weights(sigma)
    return tiles("gauss", len(weights) // 2, 64, f"#define REFLECT\n#define WEIGHTS {listed(weights)}\n")


def counted(kernel: Callable[[str], Any], levels: Any, counts: Any) -> None:
    counts.fill(0)
    kernel("histogram")((1056,), (256,), (levels, counts))


def summed(kernel: Callable[[str], Any], image: Any, result: Any, blocks: Any) -> None:
    kernel("sum")((blocks.size,), (256,), (image, blocks))
    kernel("sum_blocks")((1,), (256,), (blocks, result, np.int32(blocks.size)))


SPATIAL_DEFINE = f"#define SPATIAL {listed([w for row in SPATIAL for w in row])}\n"
HANDS = {
    "chain8": Hand("chain8", (256,), lambda s: (up(s[0] * s[1], 1024),)),
    "conv3x3": rolling("conv3x3"),
    "sobel": rolling("sobel"),
    "median3x3": rolling("median3x3"),
    "harris": rolling("harris"),
    "bilateral5x5": rolling("bilateral5x5", defines=SPATIAL_DEFINE),
    "life": rolling("life", 16, "uint8"),
    "gauss2": gaussian(2.0),
    "gauss5": gaussian(5.0),
    "mean_variance": tiles("mean_variance", 7, 32, "", fields=2),
    "heat1": Hand("heat1", (32, 8, 1), lambda s: (s[2] // 128, s[1] // 8, up(s[0], LAYERS)), multiple=(128, 8)),
    "transpose": Hand(
        "transpose", (16, 16), lambda s: (s[1] // 64, s[0] // 64), multiple=(64, 64), outputs=lambda s: ((s[::-1], "float32"),)
    ),
    "histogram": Hand(
        "histogram", (), lambda _: (), multiple=(16, 1), launch=counted, outputs=lambda _: (((256,), "int32"),)
    ),
    "sum": Hand(
        "sum", (), lambda _: (), launch=summed, outputs=lambda _: (((), "float32"), ((1056,), "float32"))
    ),
}  # fmt: skip


def entries(pipeline: Pipeline) -> dict[str, Maker]:
    hand = HANDS.get(pipeline.name)
    if hand is None:
        return {}
    found = {"by hand": entry(hand, EXACT)}
    if pipeline.name not in ("life", "histogram"):
        found["by hand, FMA"] = entry(hand, FMA)
    if pipeline.name == "bilateral5x5":
        found["by hand, FMA, native"] = entry(hand, FMA, "#define EXP __expf\n")
    return found


def text_of(hand: Hand, shape: Shape, before: str = "") -> str:
    """The text for the compiler."""
    rows = ROWS if len(shape) == 2 else LAYERS
    defines = f"#define H {shape[-2]}\n#define W {shape[-1]}\n#define ROWS {rows}\n#define LAYERS {shape[0]}\n"
    defines += hand.defines + (before or "#define EXP expf\n")
    files = ["common.cuh", *(["separable.cuh"] if hand.separable else []), f"{hand.file}.cu"]
    return defines + "".join((FOLDER / name).read_text(encoding="utf-8") for name in files)


def entry(hand: Hand, options: tuple[str, ...], before: str = "") -> Maker:
    def make(arrays: tuple[Array, ...]) -> Contestant:
        import cupy

        shape = arrays[0].shape
        if shape[-1] % hand.multiple[0] or shape[-2] % hand.multiple[1]:
            raise ValueError(f"it wants multiples of {hand.multiple[0]} columns and {hand.multiple[1]} rows")
        module = cupy.RawModule(code=text_of(hand, shape, before), options=("--std=c++17", *options), backend="nvrtc")
        given = [cupy.asarray(a) for a in arrays]
        outputs = [cupy.zeros(size, dtype) for size, dtype in hand.outputs(shape)]
        kernels = {name: module.get_function(name) for name in kernels_of(hand)}

        def run(times: int) -> None:
            for _ in range(times):
                if hand.launch is not None:
                    hand.launch(kernels.__getitem__, *given, *outputs)
                else:
                    kernels[hand.file](hand.grid(shape), hand.block, (*given, *outputs))
            cupy.cuda.Device().synchronize()

        run(1)
        results = outputs[:1] if hand.launch is not None else outputs
        text = (FOLDER / f"{hand.file}.cu").read_text(encoding="utf-8")
        return Contestant(run, lambda: tuple(map(cupy.asnumpy, results)), (text,), crop=hand.crop)

    return make


def kernels_of(hand: Hand) -> tuple[str, ...]:
    return (hand.file, "sum_blocks") if hand.file == "sum" else (hand.file,)
