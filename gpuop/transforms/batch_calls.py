"""The graph of calls over a batch: what depends on mapped values is computed for each entry, all else once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.field import Field
from gpuop.fusion.iteration import Iteration, Part
from gpuop.fusion.program import program
from gpuop.ir.kernel import DeviceFunction, HostFunction, Kernel, Launchable, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.text import identity
from gpuop.ir.values import NO_EXTENTS, NO_VALUES, Call, Leaf, Node, Result, calls
from gpuop.ir.variants import Variant, Variants, identity_of
from gpuop.ops.device_operator import Filled, TakesBatches
from gpuop.ops.layout.layouts import broadcast_to
from gpuop.transforms.batch_kernel import batched_kernel, batched_param, batched_type

KEPT = 1024
Flags = tuple[bool, ...]  # whether inputs are mapped: others are the same for all entries


@dataclass(frozen=True)
class Batched:
    """A launch for all entries; its inputs are mapped, or shared, as `inputs` says."""

    kernel: Launchable
    identity: str
    inputs: Flags


_cache: BoundedCache[tuple[str, Flags, int], Batched] = BoundedCache(KEPT)


def over_batch(results: Sequence[Node], mapped: Mapping[Node, Node], count: int) -> dict[Node, Node]:
    """The values of all entries: of `mapped`, which has them for leaves, and of all calls that depend on these.

    Raises:
        SemanticError: a call that has no form over a batch.
    """
    values = dict(mapped)
    for call in calls(results, mapped):
        flags = tuple(node in values for node in call.inputs)
        if not any(flags):
            continue
        batched = batched_launch(call.kernel, call.identity, flags, count)
        inputs = tuple(
            (values[node] if node in values else spread(node, count)) if each else node
            for node, each in zip(call.inputs, batched.inputs, strict=True)
        )
        new = Call(batched.kernel, batched.identity, inputs, call.loc, call.names)
        values |= {Result(call, k): Result(new, k) for k in range(len(call.kernel.outputs))}
    return values


def spread(node: Node, count: int) -> Node:
    """A value as that of every entry."""
    return broadcast_to(Field.of(node), tuple(batched_type(node.type, count).array_shape)).node


def batched_launch(kernel: Launchable, name: str, mapped: Flags, count: int) -> Batched:
    """The launch for all entries of one that has this identity."""
    return _cache.find((name, mapped, count), lambda: RULES[type(kernel)](kernel, name, mapped, count))


# --- a rule for each kind of launch -----------------------------------------------------------------------------------


def _of_kernel(kernel: Kernel, name: str, mapped: Flags, count: int) -> Batched:
    starts = {output.initial for output in kernel.outputs}
    flags = tuple(each or p in starts for each, p in zip(mapped, kernel.inputs, strict=True))
    result = batched_kernel(kernel, flags, count)
    return Batched(result, identity(result), flags)


def _of_variants(kernel: Variants, name: str, mapped: Flags, count: int) -> Batched:
    starts = {k for v in kernel.variants for k, p in zip(v.inputs, v.kernel.inputs, strict=True) if _starts(v, p)}
    flags = tuple(each or k in starts for k, each in enumerate(mapped))
    variants = []
    for variant in kernel.variants:
        inner = batched_kernel(variant.kernel, [flags[k] for k in variant.inputs], count)
        variants.append(replace(variant, kernel=inner, identity=identity(inner)))
    result = replace(_declared(kernel, flags, count), variants=tuple(variants))
    return Batched(result, identity_of(result.variants), flags)


def _starts(variant: Variant, param: FieldParam) -> bool:
    return any(output.initial is param for output in variant.kernel.outputs)


def _declared(kernel: Any, mapped: Flags, count: int) -> Any:
    """A launch without a body, with fields of all entries."""
    fields = {p: batched_param(p, count) for p, each in zip(kernel.inputs, mapped, strict=True) if each}
    outputs = tuple(
        Output(batched_param(o.param, count), initial=o.initial and fields[o.initial]) for o in kernel.outputs
    )
    return replace(kernel, inputs=tuple(fields.get(p, p) for p in kernel.inputs), outputs=outputs)


def _of_host(kernel: HostFunction, name: str, mapped: Flags, count: int) -> Batched:
    run = _EachOnHost(kernel, mapped, count)
    return Batched(replace(_declared(kernel, mapped, count), run=run), f"{count} {mapped} {name}", mapped)


def _of_device(kernel: DeviceFunction, name: str, mapped: Flags, count: int) -> Batched:
    run, cost = kernel.run, kernel.cost
    function = run.function if isinstance(run, Filled) else None
    if isinstance(run, Filled) and isinstance(function, TakesBatches):
        whole = function.over_batch(count)
        mapped = tuple(True for _ in mapped)
        types = ((batched_type(kind, count) for kind in kinds) for kinds in (run.inputs, run.types))
        run = replace(run, function=whole, inputs=tuple(next(types)), types=tuple(next(types)))
        cost = whole.cost
    else:
        run = _EachOnDevice(kernel, mapped, count)
    new = replace(_declared(kernel, mapped, count), run=run, cost=cost)
    return Batched(new, f"{count} {mapped} {name}", mapped)


def _of_iteration(kernel: Iteration, name: str, mapped: Flags, count: int) -> Batched:
    if kernel.until is not None:
        raise SemanticError(
            f"`{kernel.name}` ends when its condition holds, for each entry of the batch of `gp.vmap` after another number of "
            "iterations: give `times=` alone, or iterate over whole fields, outside of `gp.vmap`, until all entries are done",
            kernel.loc,
        )
    states = len(kernel.outputs)
    flags = tuple(k < states or each for k, each in enumerate(mapped))
    turn = _of_part(kernel.turn, flags, count)
    digest = hashlib.sha256(f"{count} {flags} {name}".encode()).hexdigest()
    return Batched(replace(_declared(kernel, flags, count), turn=turn), f"iterate {digest}", flags)


def _of_part(part: Part, mapped: Flags, count: int) -> Part:
    """The program of an iteration, for all entries."""
    once = part.program
    values: dict[int, Node] = {
        v: Leaf(
            node.type,
            NO_EXTENTS if v in once.dynamic else NO_VALUES,
            isinstance(node, Leaf) and node.by_value,
            node.name,
        )
        for v, node in once.leaves.items()
    }
    positions: dict[Node, int] = {values[v]: position for v, position in part.positions.items()}
    for op in once.ops:
        call = Call(op.kernel, op.identity, tuple(values[v] for v in op.inputs), op.loc)
        values |= {v: Result(call, k) for k, v in enumerate(op.outputs)}
    leaves: dict[Node, Node] = {
        leaf: Leaf(batched_type(leaf.type, count).folded, NO_EXTENTS if leaf.dynamic else NO_VALUES, name=leaf.name)
        for leaf, position in positions.items()
        if mapped[position]
    }
    results = [values[v] for v in once.results]
    batched = over_batch(results, leaves, count)
    positions = {leaves.get(leaf, leaf): position for leaf, position in positions.items()}
    nodes = [batched[node] if node in batched else spread(node, count) for node in results]
    what = program(nodes, positions)
    return Part(what, {v: positions[node] for v, node in what.leaves.items()})


RULES: dict[type[Launchable], Callable[[Any, str, Flags, int], Batched]] = {
    Kernel: _of_kernel,
    Variants: _of_variants,
    HostFunction: _of_host,
    DeviceFunction: _of_device,
    Iteration: _of_iteration,
}


# --- Python functions: called for one entry after the other -----------------------------------------------------------


class _Each:
    """A Python function of arrays, called for each entry.

    Args:
        kernel: the launch of one entry.
        mapped: as of `Batched`.
    """

    def __init__(self, kernel: Any, mapped: Flags, count: int) -> None:
        self.function, self.mapped, self.count = kernel.run, mapped, count
        self.shapes = [tuple(p.type.array_shape) for p in kernel.inputs]
        self.filled = [tuple(p.type.array_shape) for p in kernel.written]

    def of_entry(self, n: int, arrays: Sequence[Any]) -> list[Any]:
        """The inputs of an entry."""
        each = zip(arrays, self.shapes, self.mapped, strict=True)
        return [array.reshape(self.count, *shape)[n] if mapped else array for array, shape, mapped in each]


class _EachOnHost(_Each):
    """The function of a host operator, whose arrays are its own to change."""

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        entries = [self.function([a.copy() for a in self.of_entry(n, arrays)]) for n in range(self.count)]
        return [np.stack(each) for each in zip(*entries, strict=True)]


class _EachOnDevice(_Each):
    """The function of a device operator, which fills the outputs."""

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        whole = [array.reshape(self.count, *shape) for array, shape in zip(outputs, self.filled, strict=True)]
        for n in range(self.count):
            self.function(self.of_entry(n, inputs), [array[n : n + 1].reshape(array.shape[1:]) for array in whole])
