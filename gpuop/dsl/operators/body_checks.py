"""Checks of a whole body: divergent barriers, and writes that always race."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from gpuop.base.errors import Loc, SemanticError
from gpuop.dsl.operators.definite_assignment import has_static_elements
from gpuop.dsl.recorder.outputs import OutputSlot
from gpuop.ir.analysis.size import MOST_NESTED, deepest
from gpuop.ir.analysis.uniform import Uniformity
from gpuop.ir.dtype_names import COMPLEX_DTYPES
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Atomic, Barrier, Block, Collective, Const, Expr, For, If, Index, Stmt, Write
from gpuop.ir.target_expressions import Extent, TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import Shape
from gpuop.ir.visit import blocks, walk

PARTS = "complex numbers have two, which `with _forEachTensorElement(f):` goes through; "


def check_nesting(body: Block) -> None:
    """Check the depth of blocks. The branches of a chain count as nested, each in the `_else` of the one before.

    Raises:
        SemanticError: blocks are nested deeper than compilers take.
    """
    depth, stmt = deepest(body)
    if depth > MOST_NESTED:
        raise SemanticError(
            f"blocks and branches of `_elseif` are nested {depth} deep, and compilers take {MOST_NESTED}; look values up in a "
            "`_constantArray`, join conditions with `&`, or write several operators",
            getattr(stmt, "loc", None),
        )


def check_barriers(kernel: Kernel) -> None:
    """Check that every thread of a work-group reaches the same barriers.

    Raises:
        SemanticError: at a barrier under a condition, or in a loop, that may differ between them.
    """
    barriers = [stmt for stmt in walk(kernel.body) if isinstance(stmt, (Barrier, Collective))]
    if not barriers:
        return
    uniformity = Uniformity(kernel.body, kernel.domain, kernel.group or kernel.domain.group)
    for barrier in barriers:
        cause = uniformity.cause(barrier)
        if cause is not None:
            what, where = _described(cause)
            it = "it" if barrier.word else "the barrier"
            raise SemanticError(
                f"`{_word(barrier)}` is not reached by all threads of a work-group together: {what}{where} may differ between "
                f"them; put {it} outside, and what depends on the thread inside",
                barrier.loc,
            )


def check_uniform(
    body: Block, domain: Domain, group: Sequence[Extent], uniform: Sequence[tuple[Expr, Loc | None]]
) -> None:
    """Check that a collective access of a work-group has one position.

    Raises:
        SemanticError: the position may differ between threads.
    """
    uniformity = Uniformity(body, domain, group) if uniform else None
    for place, loc in uniform:
        if uniformity is not None and uniformity.varies(place):
            raise SemanticError(
                "the whole work-group loads one tile, and `at=` or `element=` may differ between its threads: give the first point "
                "of the block, as in `at=(_groupRow * 16, _groupColumn * 16)`",
                loc,
            )


def _word(stmt: Barrier | Collective) -> str:
    """Builtin in the user's text."""
    if stmt.word:
        return f"{stmt.word}(…)"
    assert isinstance(stmt, Barrier)
    return "_syncThreadsLocal()" if stmt.fence == "local" else "_syncThreadsGlobal()"


def _described(cause: Stmt) -> tuple[str, str]:
    loc: Loc | None = getattr(cause, "loc", None)
    what = {If: "the condition", For: "the number of iterations"}.get(type(cause), "the loop's condition")
    return what, f" of `{loc.text}` (line {loc.line})" if loc is not None else ""


def check_cover(kernel: Kernel, slot: OutputSlot, covered: bool) -> None:
    """Refuse an output with unwritten points and no `default=` to allow them.

    Args:
        covered: every thread writes its own point on every path.
    """
    writes = [s for s in walk(kernel.body) if target(s) is slot.param]
    own = [w for w in writes if isinstance(w, Write)]
    if len(own) < len(writes):
        return
    if not covered and has_static_elements(kernel.body, slot.param):
        written = {w.element.value if isinstance(w.element, Const) else None for w in own}
        missing = sorted(set(range(slot.param.type.planes)) - written) if None not in written else []
        if missing:
            raise SemanticError(
                f"{slot.shown} has tensors of {slot.param.type.planes} elements, and element {missing[0]} is never written; "
                f"{PARTS if slot.param.type.dtype in COMPLEX_DTYPES else ''}"
                "write it too, or give the output a `default=`",
                writes[0].loc,
            )
        raise SemanticError(
            f"{slot.shown} is not written on every path through `{kernel.name}`; "
            "write it in the other branch too, or give the output a `default=`",
            writes[0].loc,
        )
    here = tuple(Index("global", axis) for axis in kernel.domain.axes)
    shape, resolved = slot.param.type.field_shape, all(isinstance(n, int) for n in kernel.group or ())
    if resolved and len(here) == len(shape) and all(w.point == here for w in own):
        threads = kernel.launched.shape
        if any(n < extent for n, extent in zip(threads, shape, strict=True)):
            extents, grid = ("×".join(map(str, s)) for s in (shape, threads))
            raise SemanticError(
                f"{slot.shown} is {extents}, and the threads, {grid}, write only their own points of it; "
                "give it a `default=`, which the others keep, or more threads by `_globalThreads`",
                writes[0].loc,
            )


def check_races(kernel: Kernel, slot: OutputSlot, covered: bool) -> None:
    """Refuse writes in which several threads are certain to compete for one place.

    Args:
        covered: every thread writes its own point on every path.
    """
    writes = [s for s in walk(kernel.body) if isinstance(s, (Write, Atomic)) and target(s) is slot.param]
    own = [w for w in writes if isinstance(w, Write) and w.point is None]
    elsewhere = [w for w in writes if isinstance(w, Atomic) or w.point is not None]
    if slot.initial is None:
        _check_meeting(kernel, slot, covered, own, elsewhere)
    elif covered:
        _check_neighbours(kernel, slot)
    for write in own:
        if kernel.domain.elements > 1 and write.element is None and write in kernel.body:
            raise SemanticError(
                f"{slot.shown} is written by {kernel.domain.elements} threads at each point, one for each tensor element: "
                "write elements (`_writeTensorElement`), or let one thread write (`with _if(_tensorElement == 0):`)",
                write.loc,
            )
    _check_one_place(kernel, slot, [w for w in elsewhere if isinstance(w, Write)])


def _check_meeting(
    kernel: Kernel, slot: OutputSlot, covered: bool, own: Sequence[Stmt], elsewhere: Sequence[Stmt]
) -> None:
    """Check that writes at own points and at computed ones are for different targets, or known not to meet."""
    if not covered and slot.default is not None:
        return
    paths = {id(stmt): path for stmt, path in _branches(kernel.body, {})}
    for own_write, other in product(own, elsewhere):
        a, b = paths[id(own_write)], paths[id(other)]
        if any(a[choice] != b[choice] for choice in a.keys() & b.keys()):
            continue
        advice = (
            "write computed places to another output" if covered else "give the output a `default=` if they never meet"
        )
        raise SemanticError(
            f"{slot.shown} is written at the thread's own point ({own_write.loc}) and at computed ones: "
            f"two threads may write one place, in any order; {advice}",
            other.loc,
        )


def _check_neighbours(kernel: Kernel, slot: OutputSlot) -> None:
    """Refuse reads of other points where every thread writes its own point without a barrier: their order is undefined."""
    here = tuple(Index("global", axis) for axis in kernel.domain.axes)
    if kernel.domain.threads <= 1 or any(isinstance(stmt, Barrier) for stmt in walk(kernel.body)):
        return
    for stmt in walk(kernel.body):
        if isinstance(stmt, Atomic) and stmt.op == "read" and stmt.memory is slot.param and stmt.index != here:
            raise SemanticError(
                f"{slot.shown} is updated in place, and each thread writes its own point: another thread may read that point "
                "before or after this; for the values from before give the same field as one more argument, and for those "
                "that the work-group wrote wait by `_syncThreadsGlobal()`",
                stmt.loc,
            )


def _branches(block: Block, path: dict[int, int]) -> Iterator[tuple[Stmt, dict[int, int]]]:
    """Every statement, with the branch of each `_codegenIf` around it."""
    for stmt in block:
        yield stmt, path
        decides = isinstance(stmt, If) and isinstance(stmt.cond, TargetConst)
        for k, inner in enumerate(blocks(stmt)):
            yield from _branches(inner, path | {id(stmt): k} if decides else path)


def _check_one_place(kernel: Kernel, slot: OutputSlot, writes: list[Write]) -> None:
    if not writes or kernel.domain.threads <= 1:
        return
    uniformity = Uniformity(kernel.body, kernel.domain, Shape(1, 1, 1), grid=True)
    for write in writes:
        place = (*(write.point or ()), *(() if write.element is None else (write.element,)))
        if (
            uniformity.cause(write) is None
            and not any(map(uniformity.varies, place))
            and uniformity.varies(write.value)
        ):
            raise SemanticError(
                f"all {kernel.domain} threads write {slot.shown} at one place, and any of them may be the last: "
                "write at coordinates of the thread's own, let one thread write (`with _if(_column == 0):`), or use atomics",
                write.loc,
            )


def target(stmt: Stmt) -> object:
    """The output that a statement writes."""
    match stmt:
        case Write(field=memory):
            return memory
        case Atomic(op=op, memory=memory) if op != "read":
            return memory
    return None
