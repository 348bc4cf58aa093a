"""KernelAbstractions' first kernel, `A[I] = 2 * A[I]`: an operator that updates its argument.

A field is a value, so the caller's stays as it is. In a graph the state is written in its own memory, without a second buffer.

    python examples/mul2.py [--rows 1024] [--times 3] [--device opencl:0]
"""

import argparse
import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *


@gp.operator(inout="a")
def mul2(a):
    _writeTensor(a, 2 * _readTensor(a))


def doubling(values, device=None):
    """A graph with a state, "a", that each step doubles."""
    with gp.ComputeGraph(device) as graph:
        a = gp.ScalarField(values)
        a.next = mul2(a)
        graph.probe(a, "a")
    return graph


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1024, help="and columns (default: %(default)s)")
    parser.add_argument("--times", type=int, default=3, help="that it is doubled (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    ones = np.ones((args.rows, args.rows), np.float32)
    start = time.perf_counter()
    graph = doubling(ones, common.device(args.device))
    graph.step(args.times)
    right = np.array_equal(graph.read("a"), ones * 2**args.times)
    common.report(graph, time.perf_counter() - start, ones.size)
    print("doubled:", "right" if right else "wrong")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
