"""RGB to CIE L*a*b*: the colour conversion of Cog's guide, three Python functions that become one kernel.

`pixelRGBtoXYZ` and `pixelXYZtoCIELAB` are plain Python functions of kernel values: what they record goes where they are
called. A condition on pixels is `with _if(…)`; Python's own `for` and functions write code for the device repeatedly.

    python examples/cielab.py [PICTURE] [--output out/cielab.png] [--device opencl:0]
"""

import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *


def linear(c):
    """sRGB's curve, of one channel."""
    c = _var(c)
    with _if(c > 0.04045):
        c.assign(_pow((c + 0.055) / 1.055, 2.4))
    with _else():
        c.assign(c / 12.92)
    return c


def pixelRGBtoXYZ(pixel):
    """Transform an RGBA pixel, a float4, to a list of X, Y and Z."""
    scaled = _float3(linear(pixel.x), linear(pixel.y), linear(pixel.z)) * 100
    return [
        _dot(scaled, _float3(0.4124, 0.3576, 0.1805)),
        _dot(scaled, _float3(0.2126, 0.7152, 0.0722)),
        _dot(scaled, _float3(0.0193, 0.1192, 0.9505)),
    ]


def lightness(t):
    """The cube root, with a straight piece near 0."""
    t = _var(t)
    with _if(t > 0.008856):
        t.assign(_pow(t, 1 / 3))
    with _else():
        t.assign(7.787 * t + 16 / 116)
    return t


def pixelXYZtoCIELAB(xyz):
    """Transform a list of X, Y and Z to L, a and b, a float3."""
    x, y, z = (lightness(c / white) for c, white in zip(xyz, (95.047, 100.0, 108.883), strict=True))
    return _float3(116 * y - 16, 500 * (x - y), 200 * (y - z))


@gp.operator
def RGBtoCIELAB(image):
    """Convert a ColorField to a VectorField of L, a and b."""
    return pixelXYZtoCIELAB(pixelRGBtoXYZ(_readTensor(image)))


def convert(image, device=None):
    """A graph with one probe, "Lab"."""
    with gp.ComputeGraph(device) as graph:
        graph.probe(RGBtoCIELAB(gp.ColorField(image)), "Lab")
    return graph


def tinted(values, low, high):
    """a or b as a picture: grey is 0, `high` is the colour of the positive values."""
    t = np.clip(values[..., None] / 80, -1, 1)
    return 0.5 + abs(t) * (np.where(t > 0, high, low) - 0.5)


def panels(image, lab):
    """The panels of the picture."""
    L, a, b = np.moveaxis(lab, -1, 0)
    green, red, blue, yellow = (0, 0.7, 0.4), (1, 0, 0.4), (0, 0.3, 1), (1, 0.9, 0)
    return {
        "picture": image,
        "L: lightness": L / 100,
        "a: green to red": tinted(a, green, red),
        "b: blue to yellow": tinted(b, blue, yellow),
    }


def main(argv=None):
    args = common.parser(__doc__, "astronaut", "out/cielab.png").parse_args(argv)
    image = common.load(args)
    device = common.device(args.device)
    start = time.perf_counter()
    graph = convert(image, device)
    lab = graph.read("Lab")
    common.report(graph, time.perf_counter() - start, image.shape[0] * image.shape[1])
    common.save(args.output, common.sheet(panels(image, lab), columns=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
