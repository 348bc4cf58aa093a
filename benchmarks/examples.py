"""Each example as its plan is, beside the same with `optimize=False`, where every operator is a kernel of its own.

    python benchmarks/examples.py [--device NAME] [--rounds 15] [--only game_of_life,harris]

The main job of each example that runs on one device, of its own default size: steps that compute everything, waited for one by
one, of both graphs in turns in one process. A round is a pair of short runs, so that what else a machine does falls on both. The
ratios of times and of the processors' times are the medians of those of the pairs, ± their middle half. One is faster where this
ratio and that of the shortest times say so, and the first by more than its middle half and 0.05; all else is a tie. On CPUs that is
decided by the time of all processors together, which hardly depends on what else runs, else by the time that passes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from turns import in_turns, middle_half, step_of

import gpuop as gp

ROUND = 0.02  # seconds that a pair of runs takes at least
NEAR = 0.05  # of a ratio: what is nearer is a tie
LEFT_OUT = {
    "cluster": "it starts processes, which run the examples `volume`, `image_batch` and `heat_ranks`",
}
Job = Callable[[Any, str], gp.ComputeGraph]  # of an example's module and a device


def photo(name: str) -> Any:
    return getattr(import_module("skimage.data"), name)()


def random(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape, np.float32)


def grey(picture: Any) -> Any:
    return import_module("common").grey(import_module("common").as_rgb(picture))


def recorded(device: str, function: Callable[..., Any], *arguments: Any) -> gp.ComputeGraph:
    """A graph of what a function of arrays or fields makes, such as that of a pipeline."""
    with gp.ComputeGraph(device) as graph:
        results = function(*arguments)
        for number, result in enumerate(results if isinstance(results, tuple) else (results,)):
            graph.probe(result, f"result{number}")
    return graph


def background(module: Any, device: str) -> gp.ComputeGraph:
    rocket = np.float32(photo("rocket")) / 255
    graph: gp.ComputeGraph = module.subtraction(rocket, module.cat(min(rocket.shape[:2]) // 4), device)
    return graph


def game(module: Any, device: str) -> gp.ComputeGraph:
    graph: gp.ComputeGraph = module.game(module.from_picture(photo("astronaut")), device)
    return graph


def watching(module: Any, device: str) -> gp.ComputeGraph:
    cat = photo("chelsea")
    first, camera = next(module.wandering(cat)), module.wandering(cat)
    kind = gp.FieldType(first.shape[:2], 3, "uint8")
    graph: gp.ComputeGraph = module.watching(kind, lambda: next(camera), lambda strip: None, device)
    return graph


def block(module: Any, device: str) -> gp.ComputeGraph:
    start = np.zeros((128,) * 3, np.float32)
    start[42:, 64:, :] = 100
    graph: gp.ComputeGraph = module.heat(start, device)
    return graph


def images(module: Any, device: str) -> gp.ComputeGraph:
    """An image of the batch; a block of them is as many of these."""
    return recorded(device, module.spots.function, np.uint8(200 * random(64, 64)), 60 + random(64, 64))


def layer(module: Any, device: str) -> gp.ComputeGraph:
    return recorded(device, module.layer.function, random(4, 3, 64, 64), random(16, 3, 5, 5), random(16))


def slab(module: Any, device: str) -> gp.ComputeGraph:
    return recorded(device, module.bright.function, np.uint16(65535 * random(64, 128, 128)))


def window(module: Any, device: str) -> gp.ComputeGraph:
    return recorded(device, module.surfaces.function, np.uint16(65535 * random(40, 182, 182)))


def turned(kind: str) -> Job:
    def job(module: Any, device: str) -> gp.ComputeGraph:
        with mock.patch.object(module, "KINDS", {kind: module.KINDS[kind]}):
            graph: gp.ComputeGraph = module.graphs(random(3072, 8320), device)[kind]
        return graph

    return job


def axpy(module: Any, device: str) -> gp.ComputeGraph:
    x, y = random(2, 1_000_003)
    return recorded(device, lambda: module.axpy(2, gp.ScalarField(x), gp.ScalarField(y)))


JOBS: dict[str, Job] = {
    "background_subtraction": background,
    "cielab": lambda module, device: module.convert(photo("astronaut"), device),
    "convolution": layer,
    "demo": lambda module, device: module.grade(photo("astronaut"), gp.Parameter(1.05), device),
    "equalize": lambda module, device: module.equalize(np.uint8(255 * grey(photo("astronaut")) / 2), device),
    "flow_ranks": lambda module, device: module.channel(256, 768, device),
    "game_of_life": game,
    "group_sums": lambda module, device: module.summed(np.int32(2000 * random(1_000_000)), 256, device),
    "harris": lambda module, device: module.harris(grey(photo("camera")), device=device),
    "heat_ranks": block,
    "image_batch": images,
    "label_volume": slab,
    "libraries": lambda module, device: module.analyse(random(1024, 1024), 3.0, device),
    "mul2": lambda module, device: module.doubling(np.zeros((1024, 1024), np.float32), device),
    "parameter_table": axpy,
    "stream": watching,
    "transposes: naive": turned("naive"),
    "transposes: coalesced": turned("coalesced"),
    "transposes: in one word": turned("in one word"),
    "transposes: by hand, several values": turned("by hand, in a block of several values each"),
    "transposes: by hand, one value": turned("by hand, a thread for each value"),
    "tuned_transpose": lambda module, device: recorded(
        device, lambda: module.transposed(gp.ScalarField(random(3072, 8320)))
    ),
    "unsharp": lambda module, device: module.sharpen(np.float32(photo("chelsea")) / 255, 3.0, 1.5, device=device),
    "upside_down": lambda module, device: module.turn(photo("coffee"), device),
    "volume": window,
    "xpose_filts": lambda module, device: module.reblock(random(100, 3, 11, 11) - 0.5, device),
}


@contextmanager
def graphs_made(optimize: bool) -> Iterator[None]:
    """Graphs that examples make inside are fused, or not."""
    made = gp.ComputeGraph
    with mock.patch.object(gp, "ComputeGraph", lambda device=None, *_: made(device, optimize)):
        yield


def graph_of(name: str, device: str, optimize: bool) -> gp.ComputeGraph:
    with graphs_made(optimize):
        return JOBS[name](import_module(name.split(":")[0]), device)


def compared(taken: dict[str, list[float]]) -> tuple[list[str], str]:
    """Cells of both times and of their ratio, and which is faster, of pairs of runs."""
    each = [a / b for a, b in zip(taken["fused"], taken["apart"], strict=True)]
    low, ratio, high = statistics.quantiles(each, n=4, method="inclusive")
    least = min(taken["fused"]) / min(taken["apart"])
    agree = (ratio < 1) == (least < 1) and abs(ratio - 1) > max(high - low, NEAR)
    cells = [f"{ms:.3f} ± {spread:.3f}" for ms, spread in map(middle_half, taken.values())]
    return [*cells, f"{ratio:.2f} ± {high - low:.2f}"], "tie" if not agree else "faster" if ratio < 1 else "**slower**"


def row(name: str, device: str, rounds: int) -> str:
    """An example's times as a row of the table."""
    fused, apart = graphs = [graph_of(name, device, optimize) for optimize in (True, False)]
    actions = dict(zip(("fused", "apart"), map(step_of, graphs), strict=True))
    once = in_turns(actions, 2)
    runs = max(1, round(ROUND / sum(map(min, once.values()))))
    passed, by_time = compared(in_turns(actions, rounds, runs))
    worked, by_work = compared(in_turns(actions, rounds, runs, clock=time.process_time))
    verdict = by_work if gp.device(device).target.device == "cpu" else by_time
    cells = [name, f"{fused.kernel_count} / {apart.kernel_count}", *passed, *worked, verdict]
    for graph in graphs:
        graph.release()
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as `gpuop devices` names it (default: the first)")
    parser.add_argument("--rounds", type=int, default=15, help="pairs that count, 5 or more")
    parser.add_argument("--only", default="", help="examples whose names begin so, with commas between")
    given = parser.parse_args()
    device = given.device or gp.devices()[0].name
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    print(f"{gp.device(device).description} ({device}); medians of {given.rounds} rounds, ± the middle half\n")
    print("| example | kernels | fused ms | apart ms | ratio | fused CPU ms | apart CPU ms | CPU ratio | fused is |")
    print("| --- " * 9 + "|")
    left_out = dict(LEFT_OUT)
    with gp.use_device(device):
        for name in JOBS:
            if name.startswith(tuple(given.only.split(","))):
                try:
                    print(row(name, device, given.rounds), flush=True)
                except (gp.GpuopError, ImportError) as wrong:
                    left_out[name] = str(wrong).splitlines()[0]
    print("\nLeft out:", "; ".join(f"{name}: {why}" for name, why in left_out.items()))


if __name__ == "__main__":
    main()
