"""Conway's Game of Life on a torus: a state that feeds itself, `cells.next = life(cells)`, and wrap-around borders.

It starts from a photograph, or with --soup from random cells. A second state remembers where life was, and fades: both
states of a step are computed from the values before it.

    python examples/game_of_life.py [PICTURE | --soup SEED] [--generations 400] [--output out/game_of_life.png]
"""

import sys
import time

import common
import numpy as np
from unsharp import gaussian

import gpuop as gp
from gpuop.dsl import *


@gp.operator
def life(cells):
    """A cell lives on with 2 or 3 neighbours, and is born with 3. Cells are uint8: 0 or 1."""
    neighbours = _intVar()
    for r in (-1, 0, 1):
        for c in (-1, 0, 1):
            if (r, c) != (0, 0):  # Python's loop: it writes eight reads
                neighbours += _readTensor(cells, _row + r, _column + c, border="wrap")
    alive = (neighbours == 3) | ((neighbours == 2) & (_readTensor(cells) == 1))
    return _convert_uchar(alive)


def game(start, device=None):
    """A graph with the states "cells" and "trace" as probes."""
    with gp.ComputeGraph(device) as graph:
        cells = gp.ScalarField(start)
        trace = gp.ScalarField(np.float32(start))
        cells.next = life(cells)
        trace.next = np.maximum(np.float32(0.97) * trace, cells)
        graph.probe(cells, "cells")
        graph.probe(trace, "trace")
    return graph


def from_picture(image):
    """Cells are alive where the picture is darker than its surroundings."""
    light = gp.ScalarField(common.grey(image))
    return (light < gaussian(light, 4) - 0.01).numpy().astype(np.uint8)  # eager: computed when the array is asked for


def painted(cells, trace):
    """Living cells are white, and leave a trace from yellow to dark blue."""
    stops = np.array([(0.02, 0.02, 0.08), (0.1, 0.15, 0.4), (0.7, 0.15, 0.3), (1.0, 0.8, 0.2)])
    where = np.linspace(0, 1, len(stops))
    fading = np.stack([np.interp(trace, where, channel) for channel in stops.T], axis=-1)
    return common.to_bytes(np.where(cells[..., None] == 1, 1.0, fading))


def main(argv=None):
    parser = common.parser(__doc__, "astronaut", "out/game_of_life.png")
    parser.add_argument("--soup", type=int, metavar="SEED", help="start from random cells instead of a picture")
    parser.add_argument("--generations", type=int, default=400, help="how many to compute (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.generations < 1 or (args.soup or 0) < 0:
        raise common.error("--generations must be at least 1, --soup at least 0")
    image = common.load(args) if args.soup is None else None
    device = common.device(args.device)
    start = time.perf_counter()
    if image is None:
        cells = (np.random.default_rng(args.soup).random((512, 512)) < 0.3).astype(np.uint8)
    else:
        with gp.use_device(device):
            cells = from_picture(image)
    graph = game(cells, device)
    captions = {"generation 0": painted(graph.read("cells"), graph.read("trace"))}
    first = time.perf_counter() - start
    shown = sorted({max(1, args.generations // part) for part in (40, 8, 1)})
    for generation in common.progress(args.generations, "generation"):
        graph.step()
        if generation in shown:
            captions[f"generation {generation}"] = painted(graph.read("cells"), graph.read("trace"))
    common.report(graph, first, cells.size, "megacells")
    common.save(args.output, common.sheet(captions, columns=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
