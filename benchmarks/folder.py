"""A folder of images of as many sizes: label, median_filter and gaussian_filter of each, beside SciPy.

    python benchmarks/folder.py [--device NAME] [--images 1000] [--most 400] [--specialize auto]

Images are random, of 100 to `--most` rows and columns, no two of one size. What each function takes for all of them, in seconds, as
the clock says and of all processors together; the cache is empty before. Results are compared with those of SciPy where they are
exact.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.ndimage

import gpuop as gp
from gpuop.base.config import config

LEAST = 100
Image = np.ndarray[Any, Any]


def label(ndimage: Any, image: Image) -> Any:
    return ndimage.label(image > 0.6)[0]


def median(ndimage: Any, image: Image) -> Any:
    return ndimage.median_filter(image, 3)


def gaussian(ndimage: Any, image: Image) -> Any:
    return ndimage.gaussian_filter(image, 2.0)


def sizes(count: int, most: int) -> list[tuple[int, int]]:
    """Return sizes that are all different, in any order."""
    rng = np.random.default_rng(0)
    places = rng.choice((most - LEAST) ** 2, count, replace=False)
    return [(LEAST + int(n) // (most - LEAST), LEAST + int(n) % (most - LEAST)) for n in places]


def timed(
    function: Callable[[Any, Image], Any], ndimage: Any, images: Iterable[Image]
) -> tuple[float, float, list[Any]]:
    """Return the seconds of the clock and of processors that a function takes for all images, and its results."""
    clock, processors = time.perf_counter(), time.process_time()
    results = [function(ndimage, image) for image in images]
    return time.perf_counter() - clock, time.process_time() - processors, results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--specialize", choices=("auto", "0", "1"), default="auto")
    options = parser.parse_args()
    config.specialize = options.specialize
    rng = np.random.default_rng(1)
    images = [rng.random(size, np.float32) for size in sizes(options.images, options.most)]
    print(f"{'function':10} {'SciPy s':>9} {'CPU s':>9} {'gpuop s':>9} {'CPU s':>9}")
    with TemporaryDirectory() as folder, gp.use_device(options.device or gp.devices()[0].name):
        config.cache = Path(folder)
        for function in (gaussian, median, label):
            *theirs, expected = timed(function, scipy.ndimage, images)
            *ours, results = timed(function, gp.ndimage, images)
            print(f"{function.__name__:10} {theirs[0]:9.2f} {theirs[1]:9.2f} {ours[0]:9.2f} {ours[1]:9.2f}", flush=True)
            for result, wanted in zip(results, expected, strict=True):
                assert np.allclose(result, wanted, atol=0 if function is not gaussian else 1e-6)


if __name__ == "__main__":
    main()
