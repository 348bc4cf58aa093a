"""Three operators of your own and some algebra of whole fields become one kernel.

A photograph is graded: a gamma operator, a colour matrix, a tone curve, then exposure and vignette by arithmetic on
fields. gpuop fuses all of it into one kernel that reads each pixel once and writes it once. The same graph with
`optimize=False` shows what the kernels cost when each of them goes through memory.

    python examples/demo.py [PICTURE] [--output out/demo.png] [--device opencl:0]
"""

import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *

WARM = ((1.05, 0.00, 0.00), (0.02, 0.95, 0.00), (0.00, 0.10, 0.72))  # rows: what red, green and blue are made of


@gp.operator
def gamma(image, exponent):
    return _pow(_readTensor(image), exponent)


@gp.operator
def colour_matrix(image, matrix):
    rgb = _readTensor(image).xyz
    return _vector(*(_dot(rgb, _float3(*row)) for row in matrix))


@gp.operator
def tone_curve(image, strength):
    x = _clamp(_readTensor(image), 0.0, 1.0)
    return _mix(x, x * x * (3 - 2 * x), strength)  # a soft S: darker shadows, brighter lights


@gp.operator(outputs=lambda image: gp.FieldType(image.field_shape, 4, "unorm8"))
def as_colour(image):
    rgb = _readTensor(image)
    return _float4(rgb.x, rgb.y, rgb.z, 1.0)  # unorm8 clamps and rounds


def vignette(row, column, rows, columns):
    """Darkens the corners; a function of NumPy arrays, for `gp.fromfunction`."""
    y, x = (2 * row + 1) / rows - 1, (2 * column + 1) / columns - 1
    return 1 - 0.7 * ((x * x + y * y) / 2) ** 1.5


def grade(image, exposure, device=None, optimize=True):
    """The whole job as a graph with one probe, "graded"."""
    rows, columns = image.shape[:2]
    with gp.ComputeGraph(device, optimize) as graph:
        photo = gp.ColorField(image)  # bytes in memory, 0…1 in kernels
        toned = tone_curve(colour_matrix(gamma(photo, 1.15), WARM), 0.5)
        shade = gp.fromfunction(
            lambda r, c: vignette(r, c, rows, columns), gp.FieldType(image.shape[:2], (), "float32")
        )
        graph.probe(as_colour(toned * shade * exposure), "graded")
    return graph


def timed(image, exposure, device, optimize):
    """A graph of it, its picture, and the time that took."""
    start = time.perf_counter()
    graph = grade(image, exposure, device, optimize)
    return graph, graph.read("graded"), time.perf_counter() - start


def main(argv=None):
    args = common.parser(__doc__, "astronaut", "out/demo.png").parse_args(argv)
    image = common.load(args)
    device = common.device(args.device)
    exposure = gp.Parameter(1.05)  # `exposure.set(1.3)` takes effect at the next step, without recompiling

    graph, graded, first = timed(image, exposure, device, optimize=True)
    unfused, same, unfused_first = timed(image, exposure, device, optimize=False)
    step, unfused_step = common.step_times(graph, unfused, at_least=1)

    common.explain(graph)
    points, width = image.shape[0] * image.shape[1], 14
    print(f"\n{'':{width}} kernels   first result   their time on the device")
    for label, one, begun, seconds in (
        ("fused", graph, first, step),
        ("optimize=False", unfused, unfused_first, unfused_step),
    ):
        print(f"{label:{width}} {one.kernel_count:7}   {begun:10.2f} s   {common.speed(seconds, points)}")
    equal = "bit-identical" if np.array_equal(graded, same) else "NOT identical"
    print(f"fusing makes it {unfused_step / step:.1f} times as fast; the pictures are {equal}")
    common.save(args.output, common.sheet({"before": image, "after": graded}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
