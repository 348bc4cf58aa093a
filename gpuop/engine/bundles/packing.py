"""Description of plans and kernels for a target: a part of the format of bundles, which `writing.py` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpuop.base.errors import CompileError, SemanticError
from gpuop.codegen.c.dialect import Source
from gpuop.codegen.generate import generate, generate_open
from gpuop.engine.bundles.dynamic_sizes import Sizes, open_number
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.plan import Plan, plan, plan_for
from gpuop.fusion.program import Program
from gpuop.ir.kernel import Kernel, Launchable
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.passes.dynamic_extents import Opened
from gpuop.runtime.base.interruptible import call_interruptibly
from gpuop.runtime.cuda.nvrtc import compile_cuda
from gpuop.runtime.tuning.chooser import limits_for


def last_line(facts: Mapping[str, Any]) -> str:
    """The launch of a kernel as the last line of its text, so that text and launch are checked against each other."""
    return f"// {json.dumps(facts, sort_keys=True)}\n"


def folder(target: Target) -> str:
    """The folder of a target's kernels in the archive."""
    return str(target).replace(":", "_")


def described(kind: FieldType, sizes: Sizes = ()) -> list[Any]:
    return [[open_number(n, sizes) for n in kind.field_shape], kind.tensor_shape, kind.dtype]


class Packing:
    """Describes plans for a target, by the stand-ins of sizes; `store` adds their kernels to the members of an archive.

    Attributes:
        kernels: kernels with their texts and descriptions.
        ranges: open numbers of kernels, each with its least and its greatest value.
        extents: extents of values.
    """

    def __init__(self, target: Target, sizes: Sizes, is_open: bool) -> None:
        self.target, self.sizes, self.is_open = target, sizes, is_open
        self.kernels: list[tuple[Kernel, Source, dict[str, Any]]] = []
        self.ranges: list[tuple[Any, int, int]] = []
        self.extents: set[int] = set()
        self.limits = limits_for(target)
        self.binaries = ("cubin", "ptx") if target.backend == "cuda" else ()

    def program(self, program: Program) -> dict[str, Any]:
        return self.plan(plan(program, limits=self.limits))

    def plan(self, made: Plan) -> dict[str, Any]:
        made = plan_for(made, self.target)
        self.extents |= {n for kind in made.program.types.values() for n in kind.array_shape}
        values = {v for launch in made.launches for v in (*launch.inputs, *launch.outputs)} | set(made.program.wanted)
        return {
            "wanted": made.program.wanted,
            "types": {
                str(v): described(made.program.types[v], self.sizes) for v in sorted(values | set(made.program.leaves))
            },
            "steps": [
                {"inputs": launch.inputs, "outputs": launch.outputs, **self.kernel(launch.kernel)}
                for launch in made.launches
            ],
        }

    def kernel(self, kernel: Launchable) -> dict[str, Any]:
        if isinstance(kernel, Iteration):
            return {"name": kernel.name, "repeat": self.iteration(kernel)}
        if not isinstance(kernel, Kernel):
            raise SemanticError(f"a bundle holds kernels, and `{kernel.name}` {kernel.unfusible}", kernel.loc)
        if kernel.dynamic and self.is_open:
            source, sized = generate_open(kernel, self.target)
        else:
            source, sized = generate(replace(kernel, dynamic=frozenset()), self.target), None
        facts = {
            "name": kernel.name,
            "entry": source.entry,
            "threads": source.threads if sized is None else self.threads(source, sized),
            "group": source.group,
            "extents": [open_number(n, self.sizes) for n in source.extents],
            "arguments": self.parameters(
                (*kernel.inputs, *kernel.written)
            ),  # their own types: the text may count their points otherwise
            "fills": {str(k): fill for k, fill in source.fills.items()},
            "begins": {str(k): kernel.inputs.index(o.initial) for k, o in enumerate(kernel.outputs) if o.initial},
            "needs": sorted(source.needs),
        }
        if sized is not None:
            ranges = zip(facts["extents"], sized.least, sized.most, strict=True)
            self.ranges += [each for each in ranges if isinstance(each[0], dict)]
        self.kernels.append((kernel, source, facts))
        return facts

    def threads(self, source: Source, sized: Opened) -> list[Any]:
        """The threads along columns, rows, and layers × elements, as of `thread_counts`."""
        shape = sized.grid.shape
        ones = (1,) * (3 - len(shape))
        per_thread = (*ones, *(sized.per_thread or (1,) * len(shape)))
        counts = zip((*ones, *shape), per_thread, (sized.grid.elements, 1, 1), source.group[::-1], strict=True)
        return [open_number(n, self.sizes, each, times, multiple) for n, each, times, multiple in counts][::-1]

    def parameters(self, params: Sequence[FieldParam]) -> list[Any]:
        return [[p.hint, described(p.type, self.sizes), p.by_value] for p in params]

    def store(self, members: dict[str, bytes]) -> None:
        for count, (_, source, facts) in enumerate(self.kernels):
            place = f"{folder(self.target)}/{count}"
            for kind in self.binaries:
                members[f"{place}.{kind}"] = _binary(source, f"sm_{self.target.architecture}", kind)
            members[f"{place}.text"] = f"{source.text}{last_line(facts)}".encode()

    def iteration(self, kernel: Iteration) -> dict[str, Any]:
        return {
            "times": kernel.times,
            "every": kernel.every,
            "inputs": self.parameters(kernel.inputs),
            "outputs": self.parameters(kernel.written),
            "turn": self.part(kernel.turn),
            "until": None if kernel.until is None else self.part(kernel.until),
        }

    def part(self, part: Part) -> dict[str, Any]:
        return {
            "given": {str(v): position for v, position in part.given.items()},
            "plan": self.plan(part.plan(self.limits)),
        }


def _binary(source: Source, architecture: str, kind: str) -> bytes:
    try:
        given = source.text, architecture, kind
        return call_interruptibly(given, partial(compile_cuda, *given), architecture, source.name)
    except RuntimeError as refused:
        raise CompileError(f"NVRTC refused the kernel {source.entry}:\n{refused}", source.numbered()) from None
