"""Adjoints of kernels: for each wanted input an operator that gathers, and what that needs besides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpuop.base.errors import Loc, SemanticError
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.dsl.fields.derivative_rules import with_rule
from gpuop.dsl.fields.field import Field
from gpuop.dsl.operators.gpu_operator import results_of
from gpuop.gradients.kernels.active import is_smooth
from gpuop.gradients.kernels.cut import kept_values
from gpuop.gradients.kernels.floats import as_float, in_floats
from gpuop.gradients.kernels.gather import Gather, Slice, slices
from gpuop.gradients.kernels.interpolation import between_points
from gpuop.gradients.kernels.linearize import linearized
from gpuop.gradients.kernels.places import OWN, Position, Site, Sites
from gpuop.gradients.kernels.scatter import Scatter, own_dtype, scale_of, sums_of, unscaled, without_scatters
from gpuop.gradients.kernels.signs import without_negatives
from gpuop.gradients.kernels.transpose import Transposed, transposed, varied
from gpuop.gradients.kernels.versions import single_assignment
from gpuop.ir import nodes as ir
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.text import content, identity
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import INT, SMALL_TENSOR, FieldType, Shape, Type
from gpuop.ir.values import Call, Leaf, Node, Result
from gpuop.ir.verify import Form, verify
from gpuop.ir.visit import effects, fields_read, walk
from gpuop.ops.elementwise.algebra import apply
from gpuop.ops.reduce.reductions import reduced
from gpuop.passes.relax_precision import relaxed
from gpuop.passes.rewrite import rewrite_statements
from gpuop.passes.simplify import simplify

Nodes = dict[ir.FieldParam, Node]


@dataclass(frozen=True, eq=False)
class _Reversed:
    """The transposed body of a kernel, with the fields of cotangents by the positions of outputs."""

    kernel: Kernel
    adjoint: Transposed
    bars: Mapping[int, ir.FieldParam]

    def kept_for(self, n: int) -> list[ir.Var]:
        """The values to keep for the gather of an input."""
        shares = [value for site, value in self.adjoint.shares.items() if site.field is self.kernel.inputs[n]]
        return kept_values(self.adjoint, shares)


MOST_KEPT = 256
Key = tuple[str, frozenset[int], frozenset[int], bool]
_bodies: BoundedCache[Key, _Reversed] = BoundedCache(MOST_KEPT)


def pulled(call: Call, kernel: Kernel, cotangents: Mapping[int, Field], wanted: Sequence[int]) -> dict[int, Field]:
    """The cotangents of a call's inputs, by their positions; inputs that its results do not depend on have none.

    Args:
        kernel: that of the call.
        cotangents: the cotangents of results, by position.
        wanted: the positions of the inputs.

    Raises:
        SemanticError: there is no derivative of what stands between these, at its line.
    """
    call, kernel = in_floats(call, kernel)
    cotangents = {n: as_float(field) for n, field in cotangents.items()}
    result: dict[int, Field] = {}
    for n in wanted:
        field = _pulled_to(n, call, kernel, cotangents, frozenset(wanted))
        if field is not None:
            result[n] = field
    return result


def _pulled_to(
    n: int, call: Call, kernel: Kernel, cotangents: Mapping[int, Field], wanted: frozenset[int]
) -> Field | None:
    """The cotangent of one input. What is kept has cotangents as factors, of which one read is enough."""
    body = _transposed(kernel, frozenset(cotangents), wanted, factored=True)
    stored = body.kept_for(n)
    if stored and body.adjoint.factored:
        body = _transposed(kernel, frozenset(cotangents), wanted, factored=False)
        stored = body.kept_for(n)
    nodes: Nodes = dict(zip(body.kernel.inputs, call.inputs, strict=True))
    nodes |= {body.bars[k]: field.node for k, field in cotangents.items()}
    return _Adjoint(body.adjoint, body.kernel.inputs[n], nodes, call.loc).field(stored)


def _transposed(kernel: Kernel, outputs: frozenset[int], wanted: frozenset[int], factored: bool) -> _Reversed:
    key = content(kernel), outputs, wanted, factored
    body = _bodies.get(key)
    if body is None:
        bars = {n: _bar(kernel.outputs[n].param) for n in sorted(outputs)}
        params = frozenset(kernel.inputs[n] for n in wanted)
        straight = simplify(_with_slopes_of_points(single_assignment(kernel), params))
        _check(straight, [kernel.outputs[n] for n in sorted(outputs)])
        cotangents = {kernel.outputs[n].param: bar for n, bar in bars.items()}
        body = _bodies[key] = _Reversed(kernel, transposed(straight, cotangents, params, factored), bars)
    return body


def _with_slopes_of_points(kernel: Kernel, wanted: frozenset[ir.FieldParam]) -> Kernel:
    """The kernel with interpolations between two points at whole coordinates too, by which they have a slope."""
    above, blends = between_points(kernel.body, varied(kernel.body, wanted))

    def between(stmt: ir.Stmt) -> ir.Block:
        if not isinstance(stmt, ir.Let):
            return (stmt,)
        if stmt.var in above:
            low = ir.Ref(above[stmt.var])
            return (replace(stmt, value=ir.Apply("add", (low, constant(1, low.type.dtype)), low.type)),)
        if stmt.var in blends and isinstance(stmt.value, ir.Apply):
            return (replace(stmt, value=stmt.value.args[2]),)
        return (stmt,)

    return replace(kernel, body=rewrite_statements(kernel.body, between)) if above else kernel


def _bar(param: ir.FieldParam) -> ir.FieldParam:
    return ir.FieldParam(f"{param.hint}_bar", param.type)


class _Adjoint:
    """The cotangent of one input."""

    def __init__(self, body: Transposed, param: ir.FieldParam, nodes: Nodes, loc: Loc | None) -> None:
        self.body, self.param, self.nodes, self.loc = body, param, nodes, loc
        self.kernel = body.kernel

    def field(self, stored: Sequence[ir.Var]) -> Field | None:
        for var in stored:
            self.keep(var)
        own = slices(self.body, self.param)
        if self.param in self.body.scatters:
            added = self.scattered(self.body.scatters[self.param])
            return apply("add", self.of_slices(own), added) if own else added
        return self.of_slices(own) if own else None

    def of_slices(self, own: Sequence[Slice]) -> Field:
        """The sum of the shares of places that are functions of the threads' points."""
        direct = [each for each in own if not self.missing(each)]
        groups: dict[tuple[str, ...], list[Slice]] = {}
        for each in own:
            if self.missing(each):
                groups.setdefault(self.missing(each), []).append(each)
        for axes, members in groups.items():
            direct += self.summed(axes, members)
        return self.gathered(direct)

    def scattered(self, target: ir.FieldParam) -> Field:
        """The sum of the shares of places that data decide on."""
        body = without_scatters(self.body.body, target)
        kernel, read = self.kernel, fields_read(body)
        inputs = tuple(param for param in self.nodes if param in read)
        adding = replace(
            Kernel(kernel.name, inputs, (Output(target, 0, unordered=True),), kernel.domain, body, loc=kernel.loc),
            precision=kernel.precision,
            called=kernel.called,
        )
        return _scattered(Scatter(adding, self.param), [self.nodes[param] for param in inputs], self.loc)

    def keep(self, var: ir.Var) -> None:
        """Compute a value by a kernel of its own; the body then reads it."""
        body, domain, lanes = self.body, self.kernel.domain, var.type.lanes * self.kernel.domain.elements
        kind = FieldType(domain.shape, (lanes,) if lanes > 1 else (), var.type.dtype.name)
        at = ir.Index("global", "element") if domain.elements > 1 else None
        out, param = ir.FieldParam(var.hint, kind), ir.FieldParam(var.hint, kind)
        statements = (*without_scatters(body.body), ir.Write(out, ir.Ref(var), None, at))
        self.nodes[param] = self.called(f"{var.hint}_of_{self.kernel.name}", kind, out, statements, domain).node
        read = ir.Read(param, var.type, None, at)
        moved = (replace(s, value=read) if isinstance(s, ir.Let) and s.var is var else s for s in body.body)
        linear = body.linear | {param} if var in varied(body.body, body.linear) else body.linear
        self.body = replace(body, body=tuple(moved), linear=frozenset(linear))

    def missing(self, each: Slice) -> tuple[str, ...]:
        """The threads' axes along which all read one point."""
        used = {along.axis for along in each.site.point or ()}
        axes = tuple(axis for axis in self.kernel.domain.axes if axis not in used)
        elements = self.kernel.domain.elements > 1 and each.site.element != OWN
        return (*axes, "element") if elements else axes

    def summed(self, axes: tuple[str, ...], members: Sequence[Slice]) -> list[Slice]:
        """Slices of the sums over axes of the shares of others."""
        domain, lanes = self.kernel.domain, members[0].value.type.lanes
        shares = self.shares(members, lanes)
        over = tuple(n for n, axis in enumerate(domain.axes) if axis in axes)
        total = reduced("sum", shares, over) if over else shares
        left = {axis: domain.extent(axis) for axis in domain.axes if axis not in axes}
        param = ir.FieldParam(f"{self.param.hint}_sums", total.type)
        self.nodes[param] = total.node
        return [self.of_sums(each, param, left, n * lanes, "element" in axes) for n, each in enumerate(members)]

    def shares(self, members: Sequence[Slice], lanes: int) -> Field:
        """The shares of all threads, as elements of a tensor."""
        domain = self.kernel.domain
        count = len(members) * lanes * domain.elements
        kind = FieldType(domain.shape, (count,) if count > 1 else (), self.param.type.storage.name)
        out, body = ir.FieldParam("shares", kind), list[ir.Stmt](without_scatters(self.body.body))
        for n, each in enumerate(members):
            for lane, value in enumerate(collector(body).lanes(each.value)):
                at = self.element(body, n * lanes + lane) if count > 1 else None
                body.append(ir.Write(out, value, None, at))
        return self.called(f"shares_of_{self.kernel.name}", kind, out, tuple(body), domain)

    def element(self, body: list[ir.Stmt], number: int) -> ir.Expr:
        """The element of a thread, in a block of a number."""
        elements = self.kernel.domain.elements
        if elements == 1:
            return constant(number, INT)
        own = ir.Index("global", "element")
        return collector(body).apply("add", own, number * elements) if number else own

    def of_sums(self, each: Slice, param: ir.FieldParam, left: dict[str, int], first: int, added: bool) -> Slice:
        """The slice that reads a sum; those of all elements where they are `added`."""
        body: list[ir.Stmt] = []
        b, elements = collector(body), self.kernel.domain.elements
        kind, planes = Type(param.type.storage), param.type.planes
        lanes: list[ir.Expr] = []
        for number in range(first, first + each.value.type.lanes):
            at = (
                [constant(number * elements + n, INT) for n in range(elements)]
                if added
                else [self.element(body, number)]
            )
            reads = [b.bind(ir.Read(param, kind, None, element if planes > 1 else None)) for element in at]
            lanes.append(functools.reduce(lambda x, y: b.apply("add", x, y), reads))
        value = b.pack(lanes)
        kernel = replace(self.kernel, body=tuple(body), domain=Domain(Shape(left.values()), 1 if added else elements))
        return Slice(each.site, kernel, value, left, True, False)

    def gathered(self, members: Sequence[Slice]) -> Field:
        """The sum of slices at each point of the input."""
        kind = self.param.type
        elements = self.kernel.domain.elements if any(each.site.element == OWN for each in members) else 1
        out, body = ir.FieldParam(f"{self.param.hint}_bar", kind), list[ir.Stmt]()
        parts = sorted({each.site.element for each in members}, key=str)
        numbered = [part for part in parts if isinstance(part, int)]
        if numbered and len(numbered) < len(parts):
            raise self.mixed()
        for element in range(kind.planes) if numbered else parts:
            gather = Gather(kind, elements if not numbered else 2)
            for each in members:
                if each.site.element == element:
                    gather.add(each)
            statements, total = gather.body()
            at: ir.Expr | None = ir.Index("global", "element") if element == OWN else None
            at = constant(element, INT) if isinstance(element, int) else at
            body += (*statements, ir.Write(out, total, None, at, self.kernel.loc))
        domain = Domain(kind.field_shape, elements)
        return self.called(f"adjoint_of_{self.kernel.name}", kind, out, tuple(body), domain)

    def mixed(self) -> SemanticError:
        return SemanticError(
            f"`{self.kernel.name}` has no gradient: it reads `{self.param.hint}` by elements of the thread's and by numbered ones; "
            "write two operators",
            self.kernel.loc,
        )

    def called(self, name: str, kind: FieldType, out: ir.FieldParam | Output, body: ir.Block, domain: Domain) -> Field:
        """The result of a kernel with this body, on this grid."""
        return _called(self.kernel, self.nodes, self.loc, name, kind, out, body, domain)


def _called(
    source: Kernel,
    nodes: Nodes,
    loc: Loc | None,
    name: str,
    kind: FieldType,
    out: ir.FieldParam | Output,
    body: ir.Block,
    domain: Domain,
) -> Field:
    """The result of a kernel that is made of another one."""
    read = fields_read(body)
    inputs = tuple(param for param in nodes if param in read)
    output = out if isinstance(out, Output) else Output(out)
    kernel = replace(
        Kernel(name, inputs, (output,), domain, body, loc=source.loc, precision=source.precision),
        looked=source.loc,
        called=source.called,
    )
    kernel = relaxed(simplify(without_negatives(simplify(kernel))))
    read = fields_read(kernel.body)
    inputs = tuple(param for param in kernel.inputs if param in read)
    kernel = verify(replace(kernel, inputs=inputs), Form.RECORDED)
    return results_of(kernel, identity(kernel), tuple(nodes[p] for p in inputs), loc, [kind])[0]


# --- places that data decide on -----------------------------------------------------------------------------------------


def _scattered(of: Scatter, inputs: Sequence[Node], loc: Loc | None) -> Field:
    """The sum of shares. It has the derivatives of a sum of floating numbers: those of the integers would be 0."""
    nodes: Nodes = dict(zip(of.kernel.inputs, inputs, strict=True))
    call = functools.partial(_called, of.kernel, nodes, loc)
    domain, dtype, name = of.kernel.domain, own_dtype(of.param).name, of.kernel.name
    body, most = of.greatest()
    kind = FieldType(domain.shape, (domain.elements,) if domain.elements > 1 else (), dtype)
    out, at = ir.FieldParam("most", kind), ir.Index("global", "element") if domain.elements > 1 else None
    sizes = call(f"sizes_of_{name}", kind, out, (*body, ir.Write(out, most, None, at)), domain)
    greatest = reduced("max", sizes, None) if kind.array_shape else sizes
    scale = ir.FieldParam("scale", greatest.type)
    size, out = ir.FieldParam("most", greatest.type), ir.FieldParam("scale", greatest.type)
    nodes[size] = greatest.node
    statements, value = scale_of(size, domain.threads)
    body = (*statements, ir.Write(out, value))
    nodes[scale] = call(f"scale_of_{name}", scale.type, out, body, Domain(Shape())).node
    result = _from_integers(of, scale, nodes, call)
    fields = [Field.of(node) for node in inputs]
    return with_rule(result, name, fields, functools.partial(_pulled_shares, of), functools.partial(_pushed_shares, of))


def _from_integers(of: Scatter, scale: ir.FieldParam, nodes: Nodes, call: Callable[..., Field]) -> Field:
    sums, kind, name = sums_of(of.param), of.param.type, of.kernel.name
    output = Output(sums, 0, unordered=True)
    total = ir.FieldParam(sums.hint, sums.type)
    nodes[total] = call(f"scatter_of_{name}", sums.type, output, of.added(sums, scale), of.kernel.domain).node
    big = kind.planes > SMALL_TENSOR
    at = ir.Index("global", "element") if big else None
    out = ir.FieldParam(f"{of.param.hint}_bar", kind)
    statements, value = unscaled(total, scale, of.param, at)
    body = (*statements, ir.Write(out, value, None, at))
    domain = Domain(kind.field_shape, kind.planes if big else 1)
    return call(f"adjoint_of_{name}", kind, out, body, domain)


def _pulled_shares(of: Scatter, inputs: Sequence[Field], result: Field, cotangent: Field) -> list[Field | None]:
    """Cotangents of what shares are made of: each share has that of its place."""
    loc = result.node.call.loc if isinstance(result.node, Result) else None
    call = Call(of.kernel, "", tuple(field.node for field in inputs), loc)
    smooth = [n for n, param in enumerate(of.kernel.inputs) if is_smooth(param)]
    bars = pulled(call, of.kernel, {0: cotangent}, smooth)
    return [bars.get(n) for n in range(len(inputs))]


def _pushed_shares(
    of: Scatter, inputs: Sequence[Field], result: Field, tangents: Sequence[Field | None]
) -> Field | None:
    """The sum of the shares' tangents."""
    nodes = {n: field.node for n, field in enumerate(tangents) if field is not None}
    by_value = frozenset(n for n, node in nodes.items() if isinstance(node, Leaf) and node.by_value)
    pushed = linearized(of.kernel, frozenset(nodes), frozenset(), by_value)
    if pushed.kernel is None:
        return None
    loc = result.node.call.loc if isinstance(result.node, Result) else None
    moved = [*(inputs[n].node for n in pushed.inputs), *(nodes[n] for n in pushed.tangents)]
    return _scattered(Scatter(pushed.kernel, of.param), moved, loc)


# --- what is refused ----------------------------------------------------------------------------------------------------


def _check(kernel: Kernel, outputs: Sequence[Output]) -> None:
    """Refuse kernels whose threads meet."""
    if kernel.group is not None or effects(kernel.body) & ir.Effect.THREADS:
        raise _refused(kernel, "its threads work together in groups, which is not differentiated yet")
    for output in outputs:
        if output.initial is not None:
            raise _refused(kernel, f"it updates `{output.param.hint}` in memory, where threads read what others wrote")
        if not output.unordered:  # its writes are additions
            _check_writes(kernel, output)


def _refused(kernel: Kernel, why: str, loc: Loc | None = None) -> SemanticError:
    return SemanticError(
        f"`{kernel.name}` has no gradient: {why}; give the operator a rule of its own, or pass `gp.stop_gradient(x)` for what is a "
        "constant",
        loc or kernel.loc,
    )


def _check_writes(kernel: Kernel, output: Output) -> None:
    """Refuse writes that two threads may make to one place, or a thread twice."""
    places = Sites(kernel)
    writes = [stmt for stmt in walk(kernel.body) if isinstance(stmt, ir.Write) and stmt.field is output.param]
    sites = [places.site(write) for write in writes]
    for n, (site, write) in enumerate(zip(sites, writes, strict=True)):
        apart = all(_apart(site, other) for other in sites[:n])
        if site.point is None or not apart or not _is_injective(kernel, site):
            raise _refused(kernel, f"two threads may write one place of `{output.param.hint}`", write.loc)


def _is_injective(kernel: Kernel, site: Site) -> bool:
    used = {along.axis for along in site.point or () if along.divisor == 1}
    elements = kernel.domain.elements == 1 or site.element == OWN
    return elements and all(axis in used or kernel.domain.extent(axis) == 1 for axis in kernel.domain.axes)


def _apart(a: Site, b: Site) -> bool:
    """Return whether no thread writes at one of the places what another writes at the other."""
    if isinstance(a.element, int) and isinstance(b.element, int) and a.element != b.element:
        return True
    return any(_are_apart(x, y) for x, y in zip(a.point or (), b.point or (), strict=False))


def _are_apart(x: Position, y: Position) -> bool:
    if not x.axis and not y.axis:
        return x.number != y.number
    alike = x.axis == y.axis and x.factor == y.factor and x.divisor == y.divisor == 1
    return alike and (x.number - y.number) % abs(x.factor) != 0
