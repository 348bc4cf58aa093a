"""The filters of a convolution in another order: CUCL's `xpose_filts`, a re-blocking between dimensions with and without padding.

From `out_chan:in_chan:y:x` they go to `out_chan_blk:in_chan:y:x:out_chan_reg:out_chan_tile`: a block has 8 × 12 channels, 8 of each
of its 12 threads, and threads that are neighbours read neighbours. CUCL writes the arithmetic of such indices by templates; here
`_unravel` and `_ravel` record it, and what ranges show to be in vain is not computed.

    python examples/xpose_filts.py [--channels 100] [--device opencl:0]
"""

import argparse
import math
import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *

TILE, REG = 12, 8  # threads of a block, and channels of a thread


def blocks(dims):
    """The dimensions after re-blocking: channels are rounded up to whole blocks."""
    out_chan, *others = dims
    return (-(-out_chan // (TILE * REG)), *others, REG, TILE)


def blocked_type(filters, dims):
    return gp.FieldType(math.prod(blocks(dims)), dtype=filters.dtype)


@gp.operator(outputs=blocked_type)
def xpose_filts(filters, dims):
    """A thread for each filter value of the result: what lies beyond the last channel is 0, and any other operator fuses."""
    block, in_chan, y, x, reg, tile = _unravel(_index(), blocks(dims))
    out_chan = _ravel((block, tile, reg), (blocks(dims)[0], TILE, REG))
    return _readTensor(filters, _ravel((out_chan, in_chan, y, x), dims), border="zero")


@gp.operator(outputs=blocked_type, default=0)
def xpose_filts_of_cucl(filters, dims):
    """As in CUCL's guide: a thread for each value that there is, which writes it where it belongs."""
    _globalThreads(filters)
    out_chan, in_chan, y, x = _unravel(_index(), dims)
    block, tile, reg = _unravel(out_chan, (blocks(dims)[0], TILE, REG))
    _writeTensor(_out0, _readTensor(filters), _ravel((block, in_chan, y, x, reg, tile), blocks(dims)))


def in_numpy(filters):
    """The same by padding, reshaping and transposing."""
    out_chan, in_chan, rows, columns = filters.shape
    count = blocks(filters.shape)[0]
    padded = np.zeros((count * TILE * REG, in_chan, rows, columns), filters.dtype)
    padded[:out_chan] = filters
    return padded.reshape(count, TILE, REG, in_chan, rows, columns).transpose(0, 3, 4, 5, 2, 1)


def reblock(filters, device=None, operator=xpose_filts):
    """A graph with one probe, "blocked", of filters in CUCL's order."""
    with gp.ComputeGraph(device) as graph:
        graph.probe(operator(gp.ScalarField(filters.ravel()), filters.shape), "blocked")
    return graph


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--channels", type=int, default=100, help="of the result (default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    filters = np.random.default_rng(0).standard_normal((args.channels, 3, 11, 11)).astype(np.float32)
    expected = in_numpy(filters)
    start = time.perf_counter()
    graph = reblock(filters, common.device(args.device))
    right = np.array_equal(graph.read("blocked").reshape(expected.shape), expected)
    common.report(graph, time.perf_counter() - start, expected.size)
    print(
        f"{'×'.join(map(str, filters.shape))} in blocks of {'×'.join(map(str, expected.shape))}:",
        "right" if right else "wrong",
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
