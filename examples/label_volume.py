"""Cells of a microscope's volume that is larger than memory are counted, and numbered as scipy.ndimage.label does it in the whole.

    python examples/label_volume.py [--layers 300] [--size 128] [--slab 64] [--connectivity 1] [--device opencl:0]

What is bright is streamed to a file; each slab of its layers is labelled by itself; parts that touch where the volume was cut are
one cell, which is found of the layers there; and a stream gives parts the numbers of their cells. Slabs follow one another in the
order of points, and so do the parts in each: the least part of a cell has its first point, by which SciPy numbers cells.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import common
import numpy as np
import scipy
from scipy.ndimage import generate_binary_structure
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from volume import grown

import gpuop as gp
from gpuop import ndimage
from gpuop.dsl import *


@gp.pipeline
def bright(volume, level=0.2):
    return ndimage.gaussian_filter(gp.ScalarField(volume) / 65535.0, 1) > level


@gp.operator
def looked_up(parts, numbers):
    return _readTensor(numbers, _readTensor(parts))


@gp.pipeline
def renumbered(parts, numbers):
    return looked_up(gp.ScalarField(parts), gp.ScalarField(numbers))


def touching(before, behind, structure):
    """Pairs of parts, as rows, that are connected from one layer to the next one."""
    found = [np.empty(0, np.int64)]
    for offset in np.argwhere(structure[2]) - 1:
        each = [*zip(offset, before.shape, strict=True)]
        here = before[tuple(slice(max(-by, 0), n - max(by, 0)) for by, n in each)]
        there = behind[tuple(slice(max(by, 0), n - max(-by, 0)) for by, n in each)]
        both = (here > 0) & (there > 0)
        found.append(np.unique(here[both].astype(np.int64) << 32 | there[both]))
    pairs = np.concatenate(found)
    return np.stack([pairs >> 32, pairs & 0xFFFFFFFF], axis=1)


def joined(pairs, count):
    """The number of each part's cell: those of cells are in the order of their least parts, and 0 stays."""
    graph = coo_array((np.ones(len(pairs), bool), pairs.T), (count + 1, count + 1))
    _, cells = connected_components(graph, directed=False)
    _, least, cells = np.unique(cells, return_index=True, return_inverse=True)
    numbers = np.empty(len(least), np.int32)
    numbers[np.argsort(least)] = np.arange(len(least))
    return numbers[cells]


def label(mask, out, slab, structure=None):
    """Number the connected points of a mask, of slabs of so many layers; how many there are, and the numbers in a file.

    Args:
        mask: an array that has slices, such as a memory-mapped file; what is not 0 is in it.
        out: the path of an .npy file of int32.
        slab: layers that are in memory at once; the last ones may be fewer.
        structure: as of scipy.ndimage.label.
    """
    structure = generate_binary_structure(mask.ndim, 1) if structure is None else np.asarray(structure)
    with tempfile.NamedTemporaryFile(dir=Path(out).parent, suffix=".npy") as file:
        parts = np.lib.format.open_memmap(file.name, "w+", np.int32, mask.shape)
        pairs, count = [np.empty((0, 2), np.int64)], 0
        for start in range(0, len(mask), slab):
            found, more = ndimage.label(np.asarray(mask[start : start + slab]), structure)
            parts[start : start + slab] = np.where(found > 0, found + count, 0)
            if start:
                pairs.append(touching(parts[start - 1], parts[start], structure))
            count += more
        numbers = joined(np.concatenate(pairs), count)
        gp.stream(renumbered, (parts, numbers), str(out), shared="numbers", progress=False)
    return int(numbers.max())


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--layers", type=int, default=300, help="of the volume (default: %(default)s)")
    parser.add_argument("--size", type=int, default=128, help="of a layer along both axes (default: %(default)s)")
    parser.add_argument("--slab", type=int, default=64, help="layers in memory at once (default: %(default)s)")
    parser.add_argument(
        "--connectivity", type=int, default=1, help="1 to 3, as of SciPy's structures (default: %(default)s)"
    )
    parser.add_argument("--device", help="such as opencl:0 (default: the first one)")
    args = parser.parse_args(argv)
    structure = generate_binary_structure(3, args.connectivity)
    with gp.use_device(common.device(args.device)), tempfile.TemporaryDirectory() as folder:
        raw, mask, out = (Path(folder) / name for name in ("raw.npy", "mask.npy", "cells.npy"))
        grown(raw, args.layers, args.size)
        points = args.layers * args.size**2
        there = gp.stream(bright, raw, mask)
        start = time.perf_counter()
        count = label(there, out, args.slab, structure)
        print(f"{count} cells in {common.speed(time.perf_counter() - start, points, 'megapoints')}")
        labels, expected = scipy.ndimage.label(there, structure)
        right = count == expected and np.array_equal(np.load(out, mmap_mode="r"), labels)
    print(f"{args.layers}×{args.size}×{args.size} points: {'SciPy’s numbers' if right else 'other numbers'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
