"""The graph of calls over a batch: what depends on mapped values is computed for each entry, all else once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import DerivativeRule, enter, rule_of
from gpuop.dsl.fields.field import Field
from gpuop.fusion.iteration import Iteration, Part, Reversal
from gpuop.fusion.program import program
from gpuop.gradients.kernels.adjoint import pulled
from gpuop.gradients.values import is_differentiable
from gpuop.ir.kernel import DeviceFunction, HostFunction, Kernel, Launchable, Output
from gpuop.ir.nodes import FieldParam
from gpuop.ir.text import identity
from gpuop.ir.types import MOST_GRID, FieldType
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
    values, order = dict(mapped), _needed(results, mapped)
    for call in order:
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
    for call in order:
        for k in range(len(call.kernel.outputs)):
            _add_rule(Result(call, k), values, count)
    return values


def _needed(results: Sequence[Node], mapped: Container[Node]) -> list[Call]:
    """The calls that results need, and those that derivatives of these do."""
    nodes = list(results)
    while True:
        order = calls(nodes, mapped)
        rules = (rule_of(Result(call, k)) for call in order for k in range(len(call.kernel.outputs)))
        inputs = dict.fromkeys(field.node for rule in rules if rule is not None for field in rule.inputs)
        more = [node for node in inputs if node not in nodes]
        if not more:
            return order
        nodes += more


def entry_of(field: Field) -> Field:
    """A Field that stands for an entry of one."""
    kind = field.type
    names = kind.names[1:] if kind.names else ()
    entry = FieldType(kind.field_shape[1:], kind.tensor_shape, kind.dtype).labelled(names)
    leaf = Leaf(entry.folded, NO_EXTENTS if field.node.dynamic else NO_VALUES, name=field.name)
    return Field.of(leaf, kind=entry)


# --- derivatives ------------------------------------------------------------------------------------------------------


def _add_rule(node: Result, values: Mapping[Node, Node], count: int) -> None:
    """Enter the rule of a value for that of all entries."""
    if node not in values:
        return
    rule = rule_of(node) or _rule_of_layers(node)
    if rule is None:
        return
    mapped = tuple(field.node in values for field in rule.inputs)
    inputs = [_whole(field, values, count) if each else field for field, each in zip(rule.inputs, mapped, strict=True)]
    pull = rule.pull if rule.pull is None or isinstance(rule.pull, str) else _Pull(rule.pull, mapped, count)
    push = rule.push if rule.push is None or isinstance(rule.push, str) else _Push(rule.push, mapped, count)
    new = values[node]
    assert isinstance(new, Result)
    kinds = tuple(batched_type(kind, count) for kind in rule.kinds)
    enter(new, replace(rule, inputs=tuple(inputs), kinds=kinds, pull=pull, push=push))


def _rule_of_layers(node: Result) -> DerivativeRule | None:
    """The rule of a value whose kernel has one axis for entries and layers, where no kernel can gather by: that of an entry."""
    call, kernel = node.call, node.call.kernel
    if not isinstance(kernel, Kernel) or len(kernel.domain.shape) < MOST_GRID:
        return None
    wanted = [n for n, each in enumerate(call.inputs) if is_differentiable(each.type)]

    def pull(inputs: Sequence[Field], value: Field, cotangent: Field) -> list[Field | None]:
        entry = Call(kernel, call.identity, tuple(field.node for field in inputs), call.loc, call.names)
        pulls = pulled(entry, kernel, {node.index: cotangent}, wanted)
        return [pulls.get(n) for n in range(len(inputs))]

    return DerivativeRule(kernel.name, tuple(map(Field.of, call.inputs)), (node.type,), pull)


def _whole(field: Field, values: Mapping[Node, Node], count: int) -> Field:
    """A result of all entries, whether it depends on them or not."""
    node = values[field.node] if field.node in values else spread(field.node, count)
    return Field.of(node, kind=batched_type(field.type, count))


@dataclass(frozen=True)
class _Rule:
    """A rule of one entry for all of them; `mapped` says which of its inputs have one for each entry."""

    rule: Callable[..., Any]
    mapped: Flags
    count: int

    def entries(self, fields: Sequence[Field | None], mapped: Flags, leaves: dict[Node, Node]) -> list[Field | None]:
        """The stand-ins for an entry, which are added to `leaves`."""
        result: list[Field | None] = []
        for field, each in zip(fields, mapped, strict=True):
            entry = entry_of(field) if each and field is not None else field
            if entry is not None and field is not None and entry is not field:
                leaves[entry.node] = field.node
            result.append(entry)
        return result


class _Pull(_Rule):
    def __call__(self, inputs: Sequence[Field], value: Any, cotangent: Any, *wanted: Any) -> list[Field | None]:
        leaves: dict[Node, Node] = {}
        entries: list[Any] = [self.entries(inputs, self.mapped, leaves)]
        for each in (value, cotangent):  # tuples of a rule of all results
            several = isinstance(each, tuple)
            fields = each if several else (each,)
            stands = self.entries(fields, (True,) * len(fields), leaves)
            entries.append(tuple(stands) if several else stands[0])
        results = self.rule(*entries, *wanted)
        values = over_batch([field.node for field in results if field is not None], leaves, self.count)
        return [
            None if field is None else self._of_all(field, each, values)
            for field, each in zip(results, self.mapped, strict=True)
        ]

    def _of_all(self, field: Field, mapped: bool, values: Mapping[Node, Node]) -> Field:
        """A cotangent; that of a value that entries share is the sum of theirs."""
        whole = _whole(field, values, self.count)
        return whole if mapped else whole.sum(axis=0).astype(field.dtype)


class _Push(_Rule):
    def __call__(self, inputs: Sequence[Field], value: Field, tangents: Sequence[Field | None]) -> Field | None:
        leaves: dict[Node, Node] = {}
        arguments = self.entries(inputs, self.mapped, leaves), *self.entries((value,), (True,), leaves)
        result = self.rule(*arguments, self.entries(tangents, self.mapped, leaves))
        if result is None:
            return None
        return _whole(result, over_batch([result.node], leaves, self.count), self.count)


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


def _of_reversal(kernel: Reversal, name: str, mapped: Flags, count: int) -> Batched:
    forward, states = kernel.forward, len(kernel.forward.outputs)
    bars = len(kernel.inputs) - len(kernel.outputs)
    flags = tuple(k < states or k >= bars or each for k, each in enumerate(mapped))
    turns = _of_iteration(forward, name, flags[: len(forward.inputs)], count).kernel
    back = _of_part(kernel.back, flags, count)
    digest = hashlib.sha256(f"{count} {flags} {name}".encode()).hexdigest()
    return Batched(replace(_declared(kernel, flags, count), forward=turns, back=back), f"reverse {digest}", flags)


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
    Reversal: _of_reversal,
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
