"""First results of new sizes: functions of ndimage called with images of one size after another, in one process, beside SciPy.

    python benchmarks/second_size.py [--device NAME] [--only NAME …] [--cold] [--sizes 4]

For each function, the CPU time (of all processors together, in milliseconds) of the first call of a process, whose compile cache on
disk has that size and others (with `--cold`: nothing), and of calls with a second size, a third and so on, which neither the
process nor the disk has seen; how many texts a driver built for them; and the time of SciPy's call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

WARM = ((240, 320), (131, 173), (283, 311), (137, 181))
SIZES = ((240, 320), (211, 283), (197, 263), (179, 241), (307, 223), (199, 331), (257, 269))
Images = dict[str, np.ndarray]
Call = Callable[[Any, Images], Any]
MATRIX = ((0.98, -0.17), (0.17, 0.98))
CROSS = ((0, 1, 0), (1, 1, 1), (0, 1, 0))


def images(shape: tuple[int, int]) -> Images:
    """A photo, bytes, an image of parts, and their labels."""
    rng = np.random.default_rng(shape[0])
    photo = rng.random(shape, np.float32)
    parts = photo > 0.6
    return {
        "photo": photo,
        "bytes": (photo * 255).astype(np.uint8),
        "parts": parts,
        "labels": (photo * 9).astype(np.int32),
        "markers": (photo * 40).astype(np.int16),
        "spectrum": np.fft.fft2(photo).astype(np.complex64),
        "places": (rng.random((2, *shape)) * 200).astype(np.float32),
    }


def _one(name: str, kind: str = "photo", *args: Any, **options: Any) -> tuple[str, Call]:
    return name, lambda ndimage, image: getattr(ndimage, name)(image[kind], *args, **options)


def _of_parts(name: str, **options: Any) -> tuple[str, Call]:
    return name, lambda ndimage, image: getattr(ndimage, name)(image["photo"], image["labels"], **options)


CALLS: dict[str, Call] = dict(
    (
        _one("gaussian_filter", "photo", 2.0),
        _one("gaussian_filter1d", "photo", 2.0),
        _one("gaussian_laplace", "photo", 2.0),
        _one("gaussian_gradient_magnitude", "photo", 2.0),
        _one("uniform_filter", "photo", 5),
        _one("uniform_filter1d", "photo", 5),
        _one("median_filter", "photo", 3),
        ("median_filter of bytes", _one("median_filter", "bytes", 5)[1]),
        _one("percentile_filter", "photo", 20, 3),
        _one("rank_filter", "photo", 3, 3),
        _one("maximum_filter", "photo", 5),
        _one("minimum_filter", "photo", 5),
        _one("maximum_filter1d", "photo", 5),
        _one("minimum_filter1d", "photo", 5),
        _one("sobel"),
        _one("prewitt"),
        _one("laplace"),
        _one("convolve", "photo", CROSS),
        _one("correlate", "photo", CROSS),
        _one("convolve1d", "photo", (1, 2, 1)),
        _one("correlate1d", "photo", (1, 2, 1)),
        _one("rotate", "photo", 15),
        _one("shift", "photo", (1.5, 2.5)),
        _one("zoom", "photo", 1.5),
        _one("affine_transform", "photo", MATRIX),
        ("map_coordinates", lambda ndimage, image: ndimage.map_coordinates(image["photo"], image["places"], order=1)),
        _one("spline_filter"),
        _one("spline_filter1d"),
        _one("grey_erosion", "photo", 3),
        _one("grey_dilation", "photo", 3),
        _one("grey_opening", "photo", 3),
        _one("grey_closing", "photo", 3),
        _one("morphological_gradient", "photo", 3),
        _one("morphological_laplace", "photo", 3),
        _one("white_tophat", "photo", 3),
        _one("black_tophat", "photo", 3),
        _one("binary_erosion", "parts"),
        _one("binary_dilation", "parts"),
        _one("binary_opening", "parts"),
        _one("binary_closing", "parts"),
        _one("binary_fill_holes", "parts"),
        _one("binary_hit_or_miss", "parts"),
        (
            "binary_propagation",
            lambda ndimage, image: ndimage.binary_propagation(image["photo"] > 0.9, mask=image["parts"]),
        ),
        _one("distance_transform_edt", "parts"),
        _one("distance_transform_cdt", "parts"),
        _one("label", "parts"),
        _one("find_objects", "labels"),
        _one("fourier_gaussian", "spectrum", 2.0),
        _one("fourier_uniform", "spectrum", 3),
        _one("fourier_shift", "spectrum", 1.5),
        _one("histogram", "photo", 0, 1, 32),
        _of_parts("sum", index=(1, 2, 3)),
        _of_parts("mean", index=(1, 2, 3)),
        _of_parts("variance", index=(1, 2, 3)),
        _of_parts("standard_deviation", index=(1, 2, 3)),
        _of_parts("minimum", index=(1, 2, 3)),
        _of_parts("maximum", index=(1, 2, 3)),
        _of_parts("median", index=(1, 2, 3)),
        _of_parts("center_of_mass", index=(1, 2, 3)),
        _of_parts("extrema", index=(1, 2, 3)),
        _of_parts("maximum_position", index=(1, 2, 3)),
        _of_parts("minimum_position", index=(1, 2, 3)),
        (
            "watershed_ift",
            lambda ndimage, image: ndimage.watershed_ift(image["bytes"], image["markers"] * (image["markers"] > 37)),
        ),
    )
)


def _timed(call: Call, ndimage: Any, image: Images) -> float:
    began = time.process_time()
    call(ndimage, image)
    return 1e3 * (time.process_time() - began)


def measured(name: str, device: str, sizes: Sequence[tuple[int, int]]) -> None:
    """In a process of its own: print the times of a function for each size, the texts that drivers built, and SciPy's times."""
    import scipy.ndimage

    import gpuop as gp
    from gpuop.runtime.base.compiled import CompilingBackend
    from gpuop.runtime.devices import current

    with gp.use_device(device):
        backend, built = type(current()), [0]
        assert issubclass(backend, CompilingBackend)
        build = backend.build

        def counting(self: Any, program: Any, binary: bytes | None) -> Any:
            built[0] += 1
            return build(self, program, binary)

        backend.build = counting  # type: ignore[method-assign]
        gp.ndimage.sum(np.ones(8, np.float32))  # the device is open
        rows = []
        for shape in sizes:
            image, before = images(shape), built[0]
            took = _timed(CALLS[name], gp.ndimage, image)
            rows.append((took, built[0] - before, min(_timed(CALLS[name], scipy.ndimage, image) for _ in range(2))))
    print(json.dumps(rows))


def _of(name: str, device: str, count: int, cache: Path, *warm: str) -> list[list[float]]:
    command = [sys.executable, __file__, "--measure", name, "--device", device, "--sizes", str(count), *warm]
    environment = {**os.environ, "GPUOP_CACHE": str(cache), "POCL_CACHE_DIR": str(cache / "pocl")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    rows: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="")
    parser.add_argument("--only", nargs="*", default=list(CALLS))
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--sizes", type=int, default=4)
    parser.add_argument("--measure")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    if options.measure:
        sizes = WARM if options.warm else SIZES[: options.sizes]
        measured(options.measure, options.device, sizes)
        return
    import gpuop as gp

    device = options.device or gp.devices()[0].name
    print(
        f"{device}, CPU ms\n{'function':28} {'SciPy':>7}  {'first':>7} "
        + "".join(f"{n:>9}" for n in range(2, options.sizes + 1))
        + "   texts built"
    )
    others: list[list[float]] = []
    for name in options.only:
        try:
            with tempfile.TemporaryDirectory() as folder:
                if not options.cold:
                    _of(name, device, 0, Path(folder), "--warm")
                rows = _of(name, device, options.sizes, Path(folder))
        except RuntimeError as failed:  # compilers end processes
            print(f"{name:28} failed: {' '.join(str(failed).split())[-160:]}", flush=True)
            continue
        took, built, scipy = zip(*rows, strict=True)
        others.append([*took])
        print(
            f"{name:28} {scipy[1]:7.1f}  {took[0]:7.1f} "
            + "".join(f"{t:9.1f}" for t in took[1:])
            + f"   {' '.join(map(str, built))}",
            flush=True,
        )
    print(
        "median                                 "
        + "".join(f"{statistics.median(each):9.1f}" for each in zip(*others, strict=True))
    )
    print(
        "greatest                               " + "".join(f"{max(each):9.1f}" for each in zip(*others, strict=True))
    )


if __name__ == "__main__":
    main()
