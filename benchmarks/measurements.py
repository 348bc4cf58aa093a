"""Labels, measurements and distances next to SciPy's, scikit-image's and OpenCV's, or CuPy's on a GPU, where they are installed.

    python benchmarks/measurements.py [--device NAME] [--runs 5] [--size 4096] [--only WORD]

Calls with arrays, waited for, in turns: medians in milliseconds, the spread of the middle half of gpuop's, and what gpuop takes
over what the best other library takes. Values are compared with SciPy's, or with CuPy's.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.ndimage
from turns import in_turns, middle_half

import gpuop as gp

Action = Callable[[], Any]
ALL = np.ones((3, 3), bool)


class Case:
    """A call that gpuop.ndimage and other libraries of its signature have, and what OpenCV and scikit-image have for it."""

    def __init__(self, name: str, arrays: tuple[Any, ...], options: dict[str, Any], **others: Any) -> None:
        self.name, self.arrays, self.options, self.others = name, arrays, options, others

    def of(self, module: Any, arrays: tuple[Any, ...]) -> Any:
        return getattr(module, self.name)(*arrays, **self.options)


def cases(size: int) -> dict[str, Case]:
    noise = np.random.default_rng(0).random((size, size), np.float32)
    half = noise > 0.5
    blobs = scipy.ndimage.gaussian_filter(noise, 6) > 0.5
    labels, count = scipy.ndimage.label(blobs)
    index = np.arange(1, count + 1)
    return {
        "label, blobs": Case("label", (blobs, ALL), {}, cv2=lambda cv: cv.connectedComponents(blobs.view(np.uint8))),
        "label, noise": Case("label", (half, ALL), {}, cv2=lambda cv: cv.connectedComponents(half.view(np.uint8))),
        "find_objects": Case("find_objects", (labels,), {}),
        "sum_labels": Case("sum_labels", (noise, labels, index), {}),
        "variance": Case("variance", (noise, labels, index), {}),
        "maximum": Case("maximum", (noise, labels, index), {}),
        "maximum_position": Case("maximum_position", (noise, labels, index), {}),
        "center_of_mass": Case("center_of_mass", (noise, labels, index), {}),
        "median": Case("median", (noise, labels, index), {}),
        "binary_fill_holes": Case("binary_fill_holes", (blobs,), {}),
        "binary_propagation": Case("binary_propagation", (blobs & (noise > 0.999),), {"mask": blobs}),
        "distance_transform_edt": Case(
            "distance_transform_edt",
            (blobs,),
            {},
            cv2=lambda cv: cv.distanceTransform(blobs.view(np.uint8), cv.DIST_L2, 0),
        ),
        "distance_transform_edt, one hole": Case(
            "distance_transform_edt",
            (np.arange(size * size).reshape(size, size) != size,),
            {},
        ),
        "distance_transform_cdt": Case(
            "distance_transform_cdt",
            (blobs,),
            {},
            cv2=lambda cv: cv.distanceTransform(blobs.view(np.uint8), cv.DIST_C, 3),
        ),
    }


def rivals(case: Case, device: str) -> tuple[tuple[Any, ...], Action, dict[str, Action]]:
    """The arrays that gpuop gets, what waits, and the other libraries' calls."""
    if device.startswith("cuda"):
        import cupy  # type: ignore[import-not-found,unused-ignore]
        import cupyx.scipy.ndimage as theirs  # type: ignore[import-not-found,unused-ignore]

        there = tuple(cupy.asarray(a) if isinstance(a, np.ndarray) and a.shape != (3, 3) else a for a in case.arrays)
        structures = tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in case.arrays)
        case.options = {n: cupy.asarray(v) if isinstance(v, np.ndarray) else v for n, v in case.options.items()}
        found = {"CuPy": lambda: case.of(theirs, structures)} if hasattr(theirs, case.name) else {}
        return there, cupy.cuda.Device().synchronize, found
    found = {"SciPy": lambda: case.of(scipy.ndimage, case.arrays)}
    if "cv2" in case.others and find_spec("cv2"):
        import cv2  # type: ignore[import-not-found,unused-ignore]

        found["OpenCV"] = lambda: case.others["cv2"](cv2)
    if case.name == "label" and find_spec("skimage"):
        import skimage.measure

        found["scikit-image"] = lambda: skimage.measure.label(case.arrays[0], connectivity=2)
    return case.arrays, lambda: None, found


def alike(found: Any, expected: Any) -> bool:
    """Return whether results are equal, or nearly if they are floats."""
    if isinstance(expected, (tuple, list)):
        return len(found) == len(expected) and all(map(alike, found[:100], expected[:100]))
    if expected is None or isinstance(expected, slice):
        return bool(found == expected)
    one, other = (np.asarray(a.get() if hasattr(a, "get") else a) for a in (found, expected))
    return bool(np.allclose(one, other, rtol=1e-5))


def row(case: Case, device: str, runs: int) -> str:
    arrays, wait, others = rivals(case, device)
    ours = lambda: case.of(gp.ndimage, arrays)  # noqa: E731
    taken = in_turns({"gpuop": ours, **others}, runs, wait=wait, warm=2)
    mine, spread = middle_half(taken.pop("gpuop"))
    first = next(iter(others.values()), None)
    right = "" if first is None or alike(ours(), first()) else " | other values"
    times = {name: middle_half(seconds)[0] for name, seconds in taken.items()}
    shown = ", ".join(f"{name} {time:.1f}" for name, time in times.items())
    return f"{mine:.1f} | {spread:.1f} | {shown} | {mine / min(times.values(), default=mine):.2f}{right} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(
        f"{given.device}, {given.size}×{given.size}\n\n| function | gpuop | ± | others | ratio |\n|---|---|---|---|---|"
    )
    with gp.use_device(given.device):
        for name, case in cases(given.size).items():
            if given.only in name and case.name in gp.ndimage.__all__:
                print(f"| {name} | {row(case, given.device, given.runs)}", flush=True)


if __name__ == "__main__":
    main()
