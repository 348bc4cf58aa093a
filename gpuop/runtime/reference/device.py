"""The reference device: a NumPy interpreter of recorded kernels, always available, which defines the results of all devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from gpuop.base.errors import DeviceError
from gpuop.fusion.kernel_limits import LEAST
from gpuop.fusion.variant_selection import First
from gpuop.ir.analysis.stages import stages
from gpuop.ir.build import constant
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Block, Expr, FieldParam, Lane, Let, Pack, Ref, Stmt, Var
from gpuop.ir.target import Target
from gpuop.ir.types import FieldType
from gpuop.ir.visit import map_blocks, operands, values, walk
from gpuop.passes.bfloat16_bits import bfloat16_as_bits
from gpuop.runtime.base.backend import Argument, Array, Backend, Buffer, Launch, Memory
from gpuop.runtime.base.copy_trace import CopySpan
from gpuop.runtime.base.current_queue import clone_queue
from gpuop.runtime.base.host_arrays import array_in
from gpuop.runtime.base.trace import note_launch
from gpuop.runtime.reference.checked import run_checked
from gpuop.runtime.reference.interpreter import run


class Reference(Backend):
    """The reference device. Work is done when it is enqueued."""

    name = model = "reference"
    description = "NumPy interpreter of the recorded program"
    target = Target("reference", device="cpu", simd_width=1, has_arrays=True)
    limits = replace(LEAST, choices=First(target))
    interprets = True
    only_enqueues = False  # it runs in Python, and may be stopped anywhere
    lowered = False  # whether it interprets lowered kernels

    def __init__(self, checked: bool = False) -> None:
        self.checked = checked

    def empty(self, kind: FieldType) -> Buffer:
        try:
            return np.empty((kind.planes, kind.field_shape.points), kind.memory_dtype)
        except MemoryError:
            raise DeviceError(f"reference: no memory for a field of {kind} ({kind.nbytes} bytes)") from None

    def upload(self, kind: FieldType, planes: Array) -> Buffer:
        with CopySpan("upload", self):
            return np.array(planes)

    def write(self, buffer: Buffer, planes: Array) -> None:
        with CopySpan("upload", self):
            buffer[...] = planes

    def download(self, kind: FieldType, buffer: Buffer) -> Array:
        with CopySpan("download", self):
            return np.array(buffer)

    def copy(self, kind: FieldType, source: Buffer, target: Buffer) -> None:
        with CopySpan("copy", self):
            target[...] = source

    def compile(self, kernel: Kernel) -> Any:
        kernel = bfloat16_as_bits(kernel)
        return without_unused(kernel) if self.checked else kernel

    def bind(self, program: Any, arguments: Sequence[Argument]) -> Launch:
        return self.bound(program, arguments)

    def bound(self, kernel: Kernel, arguments: Sequence[Argument]) -> Launch:
        fields = {}
        for param, argument in zip((*kernel.inputs, *kernel.written), arguments, strict=True):
            scalars = np.array(argument, param.type.memory_dtype)[:, None] if param.by_value else argument
            fields[param] = scalars
        fields |= {param: self.empty(param.type) for param in kernel.intermediates}
        steps = stages(kernel)

        def launch() -> None:
            for output in kernel.outputs:
                if output.fill is not None:
                    fields[output.param][...] = output.fill
            note_launch(kernel.name, kernel.domain)
            for step in steps:
                self.run(step, fields)

        def adjust(position: int, scalars: Argument) -> None:
            fields[kernel.inputs[position]][...] = np.array(scalars)[:, None]

        return Launch((launch,), adjust)

    def run(self, kernel: Kernel, fields: dict[FieldParam, Array]) -> None:
        """Run a stage of a kernel, over planes of its fields."""
        if self.checked:
            run_checked(kernel, fields)
        else:
            run(kernel, fields, self.lowered)

    @contextmanager
    def arrays(self, inputs: Sequence[Memory], outputs: Sequence[Memory]) -> Iterator[list[Any]]:
        read = [array_in(kind, buffer, False) for kind, buffer in inputs]
        yield read + [array_in(kind, buffer, True) for kind, buffer in outputs]

    def synchronize(self) -> None:
        pass

    def record(self) -> float:
        return perf_counter()

    def reached(self, mark: float) -> bool:
        return True

    def wait(self, mark: float) -> None:
        pass

    def between(self, first: float, last: float) -> float:
        return last - first

    def follow(self, mark: float) -> None:
        pass

    def keep(self, owner: object) -> None:
        pass

    def another(self, priority: str) -> Reference:
        return clone_queue(self)


Used = defaultdict[Var, set[int]]  # the used lanes of each variable


def without_unused(kernel: Kernel) -> Kernel:
    """Return the kernel without bindings that no effect depends on; all effects, and their lines, stay."""
    used: Used = defaultdict(set)
    stmts = list(walk(kernel.body))
    for stmt in stmts:
        if not _binds(stmt):
            for value in values(stmt):
                _mark(value, set(range(value.type.lanes)), used)
    for stmt in reversed(stmts):  # values come after their operands
        if isinstance(stmt, Let) and _binds(stmt) and stmt.var in used:
            _mark(stmt.value, used[stmt.var], used)
    return replace(kernel, body=_used_only(kernel.body, used))


def _binds(stmt: Stmt) -> bool:
    """Return whether a statement only names a value."""
    return isinstance(stmt, Let) and not stmt.var.mutable


def _mark(expr: Expr, lanes: set[int], used: Used) -> None:
    match expr:
        case Ref(var=var):
            used[var] |= lanes
        case Lane(arg=arg, lane=lane):
            _mark(arg, {lane}, used)
        case Pack(args=args):
            for lane in lanes:
                _mark(args[lane], {0}, used)
        case _:
            for operand in operands(expr):
                _mark(operand, set(range(operand.type.lanes)), used)


def _used_only(block: Block, used: Used) -> Block:
    out: list[Stmt] = []
    for stmt in block:
        match stmt:
            case Let(var=var) if _binds(stmt) and var not in used:
                continue
            case Let(var=var, value=Pack(args=args, type=type_)) if _binds(stmt):
                nothing = constant(0, type_.dtype)
                some = tuple(arg if lane in used[var] else nothing for lane, arg in enumerate(args))
                out.append(replace(stmt, value=Pack(some, type_)))
            case _:
                out.append(map_blocks(stmt, lambda inner: _used_only(inner, used)))
    return tuple(out)
