"""Measure gradients of gpuop's pipelines beside those of JAX and PyTorch, in one process and in turns.

    python -m benchmarks.gradients.run                               every pipeline on the default device
    python -m benchmarks.gradients.run --only harris,heat10 --size 2048 --rounds 7 --device cuda:0

A run is the loss and its gradients by all arrays. Everyone's are compared with those of gpuop's unfused operators. The last columns
are the time of the loss alone, and how many times that the gradient takes.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import gpuop as gp
from benchmarks.pipelines.contestant import Contestant, Maker
from benchmarks.pipelines.gpuop_itself import AS_IT_IS, UNFUSED, entry
from benchmarks.pipelines.measure import Measured, message_of, release_unused
from benchmarks.pipelines.pipeline import Array
from benchmarks.pipelines.report import verdict
from gpuop.runtime.devices import current

from .catalogue import GRADIENTS, Gradient, Trained, loss_of

FORWARD = "gpuop forward"


def jax_entries(gradient: Gradient) -> dict[str, Maker]:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax.numpy

    from benchmarks.pipelines.peers_arrays import Padded

    class Library(Padded):
        def arange(self, a: Any, n: int) -> Any:
            return jax.numpy.arange(n)

    loss = loss_of(getattr(Trained(Library(jax.numpy)), gradient.name))
    compiled = jax.jit(jax.value_and_grad(loss, argnums=tuple(range(gradient.count))))

    def make(arrays: tuple[Array, ...]) -> Contestant:
        inputs, last = tuple(map(jax.device_put, arrays)), list[Any]()

        def run(times: int) -> None:
            for _ in range(times):
                last[:] = [compiled(*inputs)]
            jax.block_until_ready(last)

        run(1)
        return Contestant(run, lambda: (np.asarray(last[0][0]), *map(np.asarray, last[0][1])), allocates=True)

    return {"JAX": make}


def torch_entries(gradient: Gradient) -> dict[str, Maker]:
    import torch

    from benchmarks.pipelines.peers_arrays import Torch

    loss = torch.compile(loss_of(getattr(Trained(Torch()), gradient.name)))
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def make(arrays: tuple[Array, ...]) -> Contestant:
        inputs = [torch.from_numpy(np.array(a)).to(device).requires_grad_() for a in arrays]
        last = list[Any]()

        def run(times: int) -> None:
            for _ in range(times):
                value = loss(*inputs)
                last[:] = [value.detach(), *torch.autograd.grad(value, inputs)]
            if device == "cuda":
                torch.cuda.synchronize()

        run(1)
        return Contestant(run, lambda: tuple(each.cpu().numpy() for each in last), allocates=True)

    return {"torch.compile": make}


PEERS = {"JAX": jax_entries, "torch": torch_entries}


def measured(gradient: Gradient, shape: tuple[int, ...], given: argparse.Namespace, backend: Any) -> dict[str, Any]:
    found = Measured(gradient, shape, given.seconds)
    makers = {UNFUSED: entry(gradient, schedule="plain", optimize=False), AS_IT_IS: entry(gradient)}
    for entries in [PEERS[name] for name in given.peers.split(",") if name]:
        try:
            makers |= entries(gradient)
        except ImportError as missing:
            found.left_out[entries.__name__] = message_of(missing)
    for name, maker in makers.items():
        found.admit(name, maker)
        release_unused()
    found.made.pop(UNFUSED, None)
    found.made[FORWARD] = entry(gradient.forward)(found.arrays)
    result = found.compete(backend, given.rounds)
    release_unused()
    return result


def row(gradient: Gradient, result: dict[str, Any]) -> str:
    known = result["contestants"]
    own, forward = known.get(AS_IT_IS), known[FORWARD]
    peers = {name: known[name]["ms"] for name in ("JAX", "torch.compile") if name in known}
    best = min(peers.values(), default=float("nan"))
    times = [
        f"{p['ms']:.2f} ± {p['spread']:.2f}" if p else "–" for p in (own, known.get("JAX"), known.get("torch.compile"))
    ]
    ms = own["ms"] if own else float("nan")
    kernels = own["kernels"] if own else "–"
    result = {**result, "contestants": {name: k for name, k in known.items() if name != FORWARD}}
    place = verdict(result, "peer") or "–"
    words = (*times, f"{ms / best:.2f}", place, f"{forward['ms']:.2f}", f"{ms / forward['ms']:.2f}", str(kernels))
    return f"| {gradient.title} | {' | '.join(words)} |"


def table(rows: list[tuple[Gradient, dict[str, Any]]]) -> str:
    heads = (
        "pipeline",
        "gpuop ms",
        "JAX",
        "torch.compile",
        "over the best",
        "gpuop has",
        "forward",
        "over it",
        "kernels",
    )
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads), *(row(*each) for each in rows)]
    costs = [
        r["contestants"][AS_IT_IS]["ms"] / r["contestants"][FORWARD]["ms"]
        for _, r in rows
        if AS_IT_IS in r["contestants"]
    ]
    return "\n".join([*lines, f"\nA gradient takes {median(costs):.2f} times its forward (median)."])


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=f"with commas between: {', '.join(GRADIENTS)}")
    parser.add_argument("--device", help="as `gpuop devices` names it")
    parser.add_argument("--size", type=int, help="rows and columns (default: 1024 on CPUs, 4096 on GPUs)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each (default: %(default)s)")
    parser.add_argument("--peers", default=",".join(PEERS), help="with commas between (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=120, help="the most for a pipeline (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="a file for all that was measured, as JSON")
    given = parser.parse_args()
    rows, results = [], {}
    with gp.use_device(given.device or current().name) as backend:
        for name in given.only.split(",") if given.only else GRADIENTS:
            gradient = GRADIENTS[name]
            usual = gradient.shapes[backend.target.device]
            shape = (given.size,) * 2 if given.size and len(usual) == 2 else usual
            result = results[name] = measured(gradient, shape, given, backend)
            rows.append((gradient, result))
            print(
                row(gradient, result),
                *(f"  left out: {n}: {w}" for n, w in result["left_out"].items()),
                sep="\n",
                flush=True,
            )
            if given.output:
                given.output.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
