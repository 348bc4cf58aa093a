"""Harris corners: gradients, their products, a Gaussian window, the response, its local maxima; drawn on the picture.

Stencils gather from neighbours, so each starts a kernel of its own; everything local between them (products, response,
threshold) is fused into their kernels. The host only sorts the maxima that are left and draws the strongest.

    python examples/harris.py [PICTURE] [--corners 150] [--sigma 1.5] [--output out/harris.png] [--device opencl:0]
"""

import sys
import time

import common
import numpy as np
from PIL import Image, ImageDraw
from unsharp import gaussian

import gpuop as gp
from gpuop.dsl import *

K = 0.05  # the less, the more edges count as corners
DISTANCE = 5  # a corner is the strongest point within so many pixels


@gp.operator
def gradient(grey, border):
    """Sobel's derivatives along rows and columns, a vector of two."""

    def at(row, column):
        return _readTensor(grey, _row + row, _column + column, border=border)

    along_rows = sum(w * (at(1, k - 1) - at(-1, k - 1)) for k, w in enumerate((1, 2, 1)))
    along_columns = sum(w * (at(k - 1, 1) - at(k - 1, -1)) for k, w in enumerate((1, 2, 1)))
    return _float2(along_rows, along_columns)


@gp.operator
def products(gradient):
    """The three different elements of the gradient's outer product."""
    r, c = _readTensor(gradient)
    return _float3(r * r, r * c, c * c)


@gp.operator
def response(tensor):
    """Large where both eigenvalues of the structure tensor are."""
    rr, rc, cc = _readTensor(tensor)
    return rr * cc - rc * rc - K * (rr + cc) ** 2


@gp.operator
def local_maxima(field, distance):
    """The field where it is positive and larger than all within `distance`, elsewhere 0; of equals the first stays."""
    own = _readTensor(field)
    highest = _boolVar(True)
    with _for(-distance, distance + 1) as r, _for(-distance, distance + 1) as c:
        other = _readTensor(field, _row + r, _column + c, border="zero")
        earlier = (r < 0) | ((r == 0) & (c < 0))
        with _if((other > own) | ((other == own) & earlier)):
            highest @= False
    return _where(highest & (own > 0), own, 0.0)


def harris(grey, sigma=1.5, distance=DISTANCE, border="symmetric", device=None):
    """A graph with two probes, "response" and "maxima", of a picture's luminance."""
    with gp.ComputeGraph(device) as graph:
        tensor = gaussian(products(gradient(gp.ScalarField(grey), border)), sigma, border)
        strength = response(tensor)
        graph.probe(strength, "response")
        graph.probe(local_maxima(strength, distance), "maxima")
    return graph


def strongest(maxima, count):
    """(row, column) of the largest values, at most `count`."""
    order = np.argsort(maxima, axis=None)[::-1][: min(count, np.count_nonzero(maxima))]
    return np.stack(np.unravel_index(order, maxima.shape), axis=1)


def drawn(image, corners, radius=5):
    """The picture in grey with a ring at each corner."""
    canvas = Image.fromarray(image).convert("L").convert("RGB")
    draw = ImageDraw.Draw(canvas)
    for row, column in corners:
        draw.ellipse((column - radius, row - radius, column + radius, row + radius), outline=(255, 60, 0), width=2)
    return np.asarray(canvas)


def main(argv=None):
    parser = common.parser(__doc__, "camera", "out/harris.png")
    parser.add_argument("--corners", type=int, default=150, help="how many to draw (default: %(default)s)")
    parser.add_argument("--sigma", type=float, default=1.5, help="of the window, in pixels (default: %(default)s)")
    args = parser.parse_args(argv)
    if not (0 < args.sigma <= 50 and args.corners >= 1):
        raise common.error("--sigma must be above 0 and at most 50, --corners at least 1")
    image = common.load(args)
    device = common.device(args.device)

    start = time.perf_counter()
    graph = harris(common.grey(image), args.sigma, device=device)
    maxima, strength = graph.read("maxima"), graph.read("response")
    corners = strongest(maxima, args.corners)
    common.report(graph, time.perf_counter() - start, image.shape[0] * image.shape[1])
    print(f"{np.count_nonzero(maxima)} local maxima, the {len(corners)} strongest are drawn")
    shown = np.cbrt(strength / max(np.abs(strength).max(), 1e-30)) / 2 + 0.5
    captions = {"picture": image, "response: corners bright, edges dark": shown, "corners": drawn(image, corners)}
    common.save(args.output, common.sheet(captions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
