"""Filters by each of their methods, next to SciPy's and OpenCV's on the CPU, and on a GPU next to cupyx's on the same device.

    python benchmarks/filters.py [--device NAME] [--runs 9] [--size 4096] [--dtype float32] [--only uniform]

Calls with arrays, waited for, in turns: the least of each in milliseconds, as other work on a machine only adds to it. What is
integer is compared with SciPy's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from interpolated import others
from turns import in_turns

import gpuop as gp
from gpuop import ndimage
from gpuop.runtime.devices import current

Case = tuple[
    str, dict[str, Any], tuple[str, ...], Callable[[Any, Any], object] | None
]  # with the methods, and OpenCV's call
SIZES = (3, 9, 15, 31, 101)
COMPARED = 512  # points along each axis of what is compared


def cases(dtype: str) -> Iterator[Case]:
    boxes: dict[str, Callable[[int], Callable[[Any, Any], object]]] = {
        "uniform_filter": lambda n: lambda cv, a: cv.blur(a, (n, n), borderType=cv.BORDER_REFLECT),
        "maximum_filter": lambda n: lambda cv, a: cv.dilate(a, np.ones((n, n), np.uint8)),
        "grey_opening": lambda n: lambda cv, a: cv.morphologyEx(a, cv.MORPH_OPEN, np.ones((n, n), np.uint8)),
    }
    for name, of_opencv in boxes.items():
        for n in SIZES:
            yield name, {"size": n}, ("direct", "nested"), of_opencv(n)
    yield from ranks(dtype)
    for sigma in (2, 5, 10, 30):
        yield (
            "gaussian_filter",
            {"sigma": sigma},
            ("direct", "recursive"),
            lambda cv, a, s=sigma: cv.GaussianBlur(a, (0, 0), s, borderType=cv.BORDER_REFLECT),  # type: ignore[misc]
        )
    for n in (5, 9, 15, 31):
        weights = np.outer(np.arange(1, n + 1), np.arange(n, 0, -1)) / n**3
        yield (
            "correlate",
            {"weights": weights},
            ("direct", "separable"),
            lambda cv, a, w=weights: cv.filter2D(a, -1, w, borderType=cv.BORDER_REFLECT),  # type: ignore[misc]
        )


def ranks(dtype: str) -> Iterator[Case]:
    def of_opencv(n: int) -> Any:
        return (lambda cv, a: cv.medianBlur(a, n)) if n < 7 or dtype == "uint8" else None

    for n in (5, 9, 15):
        yield "median_filter", {"size": n}, ("network", "counts") if n < 9 else ("counts",), of_opencv(n)


def measured(case: Case, image: Any, modules: dict[str, Any], runs: int) -> dict[str, float]:
    name, options, methods, of_opencv = case
    arrays = modules["arrays"]
    a = arrays.asarray(image)
    actions: dict[str, Callable[[], object]] = {
        str(m): lambda m=m: getattr(ndimage, name)(a, **options, method=m)  # type: ignore[misc]
        for m in (None, *methods)
    }
    for library in ("SciPy", "cupyx"):
        if library in modules:
            actions[library] = lambda m=modules[library]: getattr(m, name)(a, **options)  # type: ignore[misc]
    if "OpenCV" in modules and of_opencv is not None:
        actions["OpenCV"] = lambda: of_opencv(modules["OpenCV"], a)
    if image.dtype.kind in "iu" and "SciPy" in modules:
        few = image[:COMPARED, :COMPARED]
        expected = getattr(modules["SciPy"], name)(few, **options)
        for m in set(methods) - {"recursive", "separable"}:
            assert np.array_equal(getattr(ndimage, name)(few, **options, method=m), expected), (name, options, m)
    wait = (lambda: None) if arrays is np else arrays.cuda.Device().synchronize
    return {n: 1e3 * min(taken) for n, taken in in_turns(actions, runs, wait=wait, warm=1).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--only", default="", help="a part of functions' names")
    arguments = parser.parse_args()
    image = (np.random.default_rng(0).random((arguments.size, arguments.size)) * 255).astype(arguments.dtype)
    with gp.use_device(arguments.device or current().name):
        modules = others(current().name)
        print(f"{current().name}: {current().description}, {arguments.dtype} {arguments.size}²\n")
        for case in cases(arguments.dtype):
            name, options, _, _ = case
            if arguments.only in name:
                found = measured(case, image, modules, arguments.runs)
                told = ", ".join(f"{n}={np.shape(v) or v}" for n, v in options.items())
                print(f"{name}({told}): " + ", ".join(f"{n} {ms:.2f}" for n, ms in found.items()), flush=True)


if __name__ == "__main__":
    main()
