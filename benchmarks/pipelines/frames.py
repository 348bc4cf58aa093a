"""Frames as users have them: the whole call of a function of arrays, small and large, beside other libraries, in turns.

    python -m benchmarks.pipelines.frames [--device NAME] [--only chain8,gauss2] [--sizes 64x64,1080x1920] [--rounds 7]

Photos lie as files are read: rows, columns, 3. gpuop is called with arrays of NumPy on CPUs, of CuPy and of PyTorch on GPUs; peers
with arrays of their own. Sizes are called one after another in one process, whose compile cache is empty. The columns:

- a call: µs between calls that follow one another without a wait; the last one is waited for.
- latency: µs of a call that is waited for.
- first: ms from the function to the first result of this size, so from the second row of a pipeline on, of a new size.

Medians of the rounds, with the middle half behind ±. The results of all are compared with those of NumPy.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.runtime.devices import current

from . import peers
from .catalogue import CATALOGUE
from .contestant import Contestant, Maker
from .measure import TooLong, message_of, release_unused, summary, within
from .pipeline import Array, Pipeline, as_tuple

RESULTS = Path(__file__).parent.parent / "results"
SIZES = {"64×64": (64, 64), "480p": (480, 640), "1080p": (1080, 1920), "4K": (2160, 3840)}
NAMES = ("chain8", "gauss2", "photo_grade", "photo_luma_blur_threshold", "photo_unsharp_bytes")
TURN = 0.04  # seconds of calls in a turn
LATENCIES = 15  # calls in a turn that are waited for each
PATIENCE = 120.0  # seconds, the most for a first call
OWN = "gpuop"
Row = dict[str, dict[str, Any]]


def gpuop_maker(pipeline: Pipeline, library: str, writes: bool) -> Maker:
    """A pipeline of gpuop, called with arrays of a library; `writes`: with the result of its first call as `out=`."""
    called = gp.pipeline(pipeline.make if pipeline.photo else lambda array: pipeline.make(gp.ScalarField(array)))

    def make(arrays: tuple[Array, ...]) -> Contestant:
        inputs, wait, host = arrays_of(library, arrays)
        last = [called(*inputs)]
        wait()
        options = {"out": last[0]} if writes else {}

        def run(times: int) -> None:
            for _ in range(times):
                last[0] = called(*inputs, **options)
            wait()

        return Contestant(run, lambda: tuple(map(host, as_tuple(last[0]))))

    return make


def arrays_of(
    library: str, arrays: tuple[Array, ...]
) -> tuple[tuple[Any, ...], Callable[[], Any], Callable[[Any], Array]]:
    """Arrays of a library, what waits for its device, and what brings its arrays to the host."""
    if library == "CuPy":
        cupy = import_module("cupy")
        return tuple(map(cupy.asarray, arrays)), cupy.cuda.Device().synchronize, cupy.asnumpy
    if library == "PyTorch":
        torch = import_module("torch")
        return tuple(torch.from_numpy(a).cuda() for a in arrays), torch.cuda.synchronize, lambda a: a.cpu().numpy()
    return arrays, lambda: None, np.asarray


def makers_of(pipeline: Pipeline, backend: Any) -> dict[str, Maker]:
    """gpuop with each library of arrays, and peers; kernels by hand and SciPy are measured by `run`."""
    if backend.target.device == "cpu":
        own = {"": "NumPy"}
    else:
        own = {f", {name}": name for name in ("CuPy", "PyTorch") if find_spec({"PyTorch": "torch"}.get(name, "cupy"))}
    makers = {
        f"{OWN}{label}{', out=' if writes else ''}": gpuop_maker(pipeline, library, writes)
        for label, library in own.items()
        for writes in (False, True)
    }
    others = peers.entries(pipeline, backend)[0]
    if "torch.compile" in others:
        others |= import_module(".peers_arrays", __package__).torch_entries(pipeline, ("default", "reduce-overhead"))
    return makers | {name: maker for name, maker in others.items() if not name.startswith(("by hand", "SciPy"))}


def admitted(
    pipeline: Pipeline, makers: Mapping[str, Maker], arrays: tuple[Array, ...], left_out: dict[str, str]
) -> Iterator[tuple[str, Contestant, float]]:
    """Contestants that compute what NumPy does, with the milliseconds to the first result."""
    expected = as_tuple(pipeline.expected(*arrays))
    for name, maker in makers.items():
        if name in left_out:
            continue
        try:
            with within(PATIENCE):
                began = time.perf_counter()
                contestant = maker(arrays)
                first = 1e3 * (time.perf_counter() - began)
            wrong = pipeline.differs(contestant.results(), expected)[0]
        except (Exception, TooLong) as error:  # noqa: BLE001 - whatever a peer raises
            wrong = message_of(error)
        if wrong:
            left_out[name] = wrong
        else:
            yield name, contestant, first


def in_turns(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Microseconds of a call and of one that is waited for, of each contestant in each round."""
    taken: dict[str, dict[str, list[float]]] = {name: {"call": [], "latency": []} for name in contestants}
    times = {}
    for name, contestant in contestants.items():
        contestant.run(3)
        times[name] = max(3, min(1000, int(TURN / seconds(contestant, 1))))
    for turn in range(rounds):
        order = list(contestants)
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            contestant = contestants[name]
            contestant.run(1)
            taken[name]["call"].append(1e6 * seconds(contestant, times[name]) / times[name])
            waited = min(LATENCIES, times[name])
            taken[name]["latency"].append(1e6 * median(seconds(contestant, 1) for _ in range(waited)))
    return taken


def seconds(contestant: Contestant, times: int) -> float:
    began = time.perf_counter()
    contestant.run(times)
    return time.perf_counter() - began


def measured(
    pipeline: Pipeline, sizes: Mapping[str, tuple[int, ...]], rounds: int, backend: Any
) -> Iterator[tuple[str, Row]]:
    """A row for each size, smallest first; a contestant that fails at one size is left out of the later ones."""
    makers, left_out = makers_of(pipeline, backend), dict[str, str]()
    for label, shape in sizes.items():
        ready = list(admitted(pipeline, makers, pipeline.inputs(shape), left_out))
        taken = in_turns({name: contestant for name, contestant, _ in ready}, rounds)
        row: Row = {name: {"first": first, **taken[name]} for name, _, first in ready}
        del ready
        release_unused()
        yield label, row
    for name, why in left_out.items():
        print(f"left out of {pipeline.name}: {name}: {why}", flush=True)


# --- the page ---------------------------------------------------------------------------------------------------------


def shown(values: list[float]) -> str:
    figures = summary(values)  # "ms" is the median, here of microseconds
    return f"{figures['ms']:.0f} ± {figures['spread']:.0f}"


def ratio(row: Row, column: str) -> str:
    """The fastest of gpuop over the fastest peer; a difference within half of either spread is a tie."""
    sides = []
    for is_own in (True, False):
        entries = [known[column] for name, known in row.items() if name.startswith(OWN) == is_own]
        if not entries:
            return "–"
        sides.append(min(entries, key=median))
    own, peer = map(summary, sides)
    tie = abs(own["ms"] - peer["ms"]) <= max(own["spread"], peer["spread"]) / 2
    return f"{own['ms'] / peer['ms']:.2f}{' tie' if tie else ''}"


def lines_of(pipeline: Pipeline, label: str, row: Row) -> list[str]:
    lines = [
        f"| {pipeline.title} | {label} | {name} | {shown(known['call'])} | {shown(known['latency'])} | {known['first']:.0f} |"
        for name, known in sorted(row.items(), key=lambda entry: median(entry[1]["call"]))
    ]
    call, latency = (ratio(row, column) for column in ("call", "latency"))
    return [*lines, f"| {pipeline.title} | {label} | **{OWN} over the best peer** | **{call}** | **{latency}** | |"]


HEAD = "| pipeline | frame | who | a call µs | latency µs | first ms |\n| --- | --- | --- | --- | --- | --- |"


def shape_of(text: str) -> tuple[int, ...]:
    return SIZES.get(text) or tuple(map(int, text.split("x")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="as `gpuop devices` names it")
    parser.add_argument("--only", default=",".join(NAMES), help="pipelines, with commas between (default: %(default)s)")
    parser.add_argument("--sizes", default=",".join(SIZES), help="such names, or ROWSxCOLUMNS (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="the page (default: benchmarks/results/frames-DEVICE.md)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of peers, and of their compilers
    sizes = {text: shape_of(text) for text in options.sizes.split(",")}
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"GPUOP_CACHE": empty}
        with gp.use_device(options.device or current().name) as backend:
            columns = __doc__.partition("\n\n")[2].partition("\n\n")[2]
            page = [f"# Frames on {backend.description} ({backend.name})", "", columns, HEAD]
            print(HEAD, flush=True)
            for name in options.only.split(","):
                for label, row in measured(CATALOGUE[name], sizes, options.rounds, backend):
                    page += lines_of(CATALOGUE[name], label, row)
                    print("\n".join(lines_of(CATALOGUE[name], label, row)), flush=True)
    path = options.output or RESULTS / f"frames-{backend.name.replace(':', '')}.md"
    path.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
