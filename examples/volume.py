"""A volume of a microscope's that is ten times as large as memory may be: denoised, its slopes found, and what is steep counted.

    python examples/volume.py [--memory 32] [--times 10] [--device opencl:0] [--address tcp://…:8786] [--folder DIR]

First by `gp.stream`, in one process, from file to file; then by `gpuop.dask`, on Dask's threads, or on the workers of a cluster
whose scheduler is at `--address`. Both say how they cut the volume, how much parts need around them, and which share of points
is computed twice for that. The results have the same bits, as each has those of one call on all of it.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

import gpuop as gp
from gpuop import ndimage

WINDOWS, POINT = 6, 4  # that are in memory at once: read ahead, computed, to be written; and bytes of a point in one
LAYERS = 40  # of a window
CELL = 24  # points from one cell to the next


@gp.pipeline
def surfaces(volume, steep=0.2):
    smooth = ndimage.gaussian_filter(gp.ScalarField(volume) / 65535.0, 1)
    slope = np.sqrt(sum(ndimage.sobel(smooth, axis) ** 2 for axis in range(3)))
    found = slope > steep
    return found, np.count_nonzero(found)


class ArrayFile:
    """An .npy file, of which processes read and write parts: it is sent to them as its path."""

    def __init__(self, path, kind=None):
        self.path = str(path)
        mode = {"mode": "r"} if kind is None else {"mode": "w+", "shape": kind[0], "dtype": kind[1]}
        array = np.lib.format.open_memmap(self.path, **mode)
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self.chunks = None  # any part is read as fast

    def __getitem__(self, place):
        return np.array(np.load(self.path, mmap_mode="r")[place])

    def __setitem__(self, place, values):
        array = np.load(self.path, mmap_mode="r+")
        array[place] = values

    def __dask_tokenize__(self):
        return self.path, Path(self.path).stat().st_mtime_ns


def grown(path, layers, size):
    """A file with a long sample, as light sheets go through: round cells in noise, written layer by layer."""
    made = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint16, shape=(layers, size, size))
    rng, wave = np.random.default_rng(0), np.sin(np.arange(max(layers, size), dtype=np.float32) * (np.pi / CELL)) ** 2
    around = wave[:size, None] * wave[:size]
    for layer, depth in zip(made, wave, strict=False):
        layer[...] = 20000 * (depth * around > 0.3) + rng.integers(0, 8000, (size, size), np.uint16)
    made.flush()


def on_dask(source, out, chunks, device=None):
    """The number of steep points; the points are written to a file."""
    import dask
    import dask.array as da

    import gpuop.dask

    lazy = da.from_array(source, chunks=chunks)
    print(gpuop.dask.explain(surfaces, lazy, device=device))
    found, count = gpuop.dask.map_blocks(surfaces, lazy, device=device)
    file: Any = ArrayFile(out, (found.shape, found.dtype))  # Dask's types want more than it uses
    stored = da.store(found, file, lock=False, compute=False)
    return int(dask.compute(stored, count)[1])


def equal(one, other):
    """Return whether two files have the same array, layer by layer."""
    a, b = (np.load(path, mmap_mode="r") for path in (one, other))
    return a.shape == b.shape and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def timed(name, work, points):
    start = time.perf_counter()
    found = work()
    print(f"{name}: {found} steep points in {common.speed(time.perf_counter() - start, points, 'megapoints')}")
    return found


def run(folder, args, of_dask=ArrayFile):
    """Grow a volume in a folder and go through it twice; `of_dask` makes what Dask reads of a path."""
    raw, streamed, mapped = (folder / name for name in ("raw.npy", "streamed.npy", "mapped.npy"))
    size = int((args.memory * 1e6 / (WINDOWS * POINT * LAYERS)) ** 0.5)
    layers = int(args.memory * 1e6 * args.times) // (2 * size**2)
    points = layers * size**2
    grown(raw, layers, size)
    print(f"{layers}×{size}×{size} points of uint16, {points * 2 / 1e6:.4g} MB: {args.times} times {args.memory:g} MB")
    before, after = surfaces.footprint(gp.FieldType((layers, size, size), dtype="uint16")).halo[0]
    chunks = (LAYERS - before - after, size, size)
    device = common.device(args.device)
    with gp.use_device(device):
        few = timed("stream", lambda: int(gp.stream(surfaces, raw, (streamed,), chunks=chunks)[1]), points)
    many = timed("Dask", lambda: on_dask(of_dask(raw), mapped, chunks, args.device), points)
    right = few == many and equal(streamed, mapped)
    print(f"{few / points:.1%} of the points are steep: {'the same bits' if right else 'other bits'}")
    return 0 if right else 1


def arguments(argv):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--memory", type=float, default=32, help="MB that windows may have (default: %(default)s)")
    parser.add_argument(
        "--times", type=int, default=10, help="so many times this the volume has (default: %(default)s)"
    )
    parser.add_argument("--folder", help="where files are made (default: one that is removed in the end)")
    common.on_cluster(parser)
    return parser.parse_args(argv)


def main(argv=None):
    args = arguments(argv)
    with common.cluster(args), tempfile.TemporaryDirectory(dir=args.folder) as folder:
        return run(Path(folder), args)


if __name__ == "__main__":
    sys.exit(main())
