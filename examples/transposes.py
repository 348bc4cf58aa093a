"""Transposes by hand: katsdpsigproc's worked example, whose loads and stores compute, and KernelAbstractions' two.

katsdpsigproc generates a struct of values, one of coordinates, and the loops of a load and a store that each have a body of the
user's. Here `_tile` is the load, what an operator before it computes is its body, and the store's is a function. `f.T` is
written in one word, and goes through tiles that suit the device by itself.

    python examples/transposes.py [--rows 3072] [--columns 8320] [--device opencl:0]
"""

import argparse
import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *


def turned_type(f, *_):
    return f.type.replace(field_shape=f.field_shape[::-1])


@gp.operator(outputs=turned_type)
def transposed(f, store=lambda x: x, block=16, vtx=2, vty=2):
    """A group of block × block threads turns a tile of block · vty rows and block · vtx columns, several values for each thread."""
    rows, columns = block * vty, block * vtx
    _localThreads(block, block, groups=(-(-f.field_shape[0] // rows), -(-f.field_shape[1] // columns)))
    t = _tile(f, rows, columns)
    with _for(vtx, unroll=True) as i, _for(vty, unroll=True) as k:
        c, r = i * block + _localRow, k * block + _localColumn
        _writeTensor(_out0, store(t[r, c]), _groupColumn * columns + c, _groupRow * rows + r)


@gp.operator(outputs=turned_type)
def fusible(f, block=16):
    """A thread for each point of the result: what comes next is computed by the same thread too."""
    _localThreads(block, block)
    t = _tile(f, block, block, at=(_groupColumn * block, _groupRow * block))
    return t[_localColumn, _localRow]


@gp.operator(outputs=turned_type)
def naive(f):
    """KernelAbstractions' first one: neighbours read what lies far apart, unless gpuop finds a schedule."""
    return _readTensor(f, _column, _row)


@gp.operator(outputs=turned_type)
def coalesced(f, tile=32, rows=8):
    """Its second one, with the tile by hand: rows are one longer than they need, and each thread has tile / rows values."""
    _localThreads(rows, tile, groups=(-(-f.field_shape[0] // tile), -(-f.field_shape[1] // tile)))
    values = _local(_tensorArray(f, tile, tile + 1))
    with _for(0, tile, rows, unroll=True) as k:
        at = _groupRow * tile + _localRow + k, _groupColumn * tile + _localColumn
        values[_localRow + k, _localColumn] = _readTensor(f, *at)
    _syncThreadsLocal()
    with _for(0, tile, rows, unroll=True) as k:
        at = _groupColumn * tile + _localRow + k, _groupRow * tile + _localColumn
        _writeTensor(_out0, values[_localColumn, _localRow + k], *at)


@gp.operator
def offset(f):
    return _readTensor(f) * 2 + 1


def halved(x):
    return x / 2


KINDS = {
    "by hand, in a block of several values each": lambda f: transposed(offset(f), halved),
    "by hand, a thread for each value": lambda f: fusible(offset(f)) / 2,
    "naive": lambda f: naive(offset(f)) / 2,
    "coalesced": lambda f: coalesced(offset(f)) / 2,
    "in one word": lambda f: offset(f).T / 2,
}


def graphs(values, device=None):
    """A graph for each kind of transpose, with a computation on both sides and one probe, "turned"."""
    made = {}
    for kind, build in KINDS.items():
        with gp.ComputeGraph(device) as made[kind]:
            made[kind].probe(build(gp.ScalarField(values)), "turned")
    return made


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=3072, help="of the field (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=8320, help="of the field (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    values = np.random.default_rng(0).integers(-1000, 1000, (args.rows, args.columns)).astype(np.float32)
    expected = (values * 2 + 1).T / 2
    wrong = 0
    for kind, graph in graphs(values, common.device(args.device)).items():
        start = time.perf_counter()
        right = np.array_equal(graph.read("turned"), expected)
        print(f"{kind}: {'right' if right else 'wrong'}")
        common.report(graph, time.perf_counter() - start, values.size)
        wrong += not right
    return wrong


if __name__ == "__main__":
    sys.exit(main())
