"""Heat in a block, spread over MPI's ranks: each has a part on its own device, and a halo of several steps around it.

    mpiexec -n 4 python examples/heat_ranks.py [--size 128] [--steps 64] [--every 8] [--device opencl:0]

Rank 0 says how the block is divided and what that costs, and computes all of it by itself for comparison: the bits are the same.
On a host with several GPUs each rank takes the one of its number.
"""

import argparse
import sys

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.mpi import Domain

NEIGHBOURS = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]


@gp.operator
def spread(u, rate):
    here = _readTensor(u)
    around = sum(_readTensor(u, _layer + a, _row + b, _column + c) for a, b, c in NEIGHBOURS)
    return here + _readTensor(rate) * (around - 6 * here)


def heat(start, device=None):
    """A graph with the state and probe "u"."""
    rate = gp.Parameter(0.1)
    with gp.ComputeGraph(device) as graph:
        u = gp.ScalarField(start)
        u.next = spread(u, rate)
        graph.probe(u)
    return graph


def main(argv=None, comm=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=128, help="of the block along each axis (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=64, help="2 or more (default: %(default)s)")
    common.with_ranks(parser)
    args = parser.parse_args(argv)
    comm = common.ranks() if comm is None else comm
    device = common.device_of(comm.Get_rank(), args.device)
    start = np.zeros((args.size,) * 3, np.float32)
    start[args.size // 3 :, args.size // 2, :] = 100
    graph = heat(start, device)
    domain = Domain(comm, graph, every=args.every or "auto")
    return 0 if common.same_on_ranks(domain, graph, "u", args.steps) else 1


if __name__ == "__main__":
    sys.exit(main())
