"""Heat in a block, spread over MPI's ranks: each has a part on its own device, and a halo of several steps around it.

    mpiexec -n 4 python examples/heat_ranks.py [--size 128] [--steps 64] [--every 8] [--device opencl:0]

Rank 0 says how the block is divided and what that costs, and computes all of it by itself for comparison: the bits are the same.
On a host with several GPUs each rank takes the one of its number.
"""

import argparse
import sys
import time

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


def seconds(what, steps):
    """How long a step takes, of some after one that compiles; with what `what` reads in the end."""
    step, read = what
    step(1)
    read()
    start = time.perf_counter()
    step(steps - 1)
    found = read()
    return (time.perf_counter() - start) / (steps - 1), found


def device_of(rank, asked):
    """The device of a rank: what is asked for, or one of the GPUs in turn."""
    gpus = [device.name for device in gp.devices() if device.name.startswith("cuda")]
    return common.device(asked if asked or not gpus else gpus[rank % len(gpus)])


def main(argv=None, comm=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=128, help="of the block along each axis (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=64, help="2 or more (default: %(default)s)")
    parser.add_argument("--every", type=int, help="steps between exchanges (default: what is fastest)")
    parser.add_argument("--device", help="opencl:0, reference, … as `gpuop devices` lists them (default: the best)")
    args = parser.parse_args(argv)
    if comm is None:
        try:
            from mpi4py import MPI
        except ImportError:
            raise common.error(
                "mpi4py is missing: `pip install gpuop[mpi]`, and an MPI such as `pip install mpich`"
            ) from None
        comm = MPI.COMM_WORLD
    device, start = device_of(comm.Get_rank(), args.device), np.zeros((args.size,) * 3, np.float32)
    start[args.size // 3 :, args.size // 2, :] = 100
    domain = Domain(comm, heat(start, device), every=args.every or "auto")
    ours, found = seconds((domain.step, lambda: domain.gather("u")), args.steps)
    if found is None:
        return 0
    graph = heat(start, device)
    alone, whole = seconds((graph.step, lambda: graph.read("u")), args.steps)
    right = np.array_equal(found, whole)
    print(domain.explain())
    print(f"{ours * 1e3:.3g} ms a step on {comm.Get_size()} ranks, {alone * 1e3:.3g} ms on one by itself")
    print(f"{args.steps} steps: {'the same bits' if right else 'other bits'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
