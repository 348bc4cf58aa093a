"""Sums of work-groups, katsdpsigproc's worked example: each group adds the part of an array that is its own.

Their `wg_reduce.mako` defines a struct of scratch memory and a function for each type, size and operator; here `_reduceGroup` is
one call. Only the first thread writes, so the sum need not reach the others. Sums are added by the same operator.

    python examples/group_sums.py [--size 1000000] [--group 256] [--device opencl:0]
"""

import argparse
import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *


def sums_type(values, group):
    return gp.FieldType(-(-values.field_shape[0] // group), dtype=values.dtype)


@gp.operator(outputs=sums_type)
def group_sums(values, group):
    """A sum for each work-group; the last one may have fewer threads."""
    _globalThreads(values)
    _localThreads(group)
    total = _reduceGroup(_readTensor(values), "add", broadcast=False)
    with _if(_localColumn == 0):
        _writeTensor(_out0, total, _groupColumn)


def summed(values, group, device=None):
    """A graph with the probes "sums", of groups, and "total", by sums of sums until one is left."""
    with gp.ComputeGraph(device) as graph:
        left = group_sums(gp.ScalarField(values), group)
        graph.probe(left, "sums")
        while left.field_shape[0] > 1:
            left = group_sums(left, group)
        graph.probe(left, "total")
    return graph


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=1000000, help="of the array (default: %(default)s)")
    parser.add_argument("--group", type=int, default=256, help="threads of a work-group (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    values = np.random.default_rng(0).integers(-1000, 1000, args.size).astype(np.int32)
    expected = np.add.reduceat(values, np.arange(0, args.size, args.group))
    start = time.perf_counter()
    graph = summed(values, args.group, common.device(args.device))
    right = np.array_equal(graph.read("sums"), expected) and graph.read("total")[0] == values.sum()
    common.report(graph, time.perf_counter() - start, values.size, "million values")
    print(f"{len(expected)} groups of {args.group}: {'right' if right else 'wrong'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
