"""Assertions: dropped, or turned into entries of a report that checked execution reads after a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuop.base.errors import SemanticError
from gpuop.ir.build import collector, constant
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import Assert, Atomic, Block, Expr, FieldParam, If, Index, Stmt
from gpuop.ir.types import INT, UINT, FieldType
from gpuop.ir.visit import walk
from gpuop.passes.rewrite import rewrite_statements

REPORT = "report"


def drop_asserts(kernel: Kernel) -> Kernel:
    body = rewrite_statements(kernel.body, lambda stmt: () if isinstance(stmt, Assert) else (stmt,))
    return replace(kernel, body=body)


def assertions(kernel: Kernel) -> tuple[Assert, ...]:
    """Every assertion, in the order of the report's entries."""
    return tuple(stmt for stmt in walk(kernel.body) if isinstance(stmt, Assert))


def report_asserts(kernel: Kernel) -> Kernel:
    """Add an output with an entry for each assertion: 1 + the number of the first thread that failed, or 0."""
    asserts = assertions(kernel)
    if not asserts:
        return kernel
    report = FieldParam(REPORT, FieldType(len(asserts), (), "uint32"))
    entries = iter(range(len(asserts)))

    def reported(stmt: Stmt) -> Block:
        if not isinstance(stmt, Assert):
            return (stmt,)
        head: list[Stmt] = []
        then: list[Stmt] = []
        fails = collector(head, stmt.loc).apply("not", stmt.cond)
        b = collector(then, stmt.loc)
        number: Expr = constant(0, UINT)
        for axis in ("element", *kernel.domain.axes):
            size = kernel.launched.extent(axis)
            if size > 1:
                position = b.cast(Index("global", axis), number.type, saturate=False)
                number = b.apply("add", b.apply("mul", number, constant(size, UINT)), position)
        args = (constant(0, UINT), b.apply("add", number, constant(1, UINT)))
        then.append(Atomic("cmpxchg", report, (constant(next(entries), INT),), args, None, None, stmt.loc))
        return (*head, If(fails, tuple(then), (), stmt.loc))

    body = rewrite_statements(kernel.body, reported)
    return replace(kernel, body=body, outputs=(*kernel.outputs, Output(report, 0)))


def failure(kernel: Kernel, report: Sequence[int]) -> SemanticError | None:
    """The error of the first assertion of the (original) kernel that failed; None where all held."""
    for stmt, entry in zip(assertions(kernel), report, strict=True):
        if entry:
            return failed(stmt, thread_of(kernel, int(entry)))
    return None


def failed(stmt: Assert, where: Mapping[str, int]) -> SemanticError:
    point = ", ".join(f"{axis} {at}" for axis, at in where.items()) or "the only one"
    message = f": {stmt.message}" if stmt.message else ""
    return SemanticError(f"an assertion does not hold{message}; the first thread seen is {point}", stmt.loc)


def thread_of(kernel: Kernel, entry: int) -> dict[str, int]:
    """The position, by axis, of the thread that an entry of the report shows."""
    number, where = entry - 1, {}
    for axis in reversed(("element", *kernel.domain.axes)):
        number, where[axis] = divmod(number, kernel.launched.extent(axis))
    axes = (*kernel.domain.axes, *(["element"] if kernel.domain.elements > 1 else []))
    return {axis: where[axis] for axis in axes}
