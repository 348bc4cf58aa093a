"""Writes the statements of random programs down, and the whole kernels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gpuop import dsl
from gpuop.dsl import *

from .kinds import NUMPY, split
from .programs import BINS
from .writer import AXES, Writer, named

KINDS = {name[1:-3] for name in dsl.__all__ if name.endswith("Var")}


class Body(Writer):
    """Statements of a program."""

    def block(self, block: tuple) -> None:
        for stmt in block:
            getattr(self, "do_" + stmt[0].replace(" ", "_"))(*stmt[1:])

    # --- variables and arrays -----------------------------------------------------------------------------------------

    def do_nothing(self):
        pass

    def do_set(self, name, value):
        self.names[name].assign(self.value(value))

    def do_update(self, name, op, value):
        self.names[name].assign(self.operate(op, self.names[name], self.value(value)))

    def do_component(self, name, letters, value):
        setattr(self.names[name], letters, self.value(value))

    def do_element(self, name, lane, value):
        self.names[name][lane] = self.value(value)

    def do_store(self, name, places, value):
        self.names[name][tuple(map(self.place, places))] = self.value(value)

    def do_add(self, name, places, value):
        self.names[name][tuple(map(self.place, places))] += self.value(value)

    def do_new(self, name, kind, first):
        make = named(f"_{kind}Var") if kind in KINDS else None
        if make is None or (first is not None and first[1] == kind):
            self.names[name] = _var(self.value(first))
        else:
            self.names[name] = make() if first is None else make(self.value(first))

    def do_new_array(self, name, kind, dims):
        self.names[name] = named(f"_{kind}Array")(*dims)

    # --- outputs and local memory -------------------------------------------------------------------------------------

    def mapped(self, output):
        """The place that a thread writes: no two threads have the same one."""
        if output.how != "scatter":
            return ()
        move = {
            "mirrored": lambda i, n: n - 1 - i, "rolled": lambda i, n: (i + 2) % n, "same": lambda i, n: i,
            "moved": lambda i, n: i + 1,
        }[output.extra]  # fmt: skip
        return tuple(move(*AXES[a]) for a in self.axes)

    def do_write(self, n, value):
        output = self.program.outputs[n]
        if self.program.tensor:
            _writeTensorElement(
                named(f"_out{n}"), self.value(value), *([*self.mapped(output), _tensorElement] if n % 2 else ())
            )
        else:
            _writeTensor(named(f"_out{n}"), self.value(value), *self.mapped(output))

    def do_write_element(self, n, element, value):
        at = self.mapped(self.program.outputs[n])
        _writeTensorElement(named(f"_out{n}"), self.value(value), *at, self.place(element))

    def do_atomic(self, n, point, value):
        at = [self.value(p) for p in point]
        at = [
            _abs(p) % e if i % 2 else p for i, (p, e) in enumerate(zip(at, self.program.outputs[n].grid, strict=True))
        ]
        self.atomic(self.program.outputs[n].extra, value, named(f"_out{n}"), *at)

    def atomic(self, op, value, *place):
        operand = () if op in ("inc", "dec") else (self.value(value),)
        named(BINS[op])(_pointerTo(*place), *operand)

    def do_own_slot(self, name, value):
        self.names[name][self.slot()] = self.value(value)

    def do_leader(self, name, value):
        with _if((_localLayer + _localRow + _localColumn) == 0):
            self.names[name].assign(self.value(value))

    def do_bin(self, name, place, value):
        op = next(b[3] for b in self.program.bins if b[0] == name)
        operand = () if op in ("inc", "dec") else (self.value(value),)
        at = self.place(place)
        named(BINS[op])(_pointerTo(self.names[name][at]), *operand)

    def do_barrier(self, fence):
        _syncThreadsLocal() if fence == "local" else _syncThreadsGlobal()

    # --- blocks -------------------------------------------------------------------------------------------------------

    def do_if(self, branches, orelse):
        (first, then), *others = branches
        with _if(self.value(first)):
            self.block(then)
        for cond, block in others:
            with _elseif(self.value(cond)):
                self.block(block)
        if orelse is not None:
            with _else():
                self.block(orelse)

    def do_leave_if(self, cond, how):
        with _if(self.value(cond)):
            _break() if how == "_break" else _continue()

    def do_for(self, name, start, stop, step, unroll, body):
        bounds = [self.value(e) for e in (start, stop) if e is not None]
        if step == "computed":
            bounds.append((_column & 1) * 2 - 1)
        elif step is not None:
            bounds.append(step)
        with _for(*bounds, unroll=unroll) as i:
            self.names[name] = i
            self.block(body)

    def do_while(self, turns, condition, late, body):
        left = _intVar(turns)
        if late:
            with _while(lambda: self.goes_on(left, condition)):
                left -= 1
                self.block(body)
        else:
            with _while(self.goes_on(left, condition)):
                left -= 1
                self.block(body)

    def goes_on(self, left, condition):
        return left > 0 if condition is None else (left > 0) & self.value(condition)

    def do_each(self, shape, body):
        with _forEachTensorElement(shape):
            self.block(body)

    # --- the whole ----------------------------------------------------------------------------------------------------

    def threads(self) -> None:
        program = self.program
        if program.mode in ("threads", "element"):
            _globalThreads(program.grid, *([program.tensor] if program.mode == "element" else ()))
        if program.group is not None:
            _localThreads(*program.group)

    def declare(self) -> None:
        p = self.program
        for name, _, extents, values in p.tables:
            self.names[name] = _constantArray(np.array(values, NUMPY[_]).reshape(extents))
        for name, kind, dims in p.arrays:
            self.names[name] = named(f"_{kind}Array")(*dims)
        for name, kind, volatile, _late in p.locals:
            sizes = [named(f"_local{a.capitalize()}s") for a in self.axes]
            memory = _local(named(f"_{kind}Array")(*sizes))
            self.names[name] = _volatile(memory) if volatile else memory
        for name, kind in p.shared:
            self.names[name] = _local(named(f"_{kind}Var")())
        for name, kind, extent, _ in p.bins:
            self.names[name] = _local(named(f"_{kind}Array")(extent))

    def start(self) -> None:
        """Variables, and local memory, which nobody else initialises."""
        p = self.program
        for name, _, first in (*p.variables, *p.uniform):
            self.names[name] = _var(self.value(first))
        for name, kind, _, _late in p.locals:
            self.names[name][self.slot()] = _convert(_column * 3 + 1, NUMPY[split(kind)[0]])
        if p.shared or p.bins:
            with _if((_localLayer + _localRow + _localColumn) == 0):
                for name, _ in p.shared:
                    self.names[name].assign(3)
                for name, _, extent, _ in p.bins:
                    for k in range(extent):
                        self.names[name][k] = k * 5
            _syncThreadsLocal()

    def write(self) -> Any:
        """The body of the operator."""
        self.threads()
        if self.program.mode == "each":
            with _forEachTensorElement(self.program.tensor):
                self.run()
            return None
        return self.run()

    def run(self) -> Any:
        self.declare()
        self.start()
        self.block(self.program.body)
        outputs = self.program.outputs
        if self.program.returned:
            return tuple(self.value(o.value) for o in outputs)
        for n, output in enumerate(outputs):
            if output.value is not None:
                self.end(n, output)
        return None

    def end(self, n, output) -> None:
        if prod(output.tensor) in (2, 3) and output.how == "own" and not self.program.tensor and n % 2:
            for k in range(prod(output.tensor)):  # every element by itself
                value = self.value(output.value)
                _writeTensorElement(named(f"_out{n}"), value if value.type.lanes == 1 else value[k], k)
        else:
            self.do_write(n, output.value)
