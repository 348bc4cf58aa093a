"""Moving objects of a camera and their directions: frames come from a sensor, the film goes out through an actuator.

A graph takes a frame at each step, from a video, a folder of pictures, or by default from a window that wanders over a
photograph like a camera held by hand. It finds the motion of every point from the slopes of the picture and its change
(Lucas and Kanade: least squares over a neighbourhood), and what is unlike a background that learns. The camera works a
frame ahead, in a thread; `graph.run()` steps by itself until the camera has no more. Colours of motion are directions.

    python examples/stream.py [PICTURE] [--video FILE | --folder DIR] [--frames 150] [--device opencl:0]
"""

import sys
import time
from itertools import chain, islice
from pathlib import Path

import common
import numpy as np

import gpuop as gp
from gpuop.dsl import *

REACH = 4  # of the neighbourhood that moves as one, in pixels
FLAT = 1e-4  # slopes below its root tell nothing
FASTEST = 3.0  # pixels a frame, in full colour
MARGIN = 16  # of the photograph around the default camera's window


@gp.operator
def luminance(frame):
    r, g, b = _readTensor(frame)
    return 0.2125 * r + 0.7154 * g + 0.0721 * b


@gp.operator
def averaged(field, rows, columns):
    """The mean over so many rows and columns, which are odd."""
    around = ((_row + r - rows // 2, _column + c - columns // 2) for r in range(rows) for c in range(columns))
    return sum(_readTensor(field, *point) for point in around) / (rows * columns)


def blurred(field, reach):
    return averaged(averaged(field, 1, 2 * reach + 1), 2 * reach + 1, 1)


@gp.operator
def products(before, now):
    """Of the slopes x, y and the change t: xx, xy, yy, and -xt, -yt."""

    def between(row, column):
        return (_readTensor(before, _row + row, _column + column) + _readTensor(now, _row + row, _column + column)) / 2

    x, y = (between(0, 1) - between(0, -1)) / 2, (between(1, 0) - between(-1, 0)) / 2
    t = _readTensor(now) - _readTensor(before)
    return _vector(x * x, x * y, y * y), _vector(-x * t, -y * t)


@gp.operator
def solved(slopes, changes):
    """The motion (columns, rows) that explains the changes best; none where there are no slopes."""
    xx, xy, yy = _readTensor(slopes)
    xt, yt = _readTensor(changes)
    xx, yy = xx + FLAT, yy + FLAT
    return _vector(yy * xt - xy * yt, xx * yt - xy * xt) / (xx * yy - xy * xy)


@gp.operator
def unlike(frame, background):
    return _clamp(2 * _distance(_readTensor(frame), _readTensor(background)) - 0.25, 0.0, 1.0)


@gp.operator
def coloured(motion):
    x, y = _readTensor(motion)
    angle, speed = _atan2(y, x), _min(_hypot(x, y) / FASTEST, 1.0)
    return _vector(*(speed * (0.5 + 0.5 * _cos(angle - turn)) for turn in (0.0, 2.094, 4.189)))


def strip_type(frame, *_):
    rows, columns = frame.field_shape
    return gp.FieldType((rows, 3 * columns), 3, "uint8")


@gp.operator(outputs=strip_type)
def strip(frame, change, colours):
    """The three side by side, as bytes."""
    columns = frame.field_shape[1]
    colour = _var(_readTensor(frame, _row, _column))
    with _if(_column >= 2 * columns):
        colour @= _readTensor(colours, _row, _column - 2 * columns)
    with _elseif(_column >= columns):
        colour @= _readTensor(change, _row, _column - columns)
    _writeTensor(_out0, 255 * _clamp(colour, 0.0, 1.0) + 0.5)


def watching(kind, camera, sink, device=None):
    """A graph whose sink gets a strip of pictures at each tick; with probes under the names of its variables."""
    with gp.ComputeGraph(device) as graph:
        frame = gp.Sensor(kind, camera, pipelined=True) / 255
        background = gp.VectorField(np.zeros(kind.array_shape, np.float32))
        background.next = 0.95 * background + 0.05 * frame
        now = blurred(luminance(frame), 1)
        before = gp.ScalarField(np.zeros(kind.field_shape, np.float32))
        before.next = now
        slopes, changes = products(before, now)
        motion = solved(blurred(slopes, REACH), blurred(changes, REACH))
        change = unlike(frame, background)
        colours = coloured(motion)
        for field in (frame, background, change, motion, colours):
            graph.probe(field)
        gp.Actuator(strip(frame, change, colours), sink, pipelined=True)
    return graph


def wandering(photo):
    """An endless camera: a window that moves over the photograph, by 2 pixels a frame at most."""
    rows, columns = (n - 2 * MARGIN for n in photo.shape[:2])
    for t in range(10**9):
        row, column = (MARGIN + round(MARGIN * f(0.11 * t)) for f in (np.sin, np.cos))
        yield photo[row : row + rows, column : column + columns]


class Film:
    """Gets the strips; keeps every second one, and shows on a terminal how far it is."""

    def __init__(self, frames):
        self.count = common.progress(frames, "frame")
        self.kept = []

    def __call__(self, strip):
        if next(self.count, 0) % 2 == 0:
            step = max(1, strip.shape[0] // 100)
            self.kept.append(strip[::step, ::step])


def camera_of(args):
    """The frames that the arguments ask for, and where they come from."""
    if args.video:
        return common.frames_of_video(args.video), args.video
    if args.folder:
        return common.frames_of_folder(args.folder), args.folder
    photo = common.load(args)
    if min(photo.shape[:2]) < 2 * MARGIN + 32:
        least = 2 * MARGIN + 32
        raise common.error(
            f"the picture is {photo.shape[1]}×{photo.shape[0]} pixels; this example needs {least}×{least}"
        )
    return wandering(photo), "the picture"


def main(argv=None):
    parser = common.parser(__doc__, "chelsea", "out/stream.png")
    parser.add_argument("--video", help="a video or an animation instead of the picture")
    parser.add_argument("--folder", help="a folder of pictures of one size instead of the picture")
    parser.add_argument("--frames", type=int, default=150, help="frames to take at most (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.frames < 2:
        raise common.error("--frames must be at least 2")
    camera, source = camera_of(args)
    camera = islice(camera, args.frames)
    shown = next(camera, None)
    if shown is None:
        raise common.error(f"there are no pictures in {source}")
    device, film, start = common.device(args.device), Film(args.frames), time.perf_counter()
    graph = watching(gp.FieldType(shown.shape[:2], 3, "uint8"), chain([shown], camera), film, device)
    graph.reset()
    graph.synchronize()
    first, start = time.perf_counter() - start, time.perf_counter()
    try:
        graph.run()
        graph.wait()
    except gp.SemanticError as wrong:  # a picture of another size
        raise common.error(wrong.message) from wrong
    seconds = time.perf_counter() - start
    common.explain(graph)
    print(f"first result after {first:.2f} s (recording, planning, compiling, running)")
    print(f"{graph.tick} frames in {seconds:.2f} s, {graph.tick / seconds:.3g} frames/s from the camera to the film")
    panels = {f"{name} {graph.tick}": graph.read(name) for name in ("frame", "background", "change", "colours")}
    common.save(str(Path(args.output).with_suffix(".gif")), np.stack(film.kept), ".gif", duration=80, loop=0)
    common.save(args.output, common.sheet(panels))
    return 0


if __name__ == "__main__":
    sys.exit(main())
