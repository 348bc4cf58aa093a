"""Lane vectorization: a loop over lanes becomes straight code on vectors, also where compilers of CPUs would not find it.

Values that are equal for all lanes stay scalar. Both branches of a condition that differs between lanes are computed, and
assignments become selections by its mask (if-conversion).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from gpuop.ir import nodes as ir
from gpuop.ir.build import constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.kernel import Kernel
from gpuop.ir.ops import OPS
from gpuop.ir.target_expressions import TargetConst
from gpuop.ir.types import INT, Type
from gpuop.ir.visit import expressions, loop_values, map_blocks, walk
from gpuop.passes.lane_numbers import LaneAnalysis, LaneNumbers


def vectorize(kernel: Kernel) -> Kernel:
    if kernel.target is None or kernel.target.vector_length == 1:
        return kernel
    if not any(isinstance(stmt, ir.For) and stmt.lanes for stmt in walk(kernel.body)):
        return kernel
    arrays = {stmt.array for stmt in walk(kernel.body) if isinstance(stmt, ir.Wide)} | _of_lanes(kernel.body)
    stores = Counter(stmt.memory for stmt in walk(kernel.body) if isinstance(stmt, ir.Store))
    return without_dead_code(
        replace(kernel, body=_Vectors(kernel, {a: stores[a] for a in arrays}).outside(kernel.body))
    )


def _of_lanes(body: ir.Block) -> set[ir.Array]:
    """The private arrays with an element for each lane, which only loops over lanes of a kernel's block use, each its own."""
    loops = [stmt for stmt in body if isinstance(stmt, ir.For) and stmt.lanes]
    uses = Counter[ir.Array]()
    for loop in loops:
        own, lanes = (ir.Ref(loop.var),), len(loop_values(loop) or ())
        accesses = [*expressions(loop.body), *walk(loop.body)]
        uses.update(
            each.memory
            for each in accesses
            if isinstance(each, (ir.Load, ir.Store)) and isinstance(each.memory, ir.Array)
            if each.index == own and each.memory.extents == (lanes,) and each.memory.space == "private"
        )
    accesses = [*expressions(body), *walk(body)]
    every = Counter(each.memory for each in accesses if isinstance(each, (ir.Load, ir.Store)))
    stored = {s.memory for loop in loops for s in loop.body if isinstance(s, ir.Store)}
    return {
        array for array, count in uses.items() if count == every[array] and array in stored and array.type.lanes == 1
    }


class _Vectors:
    """Rewrites a kernel whose loops over lanes are marked.

    Attributes:
        count: the lanes of the loop that is being rewritten.
        lane: the vector of their numbers.
        vectors: the vectors that replace arrays with an element for each lane; mutable where several statements store.
        stored: arrays whose vectors have a value.
        vars: the vectors that replace variables that differ between lanes.
        counting: the integers at constant distances from those of the first lane: indices of memory.
        tensors: the vectors to store for the elements of points whose elements alternate, until there is one for each element.
    """

    def __init__(self, kernel: Kernel, stores: dict[ir.Array, int]) -> None:
        self.kernel = kernel
        self.tensors: dict[tuple[ir.FieldParam, ir.Expr], dict[int, ir.Expr]] = {}
        self.count = 1
        self.lane = ir.Ref(ir.Var("lane", Type(INT)))
        self.vectors = {
            array: ir.Ref(ir.Var(array.hint, Type(array.type.dtype, array.elements), mutable=count > 1))
            for array, count in stores.items()
        }
        self.stored: set[ir.Array] = set()
        self.vars: dict[ir.Var, ir.Ref] = {}
        self.counting = LaneAnalysis(self.vars)
        self.out: list[ir.Stmt] = []

    def bind(self, expr: ir.Expr, like: ir.Var | None = None) -> ir.Expr:
        if isinstance(expr, ir.ATOMS):
            return expr
        var = ir.Var("t", expr.type, temporary=True) if like is None else replace(like, type=expr.type)
        self.out.append(ir.Let(var, expr))
        return ir.Ref(var)

    def outside(self, block: ir.Block) -> ir.Block:
        """A block outside of loops over lanes."""
        out: list[ir.Stmt] = []
        for stmt in block:
            match stmt:
                case ir.Declare(array=array) if array in self.vectors:
                    continue
                case ir.Wide(field=field, array=array, loads=loads, index=index, left=left):
                    vector, index = self.vectors[array], index if left is None else (*index, left)
                    load = ir.Load(field, index, vector.type)
                    out.append(
                        ir.Let(vector.var, load, stmt.loc) if loads else ir.Store(field, index, vector, stmt.loc)
                    )
                case ir.For(var=var, body=inner, lanes=True):
                    values = loop_values(stmt)
                    assert values is not None
                    self.count = len(values)
                    numbers = tuple(constant(k, INT) for k in values)
                    self.lane = ir.Ref(replace(var, type=Type(var.type.dtype, self.count)))
                    self.counting.of[var] = LaneNumbers(numbers[0], tuple(k - values[0] for k in values))
                    self.vars[var] = self.lane
                    out.append(ir.Let(self.lane.var, ir.Pack(numbers, self.lane.type)))
                    out += self.block(inner, None)
                case _:
                    out.append(map_blocks(stmt, self.outside))
        return tuple(out)

    # --- statements ---------------------------------------------------------------------------------------------

    def block(self, block: ir.Block, mask: ir.Expr | None) -> ir.Block:
        """A block for all lanes where the mask holds."""
        outer, self.out, vectors = self.out, [], dict(self.vars)
        for stmt in block:
            self.stmt(stmt, mask)
        assert not self.tensors, "some elements of points are not stored"
        body, self.out = self.out, outer
        for var in self.vars.keys() - vectors.keys():
            del self.vars[var]
        return tuple(body)

    def stmt(self, stmt: ir.Stmt, mask: ir.Expr | None) -> None:
        match stmt:
            case ir.Let(var=var, value=value):
                self.let(stmt, var, value)
            case ir.Assign(var=var, value=value):
                new = self.spread(self.expr(value), Type(var.type.dtype, self.count))
                old = self.vars[var]
                selected = new if mask is None else ir.Apply("choose", (mask, self.bind(new), old), old.type)
                self.out.append(ir.Assign(old.var, selected, stmt.loc))
            case ir.Store():  # by schedules alone, to memory of the thread's own that may be written for all lanes
                self.store(stmt, self.expr(stmt.value))
            case ir.If():
                self.branches(stmt, mask)
            case ir.For(body=body):
                self.out.append(replace(stmt, body=self.block(body, mask)))
            case ir.Comment():
                self.out.append(stmt)
            case ir.While() | ir.Break() | ir.Continue() | ir.Declare() | ir.Write() | ir.Atomic() | ir.Wide():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to vectors")
            case ir.Barrier() | ir.Collective() | ir.Print() | ir.Assert():
                raise AssertionError(f"a {type(stmt).__name__} is an obstacle to several points a thread")
            case _:
                ir.assert_never(stmt)

    def store(self, stmt: ir.Store, value: ir.Expr) -> None:
        if value.type.lanes == 1 and all(map(self.counting.same, stmt.index)):
            self.out.append(replace(stmt, value=self.bind(value)))
            return
        value = self.spread(value, Type(value.type.dtype, self.count))
        if isinstance(stmt.memory, ir.Array) and stmt.memory in self.vectors:
            kind = ir.Assign if stmt.memory in self.stored else ir.Let
            self.stored.add(stmt.memory)
            self.out.append(kind(self.vectors[stmt.memory].var, value, stmt.loc))
        elif isinstance(stmt.memory, ir.FieldParam) and (numbers := self.alternate(stmt.memory, stmt.index)):
            self.store_element(stmt, stmt.memory, numbers, self.bind(value))
        else:
            index, ahead = self.places(stmt.index)
            assert not ahead, "the elements that lanes store are not neighbours"
            self.out.append(replace(stmt, index=index, value=self.bind(value)))

    def store_element(self, stmt: ir.Store, field: ir.FieldParam, numbers: LaneNumbers, value: ir.Expr) -> None:
        """Store an element of all lanes' points; they are stored whole."""
        key, planes = (field, numbers.start), field.type.planes
        parts = self.tensors.setdefault(key, {})
        parts[numbers.beyond] = value
        if len(parts) == planes:
            whole = ir.Pack(tuple(parts[k] for k in range(planes)), Type(value.type.dtype, self.count * planes))
            places = tuple(k + step for k in range(planes) for step in numbers.ahead)
            self.out.append(ir.Store(field, (numbers.start,), whole, stmt.loc, places))
            del self.tensors[key]

    def let(self, stmt: ir.Let, var: ir.Var, value: ir.Expr) -> None:
        numbers = None if var.mutable else self.counting.find(value)
        if numbers is not None:
            self.counting.of[var] = numbers.bound(lambda e: self.bind(e, var))
            return
        value = self.expr(value)
        if var.mutable:
            value = self.spread(value, Type(var.type.dtype, self.count))
        if value.type.lanes > 1:
            self.vars[var] = ir.Ref(replace(var, type=value.type))
            var = self.vars[var].var
        self.out.append(ir.Let(var, value, stmt.loc))

    def branches(self, stmt: ir.If, mask: ir.Expr | None) -> None:
        cond = self.expr(stmt.cond)
        if cond.type.lanes == 1:
            self.out.append(replace(stmt, then=self.block(stmt.then, mask), orelse=self.block(stmt.orelse, mask)))
            return
        copy = ir.Var("t", cond.type, temporary=True)  # the branch may change what it was computed from
        self.out.append(ir.Let(copy, cond, stmt.loc))
        holds: ir.Expr = ir.Ref(copy)
        for branch, test in ((stmt.then, holds), (stmt.orelse, ir.Apply("not", (holds,), cond.type))):
            if branch:
                test = self.bind(test)
                test = test if mask is None else self.bind(ir.Apply("and", (mask, test), cond.type))
                self.out += self.block(branch, test)

    # --- places -------------------------------------------------------------------------------------------------

    def places(self, index: tuple[ir.Expr, ...]) -> tuple[tuple[ir.Expr, ...], tuple[int, ...]]:
        """The index of the element of the first lane, and the distances of the others if they are no neighbours."""
        numbers = self.counting.find(index[-1])
        assert numbers is not None and all(map(self.counting.same, index[:-1])), "the elements of lanes lie anywhere"
        assert not numbers.are_limited, "the elements of lanes are the same"
        return (*index[:-1], numbers.first), () if numbers.are_neighbours else numbers.ahead

    def several(self, load: ir.Load) -> ir.Expr:
        """The elements of all lanes: a vector load of a row, single loads of a column of an array, or a gather of a field."""
        wide = Type(load.type.dtype, self.count)
        if isinstance(load.memory, ir.FieldParam) and (limits := self.limits(load.index[0])):
            return replace(load, index=limits, type=wide)
        if isinstance(load.memory, ir.FieldParam) and (numbers := self.alternate(load.memory, load.index)):
            ahead, count = tuple(k + numbers.beyond for k in numbers.ahead), self.count * load.memory.type.planes
            return replace(load, index=(numbers.start,), type=wide, ahead=ahead, whole=count)
        if isinstance(load.memory, ir.FieldParam) and self.counting.find(load.index[-1]) is None:
            return replace(load, index=tuple(map(self.expr, load.index)), type=wide)
        if isinstance(load.memory, ir.FieldParam) or all(map(self.counting.same, load.index[:-1])):
            index, ahead = self.places(load.index)
            return replace(load, index=index, type=wide, ahead=ahead)
        rows = [self.counting.find(at) for at in load.index]
        lanes = []
        for k in range(self.count):
            pairs = zip(load.index, rows, strict=True)
            place = tuple(at if numbers is None else self.bind(numbers.in_lane(k)) for at, numbers in pairs)
            lanes.append(self.bind(replace(load, index=place)))
        return ir.Pack(tuple(lanes), wide)

    def alternate(self, field: ir.FieldParam, index: tuple[ir.Expr, ...]) -> LaneNumbers | None:
        """The places of an element of neighbouring points, where the elements of a field's points alternate; else None."""
        numbers, planes = self.counting.find(index[0]), field.type.planes
        if numbers is None or not self.kernel.layout(field).alternates(field.type) or not 0 <= numbers.beyond < planes:
            return None
        return numbers if numbers.ahead == tuple(planes * k for k in range(self.count)) else None

    def limits(self, at: ir.Expr) -> tuple[ir.Expr, ...]:
        """The first index of limited ones, the number of indices from it on, and the distance to the least one."""
        numbers = self.counting.find(at)
        if numbers is None or not numbers.are_limited:
            return ()
        first, last, type_ = numbers.first, numbers.last, numbers.first.type
        count: ir.Expr = constant(self.count, type_.dtype)
        if last is not None:
            count = self.bind(ir.Apply("sub", (last, first), type_))
            count = self.bind(ir.Apply("add", (count, constant(1, type_.dtype)), type_))
        if numbers.least is None:
            return first, count
        return first, count, self.bind(ir.Apply("sub", (numbers.least, first), type_))

    # --- expressions --------------------------------------------------------------------------------------------

    def expr(self, expr: ir.Expr) -> ir.Expr:
        """An expression whose operands are atoms; a vector where it differs between lanes."""
        match expr:
            case ir.Ref(var=var) if var in self.counting.of and var not in self.vars:
                self.vars[var] = self.numbers(self.counting.of[var])
                return self.vars[var]
            case ir.Ref(var=var):
                return self.vars.get(var, expr)
            case ir.Load(memory=ir.Array() as array) if array in self.vectors:
                return self.vectors[array]
            case ir.Load(index=index) if not all(map(self.counting.same, index)):
                return self.several(expr)
            case ir.Apply(op=op, args=args):
                operands = [self.expr(a) for a in args]
                if all(a.type.lanes == 1 for a in operands):
                    return expr
                types, result = OPS[op].rule(op, [a.type for a in operands])
                spread = map(self.spread, operands, types)
                return ir.Apply(op, tuple(map(self.bind, spread)), result)
            case ir.Cast(arg=arg, type=type_) | ir.Bits(arg=arg, type=type_):
                operand = self.expr(arg)
                return replace(expr, arg=operand, type=Type(type_.dtype, operand.type.lanes))
            case ir.Const() | TargetConst() | ir.Index() | ir.Stride() | ir.Argument() | ir.Load():
                return expr
            case ir.Lane() | ir.Pack() | ir.Read():
                raise AssertionError(f"a {type(expr).__name__} survives lowering")
            case _:
                ir.assert_never(expr)

    def numbers(self, lane_numbers: LaneNumbers) -> ir.Ref:
        """The vector of the values of an integer in all lanes."""
        first, type_ = lane_numbers.first, Type(lane_numbers.first.type.dtype, self.count)
        lanes: ir.Expr = self.lane
        if not lane_numbers.are_neighbours:
            lanes = self.bind(ir.Pack(tuple(constant(k, first.type.dtype) for k in lane_numbers.ahead), type_))
        elif type_ != self.lane.type:
            lanes = self.bind(ir.Cast(self.lane, type_, saturate=False))
        numbers = self.bind(ir.Apply("add", (self.bind(self.spread(first, type_)), lanes), type_))
        for op, limit in (("max", lane_numbers.least), ("min", lane_numbers.last)):
            if limit is not None:
                numbers = self.bind(ir.Apply(op, (numbers, self.bind(self.spread(limit, type_))), type_))
        assert isinstance(numbers, ir.Ref)
        return numbers

    def spread(self, expr: ir.Expr, type_: Type) -> ir.Expr:
        """A scalar in all lanes."""
        return ir.Cast(expr, type_, saturate=False) if expr.type.lanes < type_.lanes else expr
