"""Histogram equalisation: how many pixels have each level, what share lies below it, and that share as the new level.

Three kernels that are more than arithmetic at a point: the histogram counts with atomics, its running sum is made by one
work-group in local memory, and every pixel looks its new level up.

    python examples/equalize.py [PICTURE] [--output out/equalize.png] [--device opencl:0]
"""

import sys
import time

import common
import numpy as np
from PIL import Image, ImageDraw

import gpuop as gp
from gpuop.dsl import *

LEVELS = 256


@gp.operator(outputs=gp.FieldType(LEVELS, dtype="int32"))
def histogram(levels):
    """The number of pixels of each level: one thread for every pixel, which counts in the output."""
    _globalThreads(levels)
    _atomic_inc(_pointerTo(_out0, _readTensor(levels)))


@gp.operator
def share(counts, pixels):
    """The share of the pixels that have a level or a lower one: a running sum that doubles its reach eight times."""
    _localThreads(LEVELS)
    sums = _local(_intArray(LEVELS))
    sums[_column] = _readTensor(counts)
    reach = _intVar(1)
    with _while(reach < LEVELS):
        _syncThreadsLocal()  # all sums of the last turn are there
        mine = _var(sums[_column])
        with _if(_column >= reach):
            mine += sums[_column - reach]
        _syncThreadsLocal()  # and have been read
        sums[_column] = mine
        reach *= 2
    return _convert_float(sums[_column]) / pixels


@gp.operator
def look_up(levels, table):
    return _readTensor(table, _readTensor(levels))


def equalize(levels, device=None):
    """A graph with two probes, "counts" and "equalized" (0…1), of a picture of uint8."""
    with gp.ComputeGraph(device) as graph:
        picture = gp.ScalarField(levels)
        counts = histogram(picture)
        graph.probe(counts, "counts")
        graph.probe(look_up(picture, share(counts, float(levels.size))), "equalized")
    return graph


def chart(counts, shape):
    """A histogram as a picture of a shape."""
    rows, columns = shape
    canvas = Image.new("L", (columns, rows), 255)
    draw = ImageDraw.Draw(canvas)
    for level, count in enumerate(np.minimum(counts / (5 * counts.mean()), 1)):
        left, right = level * columns // LEVELS, max((level + 1) * columns // LEVELS - 1, level * columns // LEVELS)
        draw.rectangle((left, rows - round(count * (rows - 1)), right, rows), fill=90)
    return np.asarray(canvas)


def main(argv=None):
    args = common.parser(__doc__, "astronaut", "out/equalize.png").parse_args(argv)
    image = common.load(args)
    device = common.device(args.device)
    levels = common.to_bytes(common.grey(image) / 2)  # darkened, so that there is something to do

    start = time.perf_counter()
    graph = equalize(levels, device)
    after = common.to_bytes(graph.read("equalized"))
    common.report(graph, time.perf_counter() - start, levels.size)
    charts = [chart(np.bincount(p.ravel(), minlength=LEVELS), levels.shape) for p in (levels, after)]
    names = ("dark", "its levels", "equalised", "its levels now")
    common.save(args.output, common.sheet(dict(zip(names, (levels, charts[0], after, charts[1]), strict=True))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
