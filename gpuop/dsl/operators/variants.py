"""Multi-versioned operators: recorded for each thread grid of the targets, and for each choice of `tune=`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace

from gpuop.base.errors import SemanticError, blaming, here
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import results_of
from gpuop.dsl.recorder.recorder import OpenGrid
from gpuop.dsl.recorder.target_facts import TargetExpression
from gpuop.ir.kernel import Kernel, Launchable, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import ARCHITECTURES, Choice, Extent, Fact, Formula, Known, evaluate
from gpuop.ir.types import FieldType
from gpuop.ir.values import Node, Result
from gpuop.ir.variants import Parameters, Variant, Variants, identity_of, shown

MOST_GRIDS = 32
WIDTHS = (1, 2, 4, 8, 16, 32, 64)  # SIMD widths of vectors and warps


@dataclass(frozen=True)
class Recording:
    """A kernel, or several variants, with the fields that it reads, and the public types of its outputs."""

    kernel: Launchable
    identity: str
    inputs: tuple[Node, ...]
    kinds: tuple[FieldType, ...]

    def variants(self, parameters: Parameters) -> Iterator[tuple[Variant, tuple[Node, ...]]]:
        """The kernels of the operator, each with the fields that it reads."""
        if isinstance(self.kernel, Variants):
            for v in self.kernel.variants:
                yield replace(v, parameters=parameters), tuple(self.inputs[k] for k in v.inputs)
        else:
            assert isinstance(self.kernel, Kernel)
            yield Variant(self.kernel, self.identity, (), parameters), self.inputs


def together(recorded: Sequence[tuple[Variant, tuple[Node, ...]]], kinds: tuple[FieldType, ...]) -> Recording:
    """Recording of several kernels of one operator.

    Raises:
        SemanticError: their outputs differ.
    """
    first = recorded[0][0].kernel
    nodes: dict[Node, FieldParam] = {}
    for variant, inputs in recorded:
        for node, param in zip(inputs, variant.kernel.inputs, strict=True):
            nodes.setdefault(node, param)
        _check_outputs(first, variant)
    places = {node: k for k, node in enumerate(nodes)}
    variants = tuple(replace(v, inputs=tuple(places[node] for node in inputs)) for v, inputs in recorded)
    outputs = tuple(Output(output.param, initial=output.initial) for output in first.outputs)
    kernel = Variants(first.name, tuple(nodes.values()), outputs, loc=first.loc, variants=variants)
    return Recording(kernel, identity_of(variants), tuple(nodes), kinds)


def _check_outputs(first: Kernel, variant: Variant) -> None:
    expected, actual = ([str(p.type) for p in kernel.written] for kernel in (first, variant.kernel))
    if expected != actual:
        choice = shown(variant.parameters) or " × ".join(str(n) for _, n in variant.grid)
        raise SemanticError(
            f"the variants of operator `{first.name}` give fields of one type; with {choice} it gives {', '.join(actual)}, "
            f"and not {', '.join(expected)}",
            first.loc,
        )


def either(condition: TargetExpression, yes: Field, no: Field) -> Field:
    """Result of one of two calls, chosen by the target; the inputs of the other one are not computed."""
    recorded: list[tuple[Variant, tuple[Node, ...]]] = []
    for holds, field in ((True, yes), (False, no)):
        assert isinstance(field.node, Result)
        call = field.node.call
        for variant, inputs in Recording(call.kernel, call.identity, call.inputs, (field.type,)).variants(()):
            recorded.append((replace(variant, grid=(*variant.grid, (condition.fact, holds))), inputs))
    both = together(recorded, (yes.type,))
    return results_of(both.kernel, both.identity, both.inputs, here(), both.kinds)[0]


_target: ContextVar[Target | None] = ContextVar("target", default=None)


def recorded_for() -> Target | None:
    """The only target that operators are recorded for; None for all."""
    return _target.get()


@contextmanager
def recording_for(target: Target | None) -> Iterator[None]:
    """Record operators for the thread grids of one target alone, which takes less time; caches have it in their keys."""
    token = _target.set(target)
    try:
        yield
    finally:
        _target.reset(token)


# --- grids that targets decide ------------------------------------------------------------------------------------------


def on_grids(record: Callable[[tuple[int, ...] | None], Recording]) -> Recording:
    """Recording of a body; recorded once per thread grid if targets decide on that."""
    try:
        return record(None)
    except OpenGrid as grid:
        extents, loc = grid.extents, grid.loc
    recorded: list[tuple[Variant, tuple[Node, ...]]] = []
    kinds: tuple[FieldType, ...] = ()
    target = recorded_for()
    with blaming(loc) if loc is not None else nullcontext():
        choices = grids(extents) if target is None else [tuple(int(evaluate(n, target)) for n in extents)]
    for numbers in choices:
        recording = record(numbers)
        kinds = kinds or recording.kinds
        condition = tuple((e, n) for e, n in zip(extents, numbers, strict=True) if not isinstance(e, int))
        recorded += [(replace(v, grid=condition), inputs) for v, inputs in recording.variants(())]
    return together(recorded, kinds)


def grids(extents: tuple[Extent, ...]) -> list[tuple[int, ...]]:
    """Thread grids on all known targets.

    Raises:
        SemanticError: it depends on a fact that differs on each device, or there are too many.
    """
    distinct = dict.fromkeys(_values(extents))
    if len(distinct) > MOST_GRIDS:
        raise SemanticError(
            f"an operator is recorded for each of its thread grids, and {len(distinct)} are more than {MOST_GRIDS}"
        )
    return list(distinct)


def _values(extents: tuple[Extent, ...]) -> Iterator[tuple[int, ...]]:
    for target in _targets(set(itertools.chain.from_iterable(map(_facts, extents)))):
        try:
            values = [evaluate(n, target) for n in extents]
        except SemanticError:  # a table without an entry for this target, an error once it is the target
            continue
        yield tuple(int(n) for n in values)


def _facts(expr: Known) -> Iterator[str]:
    """Names of the target facts in an expression."""
    match expr:
        case Fact(name=name):
            yield name
        case Formula(args=args):
            for arg in args:
                yield from _facts(arg)
        case Choice():
            yield from ("backend", "architecture")


def _targets(facts: set[str]) -> Iterator[Target]:
    if "local_memory_bytes" in facts:
        raise SemanticError("a thread grid does not follow `_target.local_memory_bytes`; choose it from a table")
    named = [Target("reference"), Target("opencl"), *(Target("cuda", architecture=n) for n in ARCHITECTURES)]
    devices = ("gpu", "cpu") if "device" in facts else ("gpu",)
    widths = WIDTHS if "simd_width" in facts else (1,)
    halves = (False, True) if "has_fp16" in facts else (False,)
    doubles = (False, True) if "has_fp64" in facts else (True,)
    arrays = (False, True) if "has_arrays" in facts else (False,)
    for target, device, width, fp16, fp64, lent in itertools.product(named, devices, widths, halves, doubles, arrays):
        yield replace(target, device=device, simd_width=width, has_fp16=fp16, has_fp64=fp64, has_arrays=lent)
