"""Halide's entries: with schedules by hand, and with those that its autoschedulers find."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .contestant import Contestant, Maker
from .pipeline import Array, Pipeline

REDUCTIONS = ("histogram", "auto_exposure", "sum", "row_sums", "column_sums")
LARGE = ("nlm", "pyramid_blend", "local_laplacian", "bilateral_grid", "gray_scott", "heat1", "heat2", "heat10")
# without multiply-adds, which Halide's compiler makes of products and sums otherwise: as gpuop computes without "contract"
STRICT = ("conv3x3", "gauss2", "gauss5", "unsharp", "gray_scott", "heat1", "heat2", "heat10", "harris")
AUTOSCHEDULERS = {  # and where they are left out: both bring the process down, and the second takes minutes
    "Mullapudi2016": REDUCTIONS,
    "Adams2019": (*REDUCTIONS, *LARGE),
}
Shape = tuple[int, ...]


def entries(pipeline: Pipeline) -> dict[str, Maker]:
    from . import halide_images, halide_pyramids, halide_stencils

    name = ALGORITHMS.get(pipeline.name, pipeline.name)
    algorithm = next(
        (found for file in (halide_stencils, halide_images, halide_pyramids) if (found := getattr(file, name, None))),
        None,
    )
    if pipeline.name in ("gauss2", "gauss5"):
        algorithm = halide_stencils.gaussian(float(pipeline.name[-1]))
    if algorithm is None:
        return {}
    found = {"Halide": entry(pipeline.name, algorithm, "")}
    if pipeline.name in STRICT:
        found["Halide strict"] = entry(pipeline.name, algorithm, "", strict=True)
    return found | {
        f"Halide {auto}": entry(pipeline.name, algorithm, auto)
        for auto, without in AUTOSCHEDULERS.items()
        if pipeline.name not in without
    }


ALGORITHMS = {"heat1": "heat", "heat2": "heat_twice", "heat10": "heat", "sum": "row_sums"}
CROP = {"harris": 2}  # as Halide's own app has it
STEPS = {"gray_scott": 10, "heat10": 10}
OUTPUTS: dict[str, Callable[[Shape], list[tuple[Shape, str]]]] = {
    "canny": lambda s: [(s, "uint8")],
    "mean_variance": lambda s: [(s, "float32")] * 2,
    "luma_blur_threshold": lambda s: [(s[1:], "uint8")],
    "camera": lambda s: [((3, *s), "uint8")],
    "life": lambda s: [(s, "uint8")],
    "gray_scott": lambda s: [(s, "float32")] * 2,
    "histogram": lambda _: [((256,), "int32")],
    "sum": lambda s: [(s[:1], "float32")],
    "row_sums": lambda s: [(s[:1], "float32")],
    "column_sums": lambda s: [(s[1:], "float32")],
    "transpose": lambda s: [(s[::-1], "float32")],
}


def entry(name: str, algorithm: Callable[..., Any], auto: str, strict: bool = False) -> Maker:
    def make(arrays: tuple[Array, ...]) -> Contestant:
        given = [np.ascontiguousarray(np.moveaxis(a, -1, 0)) if a.shape[-1] == 3 else a for a in arrays]
        kinds = OUTPUTS.get(name, lambda s: [(s, "float32")])(given[0].shape)
        turns = [[np.zeros(*kind) for kind in kinds] for _ in range(2 if name in STEPS else 1)]
        compiled = [Compiled(algorithm, source, target, auto, strict) for source, target in pairs(given, turns)]
        order = compiled if len(compiled) == 1 else [compiled[0], *compiled[1:] * STEPS[name]][: STEPS[name]]
        results = [
            np.moveaxis(o, 0, -1) if o.ndim > arrays[0].ndim or name == "unsharp" else o for o in order[-1].target
        ]

        def run(times: int) -> None:
            for _ in range(times):
                for part in order:
                    part.run()
                if name == "sum":
                    results[0] = order[-1].target[0].sum(dtype=np.float32)

        run(1)
        return Contestant(run, lambda: tuple(map(np.asarray, results)), (algorithm,), crop=CROP.get(name, 0))

    return make


def pairs(given: list[Array], turns: list[list[Array]]) -> list[tuple[list[Array], list[Array]]]:
    """From where to where: once, or also to and fro."""
    first = [(given, turns[0])]
    return first if len(turns) == 1 else [*first, (turns[0], turns[1]), (turns[1], turns[0])]


class Compiled:
    """An algorithm with its schedule, compiled for its arrays."""

    def __init__(
        self, algorithm: Callable[..., Any], source: list[Array], target: list[Array], auto: str, strict: bool
    ) -> None:
        import halide as hl

        self.target = target
        out, schedule = algorithm(*map(hl.Buffer, source))
        self.pipeline = hl.Pipeline(out)
        machine = hl.get_host_target()
        if strict:
            machine = machine.with_feature(hl.TargetFeature.StrictFloat)
        if auto:
            folder = Path(hl.__file__).parent / "lib64"
            hl.load_plugin(str(folder / f"libautoschedule_{auto.lower()}.so"))
            out.set_estimates([hl.Range(0, n) for n in target[0].shape[::-1]])
            options = {"parallelism": str(os.cpu_count() or 1)}
            self.pipeline.apply_autoscheduler(machine, hl.AutoschedulerParams(auto, options))
        else:
            schedule(out)
        self.pipeline.compile_jit(machine)
        self.buffers = [hl.Buffer(a) for a in target]
        self.kept = source

    def run(self) -> None:
        self.pipeline.realize(self.buffers)
