"""Steps of simulations."""

from __future__ import annotations

import numpy as np

import gpuop as gp
from gpuop.dsl import *


@gp.operator
def life(cells):
    """A cell lives on with 2 or 3 neighbours, and is born with 3; of bytes, on a torus."""

    def at(row, column):
        return _convert_int(_readTensor(cells, _row + row, _column + column, border="wrap"))

    neighbours = sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
    return _convert_uchar((neighbours == 3) | ((neighbours == 2) & (at(0, 0) == 1)))


def life_with_trace(cells, trace):
    """A generation, and where life was, which fades; both of what was before."""
    return life(cells), np.maximum(np.float32(0.97) * trace, cells)


@gp.operator
def laplacian(field):
    def at(row, column):
        return _readTensor(field, _row + row, _column + column, border="wrap")

    return at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4 * at(0, 0)


def reaction(u, v):
    uvv = u * v * v
    return u + (0.16 * laplacian(u) - uvv + 0.035 * (1 - u)), v + (0.08 * laplacian(v) + uvv - 0.095 * v)


def gray_scott(u, v):
    return gp.iterate(reaction, (u, v), times=10)


@gp.operator
def neighbours3d(u):
    def at(layer, row, column):
        return _readTensor(u, _layer + layer, _row + row, _column + column)

    return at(-1, 0, 0) + at(1, 0, 0) + at(0, -1, 0) + at(0, 1, 0) + at(0, 0, -1) + at(0, 0, 1)


def heat(u):
    return u + 0.1 * (neighbours3d(u) - 6 * u)


def heat_twice(u):
    return heat(heat(u))


def heat_ten_times(u):
    return gp.iterate(heat, u, times=10)
