"""Files of states and bundles, changed at random: refused as promised, or as good as the ones that were written.

`benchmarks/fuzz_files.py` does the same with tens of thousands.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.dsl import *
from gpuop.engine.bundles.bundle import save_bundle
from gpuop.fusion.iteration import Iteration, parts
from gpuop.fusion.plan import Plan
from gpuop.ir.values import Leaf
from gpuop.runtime.cuda import nvrtc
from tests.nightly import seeds

from .files import BUNDLES, STATES, mutated

FILES = seeds(0, 160)  # of each format
OPENCL = [d.name for d in gp.devices() if d.name.startswith("opencl") and d.problem is None]
MOST_POINTS = 10**6


# --- states -------------------------------------------------------------------------------------------------------------


def stepping() -> gp.ComputeGraph:
    with gp.ComputeGraph("reference") as graph:
        heat = gp.ScalarField(np.arange(3, dtype=np.float32))
        count = gp.ScalarField(np.int64(0))
        mask = gp.ScalarField(np.array([True, False]))
        heat.next, count.next, mask.next = heat + 1, count + 1, mask
        for state, name in ((heat, "heat"), (count, "count"), (mask, "mask")):
            graph.probe(state, name)
    return graph


def shown(graph: gp.ComputeGraph) -> tuple[Any, ...]:
    return graph.tick, *(graph.read(name).tobytes() for name in ("heat", "count", "mask"))


def load_states(graph: gp.ComputeGraph, path: Path) -> str:
    """The outcome of loading a file; there is no other."""
    before = shown(graph)
    try:
        graph.load(path)
    except gp.SemanticError as error:
        assert shown(graph) == before
        return f"SemanticError: {reason(error)}"
    tick, mask = graph.tick, graph.read("mask")
    assert type(tick) is int and 0 <= tick < 2**63 and set(mask.view("u1")) <= {0, 1}
    graph.step()
    return "loaded"


def reason(error: Exception) -> str:
    """An error without what it is about."""
    first = str(error).partition("\n")[0].partition(".bin ")[2]
    return " ".join(first.split()[:4]) if "is damaged" not in first else "is damaged"


def test_states(tmp_path: Path) -> None:
    graph, path = stepping(), tmp_path / "states.bin"
    graph.step(3)
    graph.save(path)
    data, counts = path.read_bytes(), Counter[str]()
    for seed in FILES:
        path.write_bytes(mutated(data, STATES, random.Random(seed)))
        counts[load_states(graph, path)] += 1
    assert 0 < counts["loaded"] < len(FILES) / 2 and counts["SemanticError: is damaged"] > len(FILES) / 5, counts


# --- bundles ------------------------------------------------------------------------------------------------------------


def several(f: gp.Field, by: gp.Field) -> tuple[gp.Field, ...]:
    """Kernels, constants in memory and by value, and an iteration that a condition ends."""
    weights, gain = gp.ScalarField(np.float32([1, 2, 3])), gp.Parameter(2.0)
    grown = gp.iterate(lambda u: u + weights, f * gain, until=lambda u: u.max() > 9, times=5)
    return grown * by, grown.sum(), f


def write_bundle(path: Path) -> None:
    fields = {"f": gp.Field.of(Leaf(gp.FieldType(3))), "by": gp.Field.of(Leaf(gp.FieldType(())))}
    targets = [target_named(t) for t in ("opencl", *["cuda:sm_90"] * bool(nvrtc.architectures()))]
    save_bundle(path, "several", fields, several(**fields), targets)


def texts(loaded: gp.Bundle) -> set[str]:
    return set(texts_of(loaded._contents.code["opencl"]))


def texts_of(plan: Plan) -> Iterator[str]:
    for kernel in (step.kernel for step in plan.launches):
        if isinstance(kernel, Iteration):
            yield from (text for part in parts(kernel) for text in texts_of(part.plan(plan.limits)))
        else:
            yield kernel.source.text


def load_bundle(written: set[str], path: Path) -> str:
    """The outcome of loading a file. It is called where its kernels are such as were written: others may do anything."""
    try:
        loaded = gp.load_bundle(path)
    except gp.SemanticError as error:
        return f"SemanticError: {reason(error)}"
    if "opencl" not in loaded.targets or not texts(loaded) <= written:
        return "loaded, with other code"
    if sum(kind.field_shape.points * kind.planes for kind in loaded.types.values()) > MOST_POINTS:
        return "loaded, too large"
    options = {n: np.zeros(t.array_shape, "u1" if t.dtype == "unorm8" else t.dtype) for n, t in loaded.types.items()}
    with gp.use_device(OPENCL[0] if OPENCL else "reference"):
        try:
            results = loaded(**options)
        except gp.GpuopError as error:
            return f"called: {type(error).__name__}"
    assert isinstance(results, (tuple, np.ndarray))
    plan = loaded._contents.code["opencl"].program
    for result, v in zip(results if isinstance(results, tuple) else (results,), plan.results, strict=True):
        kind = plan.types[v]
        assert result.shape == tuple(kind.array_shape) and result.dtype == (
            "u1" if kind.dtype == "unorm8" else kind.dtype
        )
    return "called"


def test_bundles(tmp_path: Path) -> None:
    path = tmp_path / "bundle.bin"
    write_bundle(path)
    data, counts = path.read_bytes(), Counter[str]()
    written = texts(gp.load_bundle(path))
    assert load_bundle(written, path) == ("called" if OPENCL else "called: DeviceError")
    for seed in FILES:
        path.write_bytes(mutated(data, BUNDLES, random.Random(seed)))
        counts[load_bundle(written, path)] += 1
    loaded = len(FILES) - sum(count for what, count in counts.items() if what.startswith("SemanticError"))
    assert 0 < loaded < len(FILES) / 2 and counts["SemanticError: is damaged"] > len(FILES) / 2, counts
