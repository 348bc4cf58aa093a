"""Moving objects of a video: a background that learns, `background.next = 0.95 * background + 0.05 * frame`.

The video is made on the device: an operator crops a photograph at an offset that shakes with the frame number, like a
camera on a pole, and a smaller picture wanders across. The frame number is a state too, `t.next = t + 1`, a 0D field.
The next frame, the learning and the difference are one kernel (counting frames is another), and no frame is copied.

    python examples/background_subtraction.py [PICTURE] [--steps 150] [--gif out/motion.gif] [--device opencl:0]
"""

import sys
import time

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *

MARGIN = 4  # of the photograph around the crop, in pixels


def crop_type(photo, *_):
    rows, columns = photo.field_shape
    return photo.type.replace(field_shape=(rows - 2 * MARGIN, columns - 2 * MARGIN))


@gp.operator(outputs=crop_type)
def camera(photo, visitor, t):
    """The photograph as a shaking camera sees it at time t, with the visitor, cut out as a disc, in front."""
    time = _convert_float(_readTensor(t))
    shake_row, shake_column = _rint(1.4 * _sin(2.1 * time)), _rint(1.4 * _cos(1.7 * time))
    row, column = MARGIN + _row + _convert_int(shake_row), MARGIN + _column + _convert_int(shake_column)
    colour = _var(_readTensor(photo, row, column))

    size = visitor.field_shape[0]
    centre_row = (0.5 + 0.3 * _sin(0.045 * time)) * _rows
    centre_column = (0.5 - 0.4 * _cos(0.03 * time)) * _columns
    r, c = _row - centre_row, _column - centre_column
    with _if(_hypot(r, c) < size / 2 - 1):
        colour @= _readTensor(visitor, _convert_int(r + size / 2), _convert_int(c + size / 2))
    return colour


@gp.operator
def difference(frame, background):
    """The distance of a pixel from the background; small differences are noise."""
    return _clamp(2 * _distance(_readTensor(frame), _readTensor(background)) - 0.25, 0.0, 1.0)


def subtraction(photo, visitor, device=None):
    """A graph with the probes "frame", "background" and "motion". Pictures are floats in 0…1."""
    with gp.ComputeGraph(device) as graph:
        t = gp.ScalarField(np.int32(0))
        t.next = t + 1
        frame = camera(gp.VectorField(photo), gp.VectorField(visitor), t)
        background = gp.VectorField(np.zeros(frame.type.array_shape, np.float32))
        background.next = 0.95 * background + 0.05 * frame
        graph.probe(frame, "frame")
        graph.probe(background, "background")
        graph.probe(difference(frame, background), "motion")
    return graph


def cat(size):
    """A square picture of a face, for the visitor."""
    from skimage.data import chelsea
    from skimage.transform import resize

    return np.asarray(resize(chelsea()[20:240, 120:340], (size, size), anti_aliasing=True), np.float32)


def main(argv=None):
    parser = common.parser(__doc__, "rocket", "out/background_subtraction.png")
    parser.add_argument("--steps", type=int, default=150, help="frames to play (default: %(default)s)")
    parser.add_argument("--gif", help="also write every third frame to this animated GIF")
    args = parser.parse_args(argv)
    if args.steps < 1:
        raise common.error("--steps must be at least 1")
    image = common.load(args)
    rows, columns = image.shape[:2]
    if min(rows, columns) < 32:
        raise common.error(f"the picture is {columns}×{rows} pixels; this example needs 32×32 at least")
    device = common.device(args.device)

    start = time.perf_counter()
    graph = subtraction(np.float32(image) / 255, cat(min(rows, columns) // 4), device)
    graph.read("motion")
    first = time.perf_counter() - start
    film, shown = [], ("frame", "background", "motion")
    for n in common.progress(args.steps, "frame"):
        graph.step()
        if args.gif and n % 3 == 0:
            film.append(np.hstack([common.as_rgb(graph.read(name))[::3, ::3] for name in shown]))
    panels = {f"{name} {graph.tick}": graph.read(name) for name in shown}
    common.report(graph, first, rows * columns)
    common.save(args.output, common.sheet(panels))
    if film:
        common.save(args.gif, np.stack(film), ".gif", duration=100, loop=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
