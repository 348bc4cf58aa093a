"""Matrix products of float32 written in gpuop's vocabulary beside the vendors': cuBLAS through CuPy, and NumPy's BLAS on CPUs.

    python benchmarks/sgemm.py [--device NAME] [--size 2048]

Medians (10 % … 90 %) of runs in turns in one process, operations per second, and the ratio to the vendor's. Products are added
with fused multiply-add, in the order of k; tensor cores are not used.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
from collections.abc import Callable

import numpy as np
from turns import in_turns

import gpuop as gp
from gpuop.dsl import *

ROUNDS, RUNS = 11, 10
os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # so that cuBLAS does not round to what tensor cores take


def product_type(a, b, **_):  # type: ignore[no-untyped-def]
    return a.type.replace(field_shape=(a.field_shape[0], b.field_shape[1]))


@gp.operator(outputs=product_type, precision="contract")
def product(a, b, *, high=64, wide=128, deep=8, each=8):  # type: ignore[no-untyped-def]  # noqa: C901
    """A group of threads computes a tile, each thread `each`² values of it; what all read of both matrices passes through local
    memory, `deep` columns and rows at a time, while the next ones are on their way. Sizes are multiples of these."""
    (rows, inner), columns = a.field_shape, b.field_shape[1]
    half, threads = each // 2, high // each * (wide // each)
    _localThreads(high // each, wide // each, groups=(rows // high, columns // wide))
    left, right = _local(_floatArray(2, deep, high + 4)), _local(_floatArray(2, deep, wide))
    next_left, next_right = _floatArray(high * deep // threads), _floatArray(wide * deep // threads)
    sums = _floatArray(each, each)
    thread = _index("local")

    def fetch(first):  # type: ignore[no-untyped-def]
        for i in range(high * deep // threads):
            row, column = _unravel(i * threads + thread, (high, deep))
            next_left[i] = _readTensor(a, _groupRow * high + row, first + column)
        for i in range(wide * deep // threads):
            row, column = _unravel(i * threads + thread, (deep, wide))
            next_right[i] = _readTensor(b, first + row, _groupColumn * wide + column)

    def keep(buffer):  # type: ignore[no-untyped-def]
        for i in range(high * deep // threads):
            row, column = _unravel(i * threads + thread, (high, deep))
            left[buffer, column, row] = next_left[i]
        for i in range(wide * deep // threads):
            row, column = _unravel(i * threads + thread, (deep, wide))
            right[buffer, row, column] = next_right[i]
        _syncThreadsLocal()

    def row_of(i):  # type: ignore[no-untyped-def]
        return i // half * (high // 2) + _localRow * half + i % half

    def column_of(j):  # type: ignore[no-untyped-def]
        return j // half * (wide // 2) + _localColumn * half + j % half

    fetch(0)
    keep(0)
    with _for(0, inner, deep) as first:
        buffer = (first // deep) % 2
        with _if(first + deep < inner):
            fetch(first + deep)
        for k in range(deep):
            x, y = _floatArray(each), _floatArray(each)
            for i in range(each):
                x[i], y[i] = left[buffer, k, row_of(i)], right[buffer, k, column_of(i)]
            for i, j in itertools.product(range(each), repeat=2):
                sums[i, j] += x[i] * y[j]
        with _if(first + deep < inner):
            keep(1 - buffer)
    for i, j in itertools.product(range(each), repeat=2):
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--size", type=int, default=2048)
    given = parser.parse_args()
    a, b = np.random.default_rng(0).random((2, given.size, given.size), np.float32) - 0.5
    with gp.use_device(given.device or gp.devices()[0].name) as device:
        print(f"{device.name}: {device.description}; {given.size}³, float32")
        actions: dict[str, Callable[[], object]]
        if device.name.startswith("cuda"):
            import cupy

            x, y = cupy.asarray(a), cupy.asarray(b)
            out, multiply = cupy.empty_like(x), gp.pipeline(lambda x, y: product(gp.ScalarField(x), gp.ScalarField(y)))
            actions = {"gpuop": lambda: multiply(x, y, out=out), "cuBLAS": lambda: cupy.matmul(x, y, out=out)}
            found, vendor = cupy.asnumpy(multiply(x, y)), "cuBLAS"
        else:
            f, g = gp.evaluate(gp.ScalarField(a), gp.ScalarField(b))
            actions = {"gpuop": lambda: gp.evaluate(product_of_strips(f, g)), "NumPy": lambda: a @ b}
            found, vendor = product_of_strips(f, g).numpy(), "NumPy"
        wanted = a.astype(np.float64) @ b.astype(np.float64)
        print(f"largest difference from the product in float64: {np.abs(found - wanted).max():.2g}")
        taken = in_turns(actions, ROUNDS, RUNS, device.synchronize)
        for name, seconds in taken.items():
            low, high = (statistics.quantiles(seconds, n=10)[k] * 1e3 for k in (0, -1))
            middle = statistics.median(seconds)
            speed, ratio = 2 * given.size**3 / middle / 1e9, statistics.median(taken[vendor]) / middle
            print(
                f"{name:8} {middle * 1e3:8.3f} ms ({low:.3f} … {high:.3f})  {speed:8.0f} GFLOP/s  {ratio:.2f} of {vendor}"
            )


if __name__ == "__main__":
    main()
