"""Forward mode: a recorded kernel to the kernel of its tangents, statement by statement.

Each active variable, array and output gets a tangent beside it. The statements of the kernel itself stay where tangents need them;
reads at borders read the tangent under the same border, and 0 where the field is a number outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.records import dataclass
from gpuop.gradients.kernels.active import Activity, activity
from gpuop.gradients.kernels.collectives import collective_tangent
from gpuop.gradients.kernels.interpolation import between_points
from gpuop.ir import nodes as ir
from gpuop.ir.build import Builder, collector, constant
from gpuop.ir.dead_code import without_dead_code
from gpuop.ir.derivatives import ZERO, partial, plus
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.types import Type
from gpuop.ir.verify import Form, verify
from gpuop.ir.visit import Symbol, bound, fields_read, map_blocks, walk
from gpuop.passes.relax_precision import relaxed

PICKING = ("choose", "max", "min", "fmax", "fmin")  # rows whose result is one of two operands


@dataclass(frozen=True)
class Linearized:
    """The kernel of tangents.

    Attributes:
        kernel: its inputs are those of the first kernel that it needs, then their tangents; None where no output is active.
        inputs: numbers of the first kernel's inputs that it reads.
        tangents: numbers of those whose tangents it reads.
        outputs: numbers of the outputs that it computes the tangents of, first of its own outputs.
        bits: numbers of the outputs that hold bits of active values.
    """

    kernel: Kernel | None
    inputs: tuple[int, ...]
    tangents: tuple[int, ...]
    outputs: tuple[int, ...]
    bits: frozenset[int]


def linearized(kernel: Kernel, active: frozenset[int], bits: frozenset[int], by_value: frozenset[int]) -> Linearized:
    """The tangents of a kernel.

    Args:
        active: numbers of the inputs that have tangents.
        bits: numbers of the inputs whose integers hold bits of active values.
        by_value: numbers of the inputs whose tangents are scalar arguments.

    Raises:
        SemanticError: a statement between an active input and an output has no derivative.
    """
    kernel = without_dead_code(kernel)
    facts = activity(kernel, (kernel.inputs[n] for n in active), (kernel.inputs[n] for n in bits))
    of_bits = frozenset(n for n, output in enumerate(kernel.outputs) if output.param in facts.bits)
    numbers = tuple(n for n, output in enumerate(kernel.outputs) if output.param in facts.smooth)
    if not numbers:
        return Linearized(None, (), (), (), of_bits)
    tangents = Tangents(kernel, facts, {kernel.inputs[n] for n in by_value})
    result = tangents.kernel([kernel.outputs[n] for n in numbers])
    read = fields_read(result.body) | {p for o in result.outputs for p in (o.initial, o.over) if p is not None}
    inputs = tuple(n for n, param in enumerate(kernel.inputs) if param in read)
    moved = tuple(n for n, param in enumerate(kernel.inputs) if tangents.fields.get(param) in read)
    params = (*(kernel.inputs[n] for n in inputs), *(tangents.fields[kernel.inputs[n]] for n in moved))
    return Linearized(verify(relaxed(replace(result, inputs=params)), Form.RECORDED), inputs, moved, numbers, of_bits)


class Tangents:
    """The statements of a kernel with those of its tangents.

    Attributes:
        fields: the tangent of each active input and output.
    """

    def __init__(self, kernel: Kernel, facts: Activity, by_value: set[ir.FieldParam]) -> None:
        self.source, self.loc = kernel, kernel.loc
        self.vars: dict[ir.Var, ir.Var] = {}
        self.arrays: dict[ir.Array, ir.Array] = {}
        self.fields: dict[ir.FieldParam, ir.FieldParam] = {}
        for symbol in facts.smooth:
            name = f"d_{symbol.hint}"
            if isinstance(symbol, ir.Var):
                self.vars[symbol] = ir.Var(name, symbol.type, symbol.mutable, symbol.temporary)
            elif isinstance(symbol, ir.Array):
                self.arrays[symbol] = replace(symbol, hint=name)
            else:
                self.fields[symbol] = ir.FieldParam(name, symbol.type, symbol in by_value)
        # outputs that the kernel reads itself, which it has to compute again
        self.read_again = {
            stmt.memory for stmt in walk(kernel.body) if isinstance(stmt, ir.Atomic) and stmt.var is not None
        }.intersection(kernel.written)
        self.above, self.blends = between_points(kernel.body, facts.smooth)

    def kernel(self, outputs: Iterable[Output]) -> Kernel:
        """The kernel of the tangents of some outputs, with all inputs."""
        again = (output for output in self.source.outputs if output.param in self.read_again)
        result = replace(
            self.source,
            name=f"{self.source.name}_tangent",
            inputs=(*self.source.inputs, *(self.fields[p] for p in self.source.inputs if p in self.fields)),
            outputs=(*map(self.output, outputs), *again),
            body=self.block(self.source.body),
            dynamic=self.source.dynamic | {self.fields[p] for p in self.source.dynamic if p in self.fields},
        )
        return without_dead_code(result)

    def output(self, output: Output) -> Output:
        """The output of a tangent; where nothing is written it is 0, or the tangent of what was there."""
        initial = None if output.initial is None else self.fields.get(output.initial)
        starts = output.fill is not None or (output.initial is not None and initial is None)
        over = None if output.over is None else self.fields.get(output.over)
        param = self.fields[output.param]
        return replace(output, param=param, fill=0.0 if starts else None, over=over, initial=initial)

    # --- statements -----------------------------------------------------------------------------------------------------

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(new for stmt in block for new in self.stmt(stmt))

    def stmt(self, stmt: ir.Stmt) -> list[ir.Stmt]:
        self.loc = stmt.loc or self.loc
        match stmt:
            case ir.Let() | ir.Assign():
                return self.assignment(stmt)
            case ir.Declare(array=array):
                return [stmt, replace(stmt, array=self.arrays[array])] if array in self.arrays else [stmt]
            case ir.Write() | ir.Store():
                return self.into_memory(stmt)
            case ir.Atomic():
                return self.atomic(stmt)
            case ir.Collective():
                return self.collective(stmt)
            case ir.Print() | ir.Assert():
                return []  # of the kernel itself
            case ir.Wide():
                raise self.refused("one access to several neighbours", "read and write points one by one")
        return [map_blocks(stmt, self.block)]

    def assignment(self, stmt: ir.Let | ir.Assign) -> list[ir.Stmt]:
        """A variable, and its tangent. The tangent of a new value uses the operands before they change."""
        tangent, low = self.vars.get(stmt.var), self.above.get(stmt.var)
        out: list[ir.Stmt] = []
        b = collector(out, stmt.loc)
        if low is not None:  # the next point, where the coordinate is whole too
            out.append(replace(stmt, value=ir.Apply("add", (ir.Ref(low), constant(1, low.type.dtype)), low.type)))
            return out
        if tangent is None:
            return [stmt]
        kind = type(stmt)
        if isinstance(stmt, ir.Let):
            out.append(stmt)
            value = self.of(b, stmt.value, ir.Ref(stmt.var), stmt.var)
            out.append(kind(tangent, self.filled(b, value, tangent.type), stmt.loc))
            return out
        result = stmt.value if isinstance(stmt.value, ir.ATOMS) else b.copy(stmt.value)
        value = self.of(b, stmt.value, result, stmt.var)
        slope = self.filled(b, value, tangent.type)
        slope = b.copy(slope) if isinstance(slope, ir.Ref) and slope.var.mutable else b.bind(slope)
        return [*out, replace(stmt, value=result), kind(tangent, slope, stmt.loc)]

    def into_memory(self, stmt: ir.Write | ir.Store) -> list[ir.Stmt]:
        place = stmt.field if isinstance(stmt, ir.Write) else stmt.memory
        own, memory = self.repeated(stmt, place), self.memory(place)
        if memory is None:
            return own
        out: list[ir.Stmt] = []
        b = collector(out, stmt.loc)
        value = b.bind(self.filled(b, self.of(b, stmt.value, stmt.value), stmt.value.type))
        if isinstance(stmt, ir.Store):
            return [*own, *out, replace(stmt, value=value, memory=memory)]
        assert isinstance(memory, ir.FieldParam)
        return [*own, *out, replace(stmt, value=value, field=memory)]

    def atomic(self, stmt: ir.Atomic) -> list[ir.Stmt]:
        own = self.repeated(stmt, stmt.memory)
        memory = self.memory(stmt.memory)
        if memory is None:
            return own
        var = self.vars.get(stmt.var) if stmt.var is not None else None
        if stmt.op == "read":
            return [*own, *([replace(stmt, memory=memory, var=var)] if var is not None else [])]
        if stmt.op not in ("add", "sub") or var is not None:
            word = f"`_atomic_{stmt.op}`" + (" whose result is used" if var is not None else "")
            raise self.refused(word, "add with `_atomic_add` and leave its result, or reduce with `gp.reduce`")
        out: list[ir.Stmt] = []
        b = collector(out, stmt.loc)
        value = self.of(b, stmt.args[0], stmt.args[0])
        added = [] if value is None else [replace(stmt, memory=memory, args=(b.bind(value),), var=None)]
        return [*own, *out, *added]

    def collective(self, stmt: ir.Collective) -> list[ir.Stmt]:
        tangent = self.vars.get(stmt.var)
        if tangent is None:
            return [stmt]
        out: list[ir.Stmt] = []
        b = collector(out, stmt.loc)
        value = b.bind(self.filled(b, self.of(b, stmt.value, stmt.value), stmt.value.type))
        outside = None if stmt.outside is None else self.of(b, stmt.outside, stmt.outside)
        block = collective_tangent(stmt, tangent, value, outside, self.combined)
        if block is None:
            raise self.refused(f"`{stmt.word}` of vectors", "combine components one by one")
        return [stmt, *out, *block]

    def combined(self, body: ir.Block, result: ir.Expr, tangents: dict[ir.Var, ir.Var]) -> tuple[ir.Block, ir.Expr]:
        """The body of a function of two values with its tangents, and the tangent of the result."""
        inner = {symbol for symbol in bound(body) if isinstance(symbol, ir.Var) and symbol.type.kind == "f"}
        within = Tangents(self.source, Activity(frozenset(inner), frozenset()), set())
        within.vars |= tangents
        out = list(within.block(body))
        b = collector(out)
        tangent = b.bind(self.filled(b, within.of(b, result, result), result.type))
        return tuple(out), tangent

    def repeated(self, stmt: ir.Stmt, memory: ir.Array | ir.FieldParam) -> list[ir.Stmt]:
        """The statement of the kernel itself; none if it only makes a result."""
        return [] if isinstance(memory, ir.FieldParam) and memory not in self.read_again else [stmt]

    def memory(self, memory: Symbol) -> ir.Array | ir.FieldParam | None:
        return self.arrays.get(memory) if isinstance(memory, ir.Array) else self.fields.get(memory)  # type: ignore[arg-type]

    # --- expressions ----------------------------------------------------------------------------------------------------

    def filled(self, b: Builder, tangent: ir.Expr | None, kind: Type) -> ir.Expr:
        """A tangent, 0 for none."""
        return b.cast(constant(0, kind.dtype), kind) if tangent is None else tangent

    def of(self, b: Builder, expr: ir.Expr, result: ir.Expr, var: ir.Var | None = None) -> ir.Expr | None:
        """The tangent of an expression whose value is `result`; None for 0."""
        match expr:
            case ir.Ref(var=symbol):
                return ir.Ref(self.vars[symbol]) if symbol in self.vars else None
            case ir.Read(field=field):
                if field not in self.fields:
                    return None
                fill = None if expr.fill is None else constant(0, expr.type.dtype)
                return replace(expr, field=self.fields[field], fill=fill)
            case ir.Load(memory=memory):
                tangents = self.memory(memory)
                return None if tangents is None else replace(expr, memory=tangents)
            case ir.Apply():
                return self.applied(b, expr, result, var)
            case ir.Cast(arg=arg):
                tangent = self.of(b, arg, arg) if arg.type.kind == expr.type.kind == "f" else None
                return None if tangent is None else b.cast(tangent, expr.type)
            case ir.Lane(arg=arg, lane=lane):
                tangent = self.of(b, arg, arg)
                return None if tangent is None else b.lane(tangent, lane)
            case ir.Pack(args=args):
                parts = [self.of(b, arg, arg) for arg in args]
                filled = [self.filled(b, part, arg.type) for part, arg in zip(parts, args, strict=True)]
                return b.pack(filled) if any(part is not None for part in parts) else None
        return None

    def applied(self, b: Builder, expr: ir.Apply, result: ir.Expr, var: ir.Var | None) -> ir.Expr | None:
        """The sum of the partial derivatives times the operands' tangents, in the order of the operands."""
        tangents = [self.of(b, arg, arg) for arg in expr.args]
        if expr.type.kind != "f" or all(tangent is None for tangent in tangents):
            return None
        if var in self.blends:
            return tangents[2]
        if expr.op in PICKING:
            return self.picked(b, expr, result, tangents[-2:])
        total: ir.Expr | None = None
        for number, tangent in enumerate(tangents):
            slope = ZERO if tangent is None else partial(b, expr.op, expr.args, result, number)
            if tangent is not None and slope is not ZERO:
                total = plus(b, total, slope, tangent)
        return total

    def picked(self, b: Builder, expr: ir.Apply, result: ir.Expr, tangents: list[ir.Expr | None]) -> ir.Expr:
        """The tangent of the operand that the result is, whatever the other one is."""
        first = partial(b, expr.op, expr.args, result, len(expr.args) - 2)
        assert first is not ZERO
        return b.apply("choose", first, *(self.filled(b, tangent, expr.type) for tangent in tangents))

    def refused(self, construct: str, remedy: str) -> SemanticError:
        """The error of a construct that has no derivative, at its line."""
        loc: Loc | None = self.loc or self.source.loc
        return SemanticError(
            f"`{self.source.name}` cannot be differentiated here: {construct} has no derivative: {remedy}, or give the operator a "
            "rule with `defjvp` or `defvjp`; `gp.stop_gradient` of the argument makes it a constant",
            loc,
        )
