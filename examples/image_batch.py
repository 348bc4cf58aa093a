"""Ten thousand images of a microscope's, a batch: each is freed of its uneven light, and its bright spots are found.

    python examples/image_batch.py [--images 10000] [--size 64] [--device opencl:0] [--address tcp://…:8786]

By `gp.stream` from file to file, image by image, and by `gpuop.dask` in blocks of images, on threads or on a cluster's workers.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import common
import numpy as np

import gpuop as gp
from gpuop import ndimage

TOGETHER = 256  # images of a block


@gp.pipeline
def spots(image, light):
    """The places where an image is brightest of all around; `light` is the light of an empty one."""
    even = ndimage.gaussian_filter(gp.ScalarField(image) / gp.ScalarField(light), 1)
    return (even == ndimage.maximum_filter(even, 5)) & (even > 1.0)


def taken(path, count, size):
    """A file of images, each with some spots, and the light that they are taken in."""
    made = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(count, size, size))
    rng, along = np.random.default_rng(0), np.linspace(-1, 1, size, dtype=np.float32)
    light = 60 * (1.5 - along[:, None] ** 2 * 0.5 - along**2 * 0.5)
    for image in made:
        dark = rng.random((size, size), np.float32)
        image[...] = light * dark**3
        image[tuple(rng.integers(0, size, (2, 9)))] = 255
    made.flush()
    return light


def on_dask(path, light, device=None):
    """The number of spots of each image."""
    import dask.array as da

    import gpuop.dask

    images = np.load(path, mmap_mode="r")
    lazy = da.map_blocks(
        lambda block_info: np.array(np.load(path, mmap_mode="r")[slice(*block_info[None]["array-location"][0])]),
        chunks=da.core.normalize_chunks((TOGETHER, -1, -1), images.shape),
        dtype=images.dtype,
    )
    print(gpuop.dask.explain(spots, lazy, light, batch=1, device=device))
    return gpuop.dask.map_blocks(spots, lazy, light, batch=1, device=device).sum(axis=(1, 2)).compute()


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--images", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--size", type=int, default=64, help="of an image along both axes (default: %(default)s)")
    common.on_cluster(parser)
    args = parser.parse_args(argv)
    device, rates = common.device(args.device), []
    with common.cluster(args), tempfile.TemporaryDirectory() as folder:
        raw, out = (str(Path(folder) / name) for name in ("raw.npy", "spots.npy"))
        light = taken(raw, args.images, args.size)
        with gp.use_device(device):
            start = time.perf_counter()
            found = gp.stream(spots, (raw, light), out, batch=1).sum(axis=(1, 2))
            rates.append(args.images / (time.perf_counter() - start))
        start = time.perf_counter()
        counts = on_dask(raw, light, args.device)
        rates.append(args.images / (time.perf_counter() - start))
    print(f"{rates[0]:.0f} images a second streamed, {rates[1]:.0f} on Dask; {found.mean():.1f} spots in each")
    right = np.array_equal(found, counts)
    print(f"{args.images} images: {'the same spots' if right else 'other spots'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
