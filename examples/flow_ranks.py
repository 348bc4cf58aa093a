"""Flow past a cylinder by a lattice-Boltzmann method (D2Q9), spread over MPI's ranks.

    mpiexec -n 4 python examples/flow_ranks.py [--rows 256] [--columns 768] [--steps 200] [--every 8] [--device opencl:0]

Particles of nine velocities move from point to point, are turned back by solids, and come nearer to equilibrium where they meet.
Each velocity is a state; what is solid is a field that all steps read. Rank 0 says how the channel is divided along its length and
what that costs, and computes all of it by itself for comparison: the bits are the same.
"""

import argparse
import sys

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.mpi import Domain

VELOCITIES = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]  # along rows, columns
OPPOSITE = [VELOCITIES.index((-a, -b)) for a, b in VELOCITIES]
WEIGHTS = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4
INLET = 0.1  # how fast the flow comes in, in points a step
RELAXATION = 1.7


def equilibrium(k, density, down, along):
    """The number of particles of a velocity after those of all velocities have met; of numbers and of values of kernels."""
    a, b = VELOCITIES[k]
    with_it, square = a * down + b * along, down * down + along * along
    return WEIGHTS[k] * density * (1 + 3 * with_it + 4.5 * with_it * with_it - 1.5 * square)


@gp.operator
def flow(solid, relaxation, *particles):
    came = []
    for k, (a, b) in enumerate(VELOCITIES):
        turned = _readTensor(solid, _row - a, _column - b) != 0
        came.append(
            _where(turned, _readTensor(particles[OPPOSITE[k]]), _readTensor(particles[k], _row - a, _column - b))
        )
    density = sum(came[1:], came[0])
    down = sum(a * f for f, (a, _) in zip(came, VELOCITIES, strict=True) if a) / density
    along = sum(b * f for f, (_, b) in zip(came, VELOCITIES, strict=True) if b) / density
    met = [f + _readTensor(relaxation) * (equilibrium(k, density, down, along) - f) for k, f in enumerate(came)]
    return tuple(_where(_column == 0, equilibrium(k, 1, 0, INLET), f) for k, f in enumerate(met))


def channel(rows, columns, device=None):
    """A graph with walls above and below, and a cylinder; it probes the flow along the channel, and its greatest."""
    row, column = np.ogrid[:rows, :columns]
    solid = (row - rows / 2 + 0.5) ** 2 + (column - columns / 5) ** 2 < (rows / 9) ** 2
    solid[[0, -1]] = True
    relaxation = gp.Parameter(np.float32(RELAXATION))
    with gp.ComputeGraph(device) as graph:
        particles = [gp.ScalarField(np.full((rows, columns), equilibrium(k, 1, 0, INLET), "f")) for k in range(9)]
        for field, moved in zip(particles, flow(gp.ScalarField(solid), relaxation, *particles), strict=True):
            field.next = moved
        first, *others = (b * f for f, (_, b) in zip(particles, VELOCITIES, strict=True) if b)
        along = sum(others, first)
        graph.probe(along, "along")
        graph.probe(abs(along).max(), "fastest")
    return graph


def main(argv=None, comm=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=256, help="the channel's width in points (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=768, help="its length (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="2 or more (default: %(default)s)")
    common.with_ranks(parser)
    args = parser.parse_args(argv)
    comm = common.ranks() if comm is None else comm
    device = common.device_of(comm.Get_rank(), args.device)
    graph = channel(args.rows, args.columns, device)
    domain = Domain(comm, graph, axes=(1,), every=args.every or "auto")
    right = common.same_on_ranks(domain, graph, "along", args.steps)
    fastest = domain.gather("fastest")
    if fastest is not None:
        print(f"the fastest flow: {float(fastest) / INLET:.2f} times that of the inlet")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
