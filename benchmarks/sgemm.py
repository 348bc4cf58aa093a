"""Matrix products of float32 written in gpuop's vocabulary beside the vendors': cuBLAS through CuPy, and NumPy's BLAS on CPUs.

    python benchmarks/sgemm.py [--device NAME] [--size 2048] [--all]

Medians (10 % … 90 %) of runs in turns in one process, operations per second, and the ratio to the vendor's. Products are added
with fused multiply-add, in the order of k; tensor cores are not used.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import in_turns

import gpuop as gp
from gpuop.dsl import *

ROUNDS, RUNS = 11, 10
Array = np.ndarray[Any, Any]
os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # so that cuBLAS does not round to what tensor cores take


def product_type(a, b, **_):  # type: ignore[no-untyped-def]
    return a.type.replace(field_shape=(a.field_shape[0], b.field_shape[1]))


@gp.operator(outputs=product_type, precision="contract")
def product(a, b, *, high, wide, deep, each=(8, 8), warp=(4, 8)):  # type: ignore[no-untyped-def]  # noqa: C901
    """A group of threads computes a tile, a thread `each` values of it, in blocks of four by four; what all read of both matrices
    passes through local memory, `deep` columns and rows at a time, while the next ones are on their way. The threads of a warp
    are so many rows and columns, so that they read few words of local memory at a time. Sizes are multiples of these."""
    (rows, inner), columns = a.field_shape, b.field_shape[1]
    tall, broad = warp[0] * each[0], warp[1] * each[1]  # of a warp
    threads = high // each[0] * (wide // each[1])
    _localThreads(1, threads, groups=(rows // high, columns // wide))
    left, right = _local(_floatArray(2, deep, high + 4)), _local(_floatArray(2, deep, wide))
    next_left, next_right = _floatArray(high * deep // threads), _floatArray(wide * deep // threads)
    sums = _floatArray(*each)
    thread = _localColumn
    warp_row, warp_column = _unravel(thread // 32, (high // tall, wide // broad))
    lane_row, lane_column = _unravel(thread % 32, warp)
    top, start = warp_row * tall + lane_row * 4, warp_column * broad + lane_column * 4

    def parts(wanted, width):  # type: ignore[no-untyped-def]
        """Which values of a block whose rows are `width` long a thread brings: those of some rows, which are equally far apart."""
        return [(thread // width + i * (threads // width), thread % width) for i in range(wanted * width // threads)]

    def fetch(first):  # type: ignore[no-untyped-def]
        for i, (row, column) in enumerate(parts(high, deep)):
            next_left[i] = _readTensor(a, _groupRow * high + row, first + column, border="unchecked")
        for i, (row, column) in enumerate(parts(deep, wide)):
            next_right[i] = _readTensor(b, first + row, _groupColumn * wide + column, border="unchecked")

    def keep(buffer):  # type: ignore[no-untyped-def]
        for i, (row, column) in enumerate(parts(high, deep)):
            left[buffer, column, row] = next_left[i]
        for i, (row, column) in enumerate(parts(deep, wide)):
            right[buffer, row, column] = next_right[i]
        _syncThreadsLocal()

    def row_of(i):  # type: ignore[no-untyped-def]
        return top + (i // 4 * (4 * warp[0]) + i % 4)

    def column_of(j):  # type: ignore[no-untyped-def]
        return start + (j // 4 * (4 * warp[1]) + j % 4)

    fetch(0)
    keep(0)
    with _for(0, inner, deep) as first:
        buffer = (first // deep) % 2
        with _if(first + deep < inner):
            fetch(first + deep)
        for k in range(deep):
            x = [left[buffer, k, row_of(i)] for i in range(each[0])]
            y = [right[buffer, k, column_of(j)] for j in range(each[1])]
            for i, j in itertools.product(*map(range, each)):
                sums[i, j] += x[i] * y[j]
        with _if(first + deep < inner):
            keep(1 - buffer)
    for i, j in itertools.product(*map(range, each)):
        _writeTensor(_out0, sums[i, j], _groupRow * high + row_of(i), _groupColumn * wide + column_of(j))


@gp.operator(outputs=product_type, precision="contract")
def product_of_strips(a, b, *, rows=8, vectors=2, high=16, lanes=16):  # type: ignore[no-untyped-def]
    """For CPUs: a thread's values stay in registers, its neighbours along columns are the lanes of vectors, and a group's threads
    read the same columns of the right matrix one after the other, which are in the cache then."""
    (tall, inner), wide = a.field_shape, b.field_shape[1]
    _localThreads(high, lanes, groups=(tall // rows // high, wide // (lanes * vectors)))
    sums = _floatArray(rows, vectors)
    row, column = (_groupRow * high + _localRow) * rows, _groupColumn * (lanes * vectors) + _localColumn
    with _for(inner) as k:
        values = [_readTensor(b, k, column + j * lanes) for j in range(vectors)]
        for i in range(rows):
            value = _readTensor(a, row + i, k)
            for j in range(vectors):
                sums[i, j] += value * values[j]
    for i, j in itertools.product(range(rows), range(vectors)):
        _writeTensor(_out0, sums[i, j], row + i, column + j * lanes)


# Tiles of GPUs, the default first. On an H200 each fits once into all multiprocessors at 2048³: four, two or two work-groups each,
# by their registers (125, 127, 213 for sm_90); of the instructions of the inner loop 85, 89 and 90 % are multiplications.
TILES: dict[str, dict[str, Any]] = {
    "64×128, 8×8 each": {"high": 64, "wide": 128, "deep": 8},
    "128×128, 8×8 each": {"high": 128, "wide": 128, "deep": 16},
    "128×128, 8×16 each": {"high": 128, "wide": 128, "deep": 8, "each": (8, 16), "warp": (8, 4)},
}


def in_tiles(**tile: Any) -> Any:
    return gp.pipeline(lambda x, y: product(gp.ScalarField(x), gp.ScalarField(y), **tile))


def on_gpu(a: Array, b: Array, tiles: list[str]) -> tuple[dict[str, Callable[[], object]], list[Array]]:
    """What is measured, the vendor's last, and gpuop's results."""
    import cupy

    x, y = cupy.asarray(a), cupy.asarray(b)
    out, actions, found = cupy.empty_like(x), dict[str, Callable[[], object]](), list[Array]()
    for name in tiles:
        multiply = in_tiles(**TILES[name])
        found.append(cupy.asnumpy(multiply(x, y)))
        actions[name] = functools.partial(multiply, x, y, out=out)
    return actions | {"cuBLAS": lambda: cupy.matmul(x, y, out=out)}, found


def on_cpu(a: Array, b: Array) -> tuple[dict[str, Callable[[], object]], list[Array]]:
    f, g = gp.evaluate(gp.ScalarField(a), gp.ScalarField(b))
    actions = {"strips": lambda: gp.evaluate(product_of_strips(f, g)), "NumPy": lambda: a @ b}
    return actions, [product_of_strips(f, g).numpy()]


def wait_for_all() -> None:
    """Wait for all streams of the CUDA device: `Device.synchronize` knows gpuop's alone, and not cuBLAS'."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--all", action="store_true", help="tiles of all sizes, on GPUs")
    given = parser.parse_args()
    a, b = np.random.default_rng(0).random((2, given.size, given.size), np.float32) - 0.5
    with gp.use_device(given.device or gp.devices()[0].name) as device:
        print(f"{device.name}: {device.description}; {given.size}³, float32")
        gpu = device.name.startswith("cuda")
        actions, found = on_gpu(a, b, list(TILES)[: None if given.all else 1]) if gpu else on_cpu(a, b)
        wanted = a.astype(np.float64) @ b.astype(np.float64)
        difference = max(np.abs(each - wanted).max() for each in found)
        print(f"largest difference from the product in float64: {difference:.2g}")
        taken = in_turns(actions, ROUNDS, RUNS, wait_for_all if gpu else device.synchronize)
        vendor = [*actions][-1]
        for name, seconds in taken.items():
            low, high = (statistics.quantiles(seconds, n=10)[k] * 1e3 for k in (0, -1))
            middle = statistics.median(seconds)
            speed, ratio = 2 * given.size**3 / middle / 1e9, statistics.median(taken[vendor]) / middle
            print(
                f"{name:18} {middle * 1e3:8.3f} ms ({low:.3f} … {high:.3f})  {speed:8.0f} GFLOP/s  {ratio:.2f} of {vendor}"
            )


if __name__ == "__main__":
    main()
