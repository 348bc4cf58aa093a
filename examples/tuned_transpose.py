"""katsdpsigproc's transpose through tiles, tuned: how large a tile is, and how many of its values a thread has, a device says.

The first run on a device measures the variants, at most for a few seconds, and stores which was the fastest; later ones find it.

    python examples/tuned_transpose.py [--rows 3072 --columns 8320] [--device opencl:0]
"""

import argparse
import sys
import time

import numpy as np

import gpuop as gp
from gpuop.dsl import *


def turned(f, **variant):
    return f.type.replace(field_shape=f.field_shape[::-1])


@gp.operator(tune={"block": (16, 8, 32), "values": (1, 2, 4)}, outputs=turned)
def transposed(f, *, block, values):
    """A work-group moves a tile of block × block values, each thread `values` of a column."""
    if block // values < 4:
        raise gp.UnsupportedError("so few threads keep no device busy")
    rows, columns = f.field_shape
    high = block // values  # threads of a column of the tile
    _globalThreads(-(-columns // block) * high, -(-rows // block) * block)
    _localThreads(high, block)
    tile = _local(_tensorArray(f, block, block + 1))
    with _for(values, unroll=True) as k:
        row = k * high + _localRow
        tile[row, _localColumn] = _readTensor(f, _groupColumn * block + row, _groupRow * block + _localColumn)
    _syncThreadsLocal()
    with _for(values, unroll=True) as k:
        row = k * high + _localRow
        _writeTensor(_out0, tile[_localColumn, row], _groupRow * block + row, _groupColumn * block + _localColumn)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3072)
    parser.add_argument("--columns", type=int, default=8320)
    parser.add_argument("--device")
    given = parser.parse_args(arguments)
    picture = np.random.default_rng(0).random((given.rows, given.columns), np.float32)
    with gp.use_device(given.device or gp.devices()[0].name), gp.tuning("auto"):
        field, start = gp.ScalarField(picture), time.perf_counter()
        same = np.array_equal(transposed(field).numpy(), picture.T)
        print(f"first result after {time.perf_counter() - start:.2f} s")
    print("equals NumPy" if same else "differs from NumPy")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
