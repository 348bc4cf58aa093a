"""Index-heavy kernels next to the same kernels written by hand, on the same device in the same run: re-blocking of filters.

    python benchmarks/reblocking.py [--device NAME] [--runs 60] [--case NAME]

Device times, by the driver's events, of kernels in turns: medians in microseconds with the spread of the middle half, and what
gpuop takes over what the text by hand takes. Texts by hand are C that is OpenCL's and CUDA's, of a thread for each value in
groups of 256, with `int` arithmetic as one writes it; both compute the same values, which NumPy's are compared with. "scatter" has
CUCL's form, a thread for each value of the input; where it leaves padding, both fill the output before.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.codegen.c.dialect import Source
from gpuop.dsl import *
from gpuop.runtime.base.backend import Backend, Launch
from gpuop.runtime.devices import current

WARM, GROUP = 3, 256
Dims = tuple[int, ...]
PREAMBLE = {
    "opencl": "#define KERNEL __kernel\n#define GLOBAL __global\n#define ID (int)get_global_id(0)\n",
    "cuda": '#define KERNEL extern "C" __global__\n#define GLOBAL\n#define restrict __restrict__\n'
    "#define ID (int)(blockIdx.x * blockDim.x + threadIdx.x)\n",
}
TEXT = """
KERNEL void by_hand(GLOBAL const float *restrict in, GLOBAL float *restrict out)
{{
    const int at = ID;
    if (at >= {threads}) return;
    {body}
}}
"""
GATHER = """
    const int tile = at % {tile}, reg = at / {tile} % {reg};
    const int x = at / ({reg} * {tile}) % {w}, y = at / ({w} * {reg} * {tile}) % {h};
    const int c = at / ({h} * {w} * {reg} * {tile}) % {ic}, block = at / ({ic} * {h} * {w} * {reg} * {tile});
    const int channel = (block * {tile} + tile) * {reg} + reg;
    out[at] = {inside}in[((channel * {ic} + c) * {h} + y) * {w} + x]{outside};
"""
SCATTER = """
    const int x = at % {w}, y = at / {w} % {h}, c = at / ({h} * {w}) % {ic}, channel = at / ({ic} * {h} * {w});
    const int reg = channel % {reg}, tile = channel / {reg} % {tile}, block = channel / ({reg} * {tile});
    out[((((block * {ic} + c) * {h} + y) * {w} + x) * {reg} + reg) * {tile} + tile] = in[at];
"""
LAST = """
    const int c = at % {ic}, x = at / {ic} % {w}, y = at / ({ic} * {w}) % {h}, image = at / ({ic} * {w} * {h});
    out[at] = in[((image * {ic} + c) * {h} + y) * {w} + x];
"""


def blocked(dims: Dims, reg: int, tile: int) -> Dims:
    """The dimensions of filters in blocks, of which the last one may be filled up."""
    out_chan, *others = dims
    return (-(-out_chan // (reg * tile)), *others, reg, tile)


def of_size(dims: Dims) -> gp.FieldType:
    return gp.FieldType(math.prod(dims))


@gp.operator(outputs=lambda filters, dims, reg, tile: of_size(blocked(dims, reg, tile)))
def gather(filters, dims, reg, tile):
    count, *others, _, _ = blocked(dims, reg, tile)
    block, in_chan, y, x, r, t = _unravel(_index(), (count, *others, reg, tile))
    channel = _ravel((block, t, r), (count, tile, reg))
    return _readTensor(filters, _ravel((channel, in_chan, y, x), dims), border=0)


@gp.operator(outputs=lambda filters, dims, reg, tile: of_size(blocked(dims, reg, tile)), default=0)
def scatter(filters, dims, reg, tile):
    _globalThreads(filters)
    out_dims = blocked(dims, reg, tile)
    channel, in_chan, y, x = _unravel(_index(), dims)
    block, t, r = _unravel(channel, (out_dims[0], tile, reg))
    _writeTensor(_out0, _readTensor(filters), _ravel((block, in_chan, y, x, r, t), out_dims))


@gp.operator
def channels_last(images, dims, *_):
    count, chan, rows, columns = dims
    image, y, x, c = _unravel(_index(), (count, rows, columns, chan))
    return _readTensor(images, _ravel((image, c, y, x), dims))


@dataclass(frozen=True)
class Case:
    """A re-blocking.

    Attributes:
        operator: gpuop's kernel.
        body: by hand.
        dims: of the input.
        block: registers and tile, of filters.
    """

    operator: Any
    body: str
    dims: Dims
    block: tuple[int, int] = (8, 12)

    @property
    def is_padded(self) -> bool:
        return self.operator is not channels_last and self.dims[0] % math.prod(self.block) > 0

    @property
    def size(self) -> int:
        return math.prod(self.dims if self.operator is channels_last else blocked(self.dims, *self.block))

    def expected(self, values: np.ndarray) -> np.ndarray:
        values = values.reshape(self.dims)
        if self.operator is channels_last:
            return values.transpose(0, 2, 3, 1).ravel()
        (reg, tile), (count, *others, _, _) = self.block, blocked(self.dims, *self.block)
        whole = np.zeros((count * reg * tile, *others), np.float32)
        whole[: len(values)] = values
        return whole.reshape(count, tile, reg, *others).transpose(0, 3, 4, 5, 2, 1).ravel()

    def source(self, backend: str, arguments: tuple[Any, ...]) -> Source:
        """The text by hand, and how it is launched."""
        threads = math.prod(self.dims) if self.operator is scatter else self.size
        names: dict[str, Any] = dict(zip(("oc", "ic", "h", "w"), self.dims, strict=True))
        names |= {"reg": self.block[0], "tile": self.block[1]}
        names |= {"inside": f"channel < {self.dims[0]} ? ", "outside": " : 0.0f"} if self.is_padded else {}
        body = self.body.format(**{"inside": "", "outside": "", **names}).strip()
        fills = {1: 0.0} if self.is_padded and self.operator is scatter else {}
        rounded = -(-threads // GROUP) * GROUP
        text = PREAMBLE[backend] + TEXT.format(threads=threads, body=body)
        return Source("by_hand", text, (rounded, 1, 1), (GROUP, 1, 1), arguments, 1, fills)


CASES = {
    "xpose_filts 96": Case(gather, GATHER, (96, 3, 11, 11)),
    "xpose_filts 100": Case(gather, GATHER, (100, 3, 11, 11)),
    "xpose_filts 96, scatter": Case(scatter, SCATTER, (96, 3, 11, 11)),
    "xpose_filts 100, scatter": Case(scatter, SCATTER, (100, 3, 11, 11)),
    "1152x192x3x3": Case(gather, GATHER, (1152, 192, 3, 3)),
    "1152x192x3x3, scatter": Case(scatter, SCATTER, (1152, 192, 3, 3)),
    "1200x192x3x3 padded": Case(gather, GATHER, (1200, 192, 3, 3)),
    "channels last 16x64x56x56": Case(channels_last, LAST, (16, 64, 56, 56)),
}


@dataclass(frozen=True)
class Timed:
    """A launch, with the buffers that it needs."""

    launch: Launch
    buffers: list[Any]


def launches(case: Case, backend: Backend) -> dict[str, Timed]:
    """Of gpuop's kernel and of the one by hand, both of which have given NumPy's values."""
    values = np.random.default_rng(0).random(math.prod(case.dims), np.float32)
    field = gp.ScalarField(values)
    kernel = case.operator(field, case.dims, *case.block).node.call.kernel
    given, found = backend.upload(field.type, values.reshape(1, -1)), {}
    hand = case.source(backend.target.backend, (*kernel.inputs, *kernel.written))
    for name, program in {"gpuop": backend.compile(kernel), "by hand": backend.load(hand, None)}.items():
        output = backend.empty(of_size((case.size,)))
        buffers = [given, output]
        found[name] = Timed(backend.bind(program, buffers), buffers)
        found[name].launch.run()
        computed = backend.download(of_size((case.size,)), output).ravel()
        assert np.array_equal(computed, case.expected(values)), f"{name} computes other values"
    return found


def microseconds(backend: Backend, launch: Launch) -> float:
    ran: list[Any] = []
    backend.launch(launch.parts, ran)
    backend.synchronize()
    return 1e6 * (backend.seconds([event for event in ran if event is not None]) or math.nan)


def measured(case: Case, backend: Backend, runs: int) -> dict[str, np.ndarray]:
    """Quartiles of both, in turns."""
    timed: dict[str, list[float]] = {"gpuop": [], "by hand": []}
    both = launches(case, backend)
    for _ in range(runs + WARM):
        for name, one in both.items():
            timed[name].append(microseconds(backend, one.launch))
    return {name: np.percentile(times[WARM:], [25, 50, 75]) for name, times in timed.items()}


def main(arguments: Sequence[str] | None = None, show: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--case", action="append", choices=CASES, help="only this one")
    given = parser.parse_args(arguments)
    with gp.use_device(given.device or current().name):
        backend = current().measuring()
        show(f"{backend.name}: {backend.description}; microseconds, median and spread")
        for name in given.case or CASES:
            found = measured(CASES[name], backend, given.runs)
            shown = [f"{what} {middle:9.1f} ±{(high - low) / 2:7.1f}" for what, (low, middle, high) in found.items()]
            show(f"{name:28} {'   '.join(shown)}   ratio {found['gpuop'][1] / found['by hand'][1]:.2f}")


if __name__ == "__main__":
    main()
