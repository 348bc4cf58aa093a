"""Unsharp masking: a Gaussian blur written as two stencils, then sharpening as algebra of whole fields.

The weights are computed in Python, and a Python loop over them writes the kernel's sum: they are constants of the
compiled code. What the stencil reads outside the picture is the border rule's choice. The sharpening is fused into the
second stencil; the first one cannot be, because the second needs its neighbours' results (explain() says so).

    python examples/unsharp.py [PICTURE] [--sigma 3] [--amount 1.5] [--border symmetric] [--output out/unsharp.png]
"""

import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *

BORDERS = ("clamp", "zero", "wrap", "reflect", "symmetric")


def gaussian_weights(sigma):
    """Of a Gaussian cut at 4 sigma; they sum to 1."""
    at = np.arange(-int(4 * sigma + 0.5), int(4 * sigma + 0.5) + 1)
    weights = np.exp(-0.5 * (at / sigma) ** 2)
    return tuple((weights / weights.sum()).tolist())


@gp.operator
def blur_rows(field, weights, border):
    """Along each row."""
    first = _column - len(weights) // 2
    return sum(w * _readTensor(field, _row, first + k, border=border) for k, w in enumerate(weights))


@gp.operator
def blur_columns(field, weights, border):
    """Along each column."""
    first = _row - len(weights) // 2
    return sum(w * _readTensor(field, first + k, _column, border=border) for k, w in enumerate(weights))


def gaussian(field, sigma, border="symmetric"):
    """The field blurred; all of its channels."""
    weights = gaussian_weights(sigma)
    return blur_columns(blur_rows(field, weights, border), weights, border)


def sharpen(image, sigma, amount, border="symmetric", device=None):
    """A graph with two probes, "blurred" and "sharp", of a picture's floats in 0…1."""
    with gp.ComputeGraph(device) as graph:
        picture = gp.VectorField(image)
        blurred = gaussian(picture, sigma, border)
        graph.probe(blurred, "blurred")
        graph.probe(np.clip(picture + amount * (picture - blurred), 0, 1), "sharp")
    return graph


def main(argv=None):
    parser = common.parser(__doc__, "chelsea", "out/unsharp.png")
    parser.add_argument("--sigma", type=float, default=3.0, help="of the blur, in pixels (default: %(default)s)")
    parser.add_argument("--amount", type=float, default=1.5, help="of sharpening (default: %(default)s)")
    parser.add_argument("--border", choices=BORDERS, default="symmetric", help="what lies outside the picture")
    args = parser.parse_args(argv)
    if not 0 < args.sigma <= 50:
        raise common.error(f"--sigma is {args.sigma}; it must be above 0, and at most 50")
    image = common.load(args)
    device = common.device(args.device)

    start = time.perf_counter()
    graph = sharpen(np.float32(image) / 255, args.sigma, args.amount, args.border, device)
    blurred, sharp = graph.read("blurred"), graph.read("sharp")
    common.report(graph, time.perf_counter() - start, image.shape[0] * image.shape[1])
    captions = {"picture": image, f"blurred, sigma {args.sigma:g}": blurred, f"sharpened by {args.amount:g}": sharp}
    common.save(args.output, common.sheet(captions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
