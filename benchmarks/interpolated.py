"""Interpolation next to SciPy's and OpenCV's on the CPU, and on a GPU next to cupyx's on the same device, in the same run.

    python benchmarks/interpolated.py [--device NAME] [--runs 9] [--size 2048] [--dtype float32]

Calls with arrays, waited for, in turns: medians in milliseconds with the spread of the middle half, and what the others take over
what gpuop takes. Values are compared with SciPy's. OpenCV's places have 5 bits behind the point, and its cubic is another one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import in_turns, middle_half

import gpuop as gp
from gpuop import ndimage
from gpuop.runtime.devices import current

TURN = np.array([[0.99, 0.1], [-0.1, 0.99]])
OFFSET = (3.0, 5.0)
Case = tuple[str, dict[str, Any], Callable[[Any, Any], object] | None]  # the function, its arguments, OpenCV's call


def cases(size: int) -> dict[str, Case]:
    y, x = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    places = np.stack([y + 5 * np.sin(x / 50), x + 5 * np.cos(y / 40)]).astype(np.float32)
    across = np.array([[*TURN[1, ::-1], OFFSET[1]], [*TURN[0, ::-1], OFFSET[0]]])

    def remapped(how: str) -> Callable[[Any, Any], object]:
        return lambda cv, a: cv.remap(a, places[1], places[0], getattr(cv, how), borderMode=cv.BORDER_REFLECT_101)

    def turned(how: str) -> Callable[[Any, Any], object]:
        return lambda cv, a: cv.warpAffine(
            a, across, a.shape[::-1], flags=getattr(cv, how) | cv.WARP_INVERSE_MAP, borderMode=cv.BORDER_REFLECT_101
        )

    def resized(how: str) -> Callable[[Any, Any], object]:
        return lambda cv, a: cv.resize(a, None, fx=1.5, fy=0.75, interpolation=getattr(cv, how))

    found: dict[str, Case] = {"spline_filter": ("spline_filter", {"output": np.float32, "mode": "mirror"}, None)}
    for order, how in ((0, "INTER_NEAREST"), (1, "INTER_LINEAR"), (3, "INTER_CUBIC")):
        more = {"order": order, "mode": "mirror"}
        found |= {
            f"map_coordinates, order {order}": ("map_coordinates", {"coordinates": places, **more}, remapped(how)),
            f"affine_transform, order {order}": (
                "affine_transform",
                {"matrix": TURN, "offset": OFFSET, **more},
                turned(how),
            ),
            f"zoom, order {order}": ("zoom", {"zoom": (0.75, 1.5), "grid_mode": True, **more}, resized(how)),
            f"shift, order {order}": ("shift", {"shift": (2.5, 3.25), **more}, None),
        }
    return found


def others(device: str) -> dict[str, Any]:
    """The other libraries' modules by their names, and CuPy, or NumPy, which makes arrays."""
    if device.startswith("cuda"):
        import cupy  # type: ignore[import-not-found]
        import cupyx.scipy.ndimage as theirs  # type: ignore[import-not-found]

        return {"arrays": cupy, "cupyx": theirs}
    import scipy.ndimage

    found = {"arrays": np, "SciPy": scipy.ndimage}
    try:
        import cv2  # type: ignore[import-not-found]
    except ImportError:
        return found
    return found | {"OpenCV": cv2}


def measured(case: Case, image: Any, modules: dict[str, Any], runs: int) -> dict[str, tuple[float, float]]:
    name, options, of_opencv = case
    arrays = modules["arrays"]
    given = {n: arrays.asarray(v) if isinstance(v, np.ndarray) and n != "matrix" else v for n, v in options.items()}
    a = arrays.asarray(image)
    wait = (lambda: None) if arrays is np else arrays.cuda.Device().synchronize
    actions: dict[str, Callable[[], object]] = {"gpuop": lambda: getattr(ndimage, name)(a, **given)}
    for library, module in modules.items():
        if library in ("SciPy", "cupyx"):
            theirs = {n: arrays.asarray(v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
            actions[library] = lambda m=module, t=theirs: getattr(m, name)(a, **t)  # type: ignore[misc]
        elif library == "OpenCV" and of_opencv:
            actions[library] = lambda m=module: of_opencv(m, a)  # type: ignore[misc]
    taken = in_turns(actions, runs, wait=wait, warm=1)
    return {library: middle_half(seconds) for library, seconds in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args()
    image = (np.random.default_rng(0).random((arguments.size, arguments.size)) * 255).astype(arguments.dtype)
    with gp.use_device(arguments.device or current().name):
        modules = others(current().name)
        names = [name for name in modules if name != "arrays"]
        print(f"{current().name}: {current().description}, {arguments.dtype}\n")
        print(f"| what | gpuop ms | ± | {' | ratio | '.join(f'{name} ms' for name in names)} | ratio |")
        print("|---" * (3 + 2 * len(names)) + "|")
        for what, case in cases(arguments.size).items():
            found = measured(case, image, modules, arguments.runs)
            own = found["gpuop"]
            cells = [f"{found[n][0]:.2f} | {found[n][0] / own[0]:.1f}" if n in found else "– | –" for n in names]
            print(f"| {what} | {own[0]:.2f} | {own[1]:.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
