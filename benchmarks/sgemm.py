"""Products of matrices by `gpuop.linalg.matmul` beside the vendors': cuBLAS through CuPy, and NumPy's BLAS on CPUs.

    python benchmarks/sgemm.py [--device NAME] [--size 2048 | --size 1000 300 700] [--dtype float32]

Medians (10 % … 90 %) of runs in turns in one process, operations per second, and the ratio to the vendor's. Products are added
with fused multiply-add, in the order of k; tensor cores are not used.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import in_turns

import gpuop as gp

ROUNDS, RUNS = 11, 10
Array = np.ndarray[Any, Any]
os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # so that cuBLAS does not round to what tensor cores take


def on_gpu(a: Array, b: Array) -> tuple[dict[str, Callable[[], object]], Array]:
    """The actions to measure, that of the vendor last, and the result of gpuop."""
    import cupy

    x, y = cupy.asarray(a), cupy.asarray(b)
    multiply = gp.pipeline(lambda x, y: gp.linalg.matmul(x, y))
    out = multiply(x, y)
    actions = {"gpuop": lambda: multiply(x, y, out=out), "cuBLAS": lambda: cupy.matmul(x, y, out=out)}
    return actions, cupy.asnumpy(out)


def on_cpu(a: Array, b: Array) -> tuple[dict[str, Callable[[], object]], Array]:
    f, g = gp.evaluate(gp.Field(a), gp.Field(b))
    return {"gpuop": lambda: gp.evaluate(f @ g), "NumPy": lambda: a @ b}, (f @ g).numpy()


def wait_for_all() -> None:
    """Wait for all streams of the CUDA device: `Device.synchronize` knows gpuop's alone, and not cuBLAS'."""
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def factor(shape: tuple[int, ...], dtype: str) -> Array:
    rng = np.random.default_rng(0)
    values = rng.random(shape) - 0.5
    return (values + 1j * rng.random(shape) if dtype == "complex64" else values).astype(dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument(
        "--size", type=int, nargs="+", default=[2048], help="one for all, or rows, what is summed, columns"
    )
    parser.add_argument("--dtype", default="float32")
    given = parser.parse_args()
    rows, inner, columns = given.size * 3 if len(given.size) == 1 else given.size
    a, b = factor((rows, inner), given.dtype), factor((inner, columns), given.dtype)
    with gp.use_device(given.device or gp.devices()[0].name) as device:
        print(f"{device.name}: {device.description}; {rows}×{inner}×{columns}, {given.dtype}")
        gpu = device.name.startswith("cuda")
        actions, found = on_gpu(a, b) if gpu else on_cpu(a, b)
        wanted = a.astype(np.complex128) @ b.astype(np.complex128)
        print(f"largest difference from the product in double precision: {np.abs(found - wanted).max():.2g}")
        taken = in_turns(actions, ROUNDS, RUNS, wait_for_all if gpu else device.synchronize)
        vendor = [*actions][-1]
        for name, seconds in taken.items():
            low, high = (statistics.quantiles(seconds, n=10)[k] * 1e3 for k in (0, -1))
            middle = statistics.median(seconds)
            speed = 2 * rows * inner * columns / middle / 1e9
            ratio = statistics.median(taken[vendor]) / middle
            print(
                f"{name:18} {middle * 1e3:8.3f} ms ({low:.3f} … {high:.3f})  {speed:8.0f} GFLOP/s  {ratio:.2f} of {vendor}"
            )


if __name__ == "__main__":
    main()
