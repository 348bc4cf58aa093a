"""Makes docs/reference/api.md: every name of `gpuop` from its docstring, with signatures, public methods and properties.

python docs/make_api.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import gpuop as gp
from gpuop import testing
from gpuop.dsl.fields.array_methods import Reductions
from gpuop.dsl.operators.operator import Operator
from gpuop.engine.graphs.window import GraphWindow
from gpuop.engine.jit.pipeline import Pipeline
from gpuop.engine.jit.window_call import PipelineWindow
from gpuop.engine.tune import Tuning
from gpuop.fusion.windows.footprint import Footprint
from gpuop.mpi import Domain
from gpuop.runtime.devices import Device
from gpuop.runtime.profile.profiler import KernelTimes, Profile
from gpuop.runtime.profile.timeline import KernelSum, LaunchTime, Timeline

PAGE = Path(__file__).parent / "reference" / "api.md"
HEAD = """# The reference of `gpuop`

All names of `import gpuop as gp`, as `help(gp.Field)` shows them. Modules have pages of their own: [ndimage](ndimage.md),
[linalg](linalg.md), [fft](fft.md), [random](random.md), [array API](array-api.md); so have [kernels](language.md) and the
[NumPy functions of fields](numpy.md).

Shapes are (layers, rows, columns), then those of the tensor; a dtype is that of NumPy or its name. Every error is a
`gp.GpuopError`, whose message says what to do instead. `docs/make_api.py` makes this page of the docstrings.
"""
RANDOM = ("bits", "uniform", "integers", "bernoulli", "normal", "exponential", "poisson", "permutation", "choice")
SECTIONS: dict[str, tuple[Any, ...]] = {
    "Types": (gp.Shape, gp.FieldType, gp.Dims),
    "Fields": (
        *(gp.Field, gp.ScalarField, gp.VectorField, gp.MatrixField, gp.ColorField, gp.ComplexField, gp.Parameter),
        *(gp.asarray, gp.from_dlpack, gp.fromfunction, gp.is_big_tensor, gp.reduce, gp.scan, gp.evaluate, gp.iterate),
        gp.vmap,
    ),
    "Fields made on the device": (gp.zeros, gp.ones, gp.full, gp.arange, gp.linspace, gp.meshgrid, gp.updated),
    "Derivatives": (gp.grad, gp.value_and_grad, gp.vjp, gp.jvp, gp.linearize, gp.hvp, gp.stop_gradient, gp.checkpoint),
    "Operators": (gp.operator, Operator, gp.GPUOperator, gp.HostOperator, gp.DeviceOperator, gp.precision),
    "Pipelines and bundles": (gp.pipeline, Pipeline, Footprint, PipelineWindow, gp.stream, gp.load_bundle, gp.Bundle),
    "Graphs": (gp.ComputeGraph, gp.Sensor, gp.Actuator, GraphWindow, Domain, Profile, KernelTimes),
    "Time and queues": (gp.submit, gp.Event, gp.queue, gp.pinned, gp.profile, Timeline, KernelSum, LaunchTime),
    "Devices": (gp.devices, gp.device, gp.use_device, gp.set_device, gp.release, gp.schedule, Device),
    "Tests": (
        testing.assert_allclose,
        testing.check_grads,
        testing.errors,
        testing.Errors,
        testing.ulps,
        testing.digest,
        testing.noise,
        testing.conformance,
    ),
    "Linear algebra": tuple(getattr(gp.linalg, name) for name in gp.linalg.__all__),
    "Random numbers": tuple(getattr(gp.random, name) for name in ("key", "split", "fold_in", *RANDOM)),
    "Tuning": (gp.tuning, gp.tune, Tuning),
    "Errors": (
        gp.GpuopError,
        gp.SemanticError,
        gp.UnsupportedError,
        gp.ArgumentError,
        gp.CompileError,
        gp.DeviceError,
        gp.KernelWarning,
    ),
}
GIVEN_BY = {  # what has no name in `gp`
    Operator: "made by `gp.operator`",
    Pipeline: "made by `gp.pipeline`",
    Footprint: "given by `pipeline.footprint` and `graph.footprint`",
    GraphWindow: "made by `graph.window`",
    Domain: "of `gpuop.mpi`",
    PipelineWindow: "made by `pipeline.window`",
    Profile: "made by `graph.profile` and `pipeline.profile`",
    KernelTimes: "a row of a Profile",
    Timeline: "given by `gp.profile`",
    KernelSum: "a row of a Timeline",
    LaunchTime: "a span of a Timeline",
    Tuning: "given by `gp.tune`",
    Device: "listed by `gp.devices`",
    **dict.fromkeys((getattr(testing, name) for name in testing.__all__ if name != "PROGRAMS"), "of `gpuop.testing`"),
    **dict.fromkeys((getattr(gp.random, name) for name in gp.random.__all__), "of `gpuop.random`"),
    **dict.fromkeys((getattr(gp.linalg, name) for name in gp.linalg.__all__), "of `gpuop.linalg`"),
}
OWN = {  # members that are for gpuop itself
    *(
        "storage",
        "element",
        "parts",
        "planes",
        "stored",
        "of",
        "node",
        "frames",
        "leaf",
        "set_next",
        "join",
        "plan",
        "kind",
    ),
    *(
        "add",
        "anew",
        "planned",
        "before",
        "begin",
        "bind",
        "settings",
        "portable",
        "recorded_by",
        "users",
        "conjugate",
        "copied",
        "traced_again",
        "host",
    ),
    *("folded", "labelled", "takes", "number", "naming"),
}
PARTS = {"Args:": "Arguments", "Returns:": "Returns", "Raises:": "Raises", "Attributes:": "Attributes"}
ITEM = re.compile(r"    (\w[\w, ]*): (.*)")


def called(value: Any) -> str:
    """The name in `gp`, or its own."""
    return next((name for name in gp.__all__ if getattr(gp, name) is value), value.__name__)


def title(value: Any) -> str:
    """As users write it; of what has no name in `gp` where it comes from."""
    return f"`{called(value)}`, {GIVEN_BY[value]}" if value in GIVEN_BY else f"`gp.{called(value)}`"


def call(value: Any, name: str) -> str:
    """The signature, without annotations: the docstring says more."""
    given = inspect.signature(value)
    kept = [p.replace(annotation=p.empty) for p in given.parameters.values() if p.name != "self"]
    return f"{name}{given.replace(parameters=kept, return_annotation=inspect.Signature.empty)}"


def text(doc: str) -> Iterator[str]:
    """A docstring in Markdown: its parts are lists, indented programs stay as they are."""
    part, item = "", ""
    for line in inspect.cleandoc(doc).split("\n"):
        if line in PARTS:
            part = PARTS[line]
            yield f"**{part}**\n"
        elif not part:
            yield line
        elif found := ITEM.fullmatch(line):
            yield from (item,) if item else ()
            names = ", ".join(f"`{name}`" for name in found[1].split(", "))
            item = f"- {names}: {found[2]}"
        elif line:
            item += f" {line.strip()}" if item else line.strip()
        else:
            yield from (item, "")
            part = item = ""
    yield item


def members(value: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties: a subclass of Field has only its own."""
    inherited = gp.Field if value is not gp.Field and issubclass(value, gp.Field) else object
    for name, member in inspect.getmembers(value):
        own = next((base for base in value.__mro__ if name in vars(base)), object)
        known = isinstance(member, property | cached_property) or inspect.isfunction(member)
        public = name not in OWN and not name.startswith("_") and own.__module__.startswith("gpuop")
        if known and public and getattr(inherited, name, None) is not member:
            yield name, member


def entry(value: Any) -> Iterator[str]:
    """A name of `gpuop`, and what it has."""
    yield f"\n### {title(value)}\n"
    if getattr(value, "__init__", None) is not Exception.__init__:  # those that are only caught
        yield f"```python\n{call(value, called(value))}\n```\n"
    yield from text(value.__doc__)
    if value is gp.Field:
        yield "\n#### Reductions: `.sum`, `.prod`, `.mean`, `.std`, `.var`, `.min`, `.max`, `.any`, `.all`, `.argmin`, `.argmax`\n"
        yield from text(Reductions.__doc__ or "")
    for name, member in members(value) if isinstance(value, type) else ():
        shown = f".{name}" if isinstance(member, property | cached_property) else call(member, f".{name}")
        yield f"\n#### `{shown}`\n"
        yield from text(member.__doc__ or "")


def page() -> str:
    lines = [HEAD.rstrip()]
    for section, values in SECTIONS.items():
        lines.append(f"\n## {section}")
        for value in values:
            lines += entry(value)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" +\n", "\n", "\n".join(lines))).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
