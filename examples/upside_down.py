"""A picture upside down: Cog's form of an operator, host code around a recorded body.

The host checks the field before it records; the body reads at a computed place. Each output point is one thread, and
`_row`, `_column`, `_rows` say which one. The same function serves any 2D field of small tensors.

    python examples/upside_down.py [PICTURE] [--output out/upside_down.png] [--device opencl:0]
"""

import sys
import time

import common

import gpuop as gp
from gpuop.dsl import *


def upsideDown(field):
    """A 2D field with its last row first."""
    if len(field.field_shape) != 2:
        raise ValueError(f"upsideDown requires a 2D field, not {field.type}")
    with gp.GPUOperator(field.type) as op:
        readRow = _rows - _row - 1
        _writeTensor(_out0, _readTensor(field, readRow, _column))
    return op.output


def turn(image, device=None):
    """A graph with one probe, "flipped"."""
    with gp.ComputeGraph(device) as graph:
        graph.probe(upsideDown(gp.ColorField(image)), "flipped")
    return graph


def main(argv=None):
    args = common.parser(__doc__, "coffee", "out/upside_down.png").parse_args(argv)
    image = common.load(args)
    device = common.device(args.device)
    start = time.perf_counter()
    graph = turn(image, device)
    flipped = graph.read("flipped")
    common.report(graph, time.perf_counter() - start, image.shape[0] * image.shape[1])
    common.save(args.output, common.sheet({"picture": image, "upside down": flipped}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
