"""Each rule of `verify` refuses a kernel that breaks it, with its sentence, and accepts a neighbour that does not."""

from __future__ import annotations

import ast
import inspect
import traceback
from dataclasses import dataclass, replace

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.config import config
from gpuop.dsl import *
from gpuop.dsl.recorder.recorder import current
from gpuop.ir import verify as rules
from gpuop.ir.kernel import Kernel, Output
from gpuop.ir.nodes import (
    Apply,
    Array,
    Assert,
    Assign,
    Atomic,
    Block,
    Break,
    Cast,
    Collective,
    Const,
    Continue,
    Declare,
    FieldParam,
    For,
    If,
    Index,
    Lane,
    Let,
    Load,
    Pack,
    Read,
    Ref,
    Store,
    Var,
    While,
    Wide,
    Write,
)
from gpuop.ir.target import Target
from gpuop.ir.target_expressions import Fact, TargetConst
from gpuop.ir.thread_grid import Domain
from gpuop.ir.types import BOOL, FLOAT, INT, FieldType, Shape, Type
from gpuop.ir.verify import Form, VerifyError, verify
from gpuop.passes import pipeline
from gpuop.passes.pipeline import PIPELINE, lower

RECORDED, LOWERED, PRINTABLE = Form
GRID = FieldType((4, 8))
F, G, OUT, OTHER = (FieldParam(name, GRID) for name in ("f", "g", "out", "other"))
BYTES = FieldParam("bytes", FieldType((4, 8), dtype="uint8"))
WHOLE, REAL, TRUTH, PAIR = Type(INT), Type(FLOAT), Type(BOOL), Type(FLOAT, 2)
SCALARS = Target("opencl")
VECTORS = replace(SCALARS, widening="vector", simd_width=4)

X, Y = Var("x", REAL), Var("y", REAL)
N, HOLDS, V = Var("n", WHOLE), Var("holds", TRUTH), Var("v", PAIR)
TOTAL = Var("total", REAL, mutable=True)
ARRAY, TILE = Array("array", REAL, (4,)), Array("tile", REAL, (4,), "local")
INTEGERS = Array("integers", WHOLE, (4,))
ZERO, ONE, TRUE = Const(0, WHOLE), Const(1.0, REAL), Const(True, TRUTH)
ROW, COLUMN = Index("global", "row"), Index("global", "column")
WIDTH = TargetConst(Fact("simd_width"), WHOLE)


def kernel(*body: object, target: Target | None = None) -> Kernel:
    """Of f and g; writes out."""
    return Kernel("handmade", (F, G), (Output(OUT), Output(BYTES)), Domain(Shape(4, 8)), body, target=target)


def loop(*body: object, head: Block = (), cond: object = TRUE) -> While:
    return While(head, cond, body)


def count(*body: object) -> For:
    return For(N, ZERO, Const(4, WHOLE), Const(1, WHOLE), body)


def add(a: object, b: object, result: Type = REAL) -> Apply:
    return Apply("add", (a, b), result)


@dataclass(frozen=True)
class Case:
    """A body that breaks the rule of this sentence, and a neighbour that breaks none."""

    sentence: str
    refused: Block
    accepted: Block
    form: Form = RECORDED
    target: Target | None = None


DECLARED, LET_X, LET_N = Declare(ARRAY), Let(X, ONE), Let(N, ZERO)
VARIABLE = Let(TOTAL, ONE)
CASES = [
    # symbols
    Case("x is bound twice", (LET_X, LET_X), (LET_X, Let(Y, ONE))),
    Case("array is bound twice", (DECLARED, DECLARED), (DECLARED, Declare(INTEGERS))),
    Case("n is bound twice", (count(), count()), (count(),)),
    Case("x is bound twice", (loop(LET_X, head=(LET_X,)),), (loop(Let(Y, ONE), head=(LET_X,)),)),
    Case("x is bound twice", (LET_X, Atomic("add", OUT, (ROW, COLUMN), (ONE,), X)),
         (LET_X, Atomic("add", OUT, (ROW, COLUMN), (ONE,), Y))),
    Case("x is used before or outside its definition", (Let(Y, Ref(X)), LET_X), (LET_X, Let(Y, Ref(X)))),
    Case("x is used before or outside its definition", (If(TRUE, (LET_X,)), Write(OUT, Ref(X))),
         (LET_X, If(TRUE, ()), Write(OUT, Ref(X)))),
    Case("x is used before or outside its definition", (If(TRUE, (LET_X,), (Let(Y, Ref(X)),)),),
         (If(TRUE, (LET_X, Let(Y, Ref(X)))),)),
    Case("n is used before or outside its definition", (count(), Store(OUT, (Ref(N),), ONE)),
         (count(Store(OUT, (Ref(N),), ONE)),)),
    Case("x is used before or outside its definition", (loop(head=(LET_X,)), Write(OUT, Ref(X))),
         (loop(Write(OUT, Ref(X)), head=(LET_X,)),)),
    Case("holds is used before or outside its definition", (loop(Let(HOLDS, TRUE), cond=Ref(HOLDS)),),
         (loop(head=(Let(HOLDS, TRUE),), cond=Ref(HOLDS)),)),
    # values and what holds them
    Case("x: float is bound to a int", (Let(X, ZERO),), (Let(X, ONE),)),
    Case("total is not an assignable variable here", (Assign(TOTAL, ONE),), (VARIABLE, Assign(TOTAL, ONE))),
    Case("x is not an assignable variable here", (LET_X, Assign(X, ONE)), (VARIABLE, Assign(TOTAL, ONE))),
    Case("total: float is assigned a int", (VARIABLE, Assign(TOTAL, ZERO)),
         (VARIABLE, Assign(TOTAL, Cast(ZERO, REAL)))),
    Case("plus is no row of the operator table", (Let(X, Apply("plus", (ONE, ONE), REAL)),), (Let(X, add(ONE, ONE)),)),
    Case("a float2 of 3 components", (Let(V, Pack((ONE, ONE, ONE), PAIR)),), (Let(V, Pack((ONE, ONE), PAIR)),)),
    Case("add is mistyped", (Let(X, add(ONE, ZERO)),), (Let(X, add(ONE, ONE)),)),
    Case("add is mistyped", (Let(N, add(ONE, ONE, WHOLE)),), (Let(N, add(ZERO, ZERO, WHOLE)),)),
    Case("shl is mistyped", (Let(N, Apply("shl", (ZERO, ONE), WHOLE)),),
         (Let(N, Apply("shl", (ZERO, ZERO), WHOLE)),)),
    Case("an operand is not an atom: Apply(", (Let(X, add(add(ONE, ONE), ONE)),),
         (Let(Y, add(ONE, ONE)), Let(X, add(Ref(Y), ONE)))),
    Case("an operand is not an atom: Read(", (Write(OUT, Read(F, REAL)),), (Let(X, Read(F, REAL)), Write(OUT, Ref(X)))),
    Case("an operand is not an atom: Apply(", (loop(cond=Apply("lt", (ONE, ONE), TRUTH)),),
         (loop(head=(Let(HOLDS, Apply("lt", (ONE, ONE), TRUTH)),), cond=Ref(HOLDS)),)),
    Case("_target.simd_width is left though the target is known", (Let(N, WIDTH),), (LET_N,), target=SCALARS),
    # conditions and loops
    Case("a condition is a int", (If(ZERO, ()),), (If(TRUE, ()),)),
    Case("a condition is a float", (loop(cond=ONE),), (loop(cond=TRUE),)),
    Case("an assertion's condition is a int", (Assert(ZERO, "holds"),), (Assert(TRUE, "holds"),)),
    Case("a break or continue outside a loop", (If(TRUE, (Break(),)),), (count(If(TRUE, (Break(),))),)),
    Case("a break or continue outside a loop", (loop(), Continue()), (loop(Continue()),)),
    # fields
    Case("other is not an input", (Let(X, Read(OTHER, REAL)),), (Let(X, Read(F, REAL)),)),
    Case("f: wrong index count", (Let(X, Read(F, REAL, (ROW,))),), (Let(X, Read(F, REAL, (ROW, COLUMN))),)),
    Case("f: no border is zero", (Let(X, Read(F, REAL, border="zero")),), (Let(X, Read(F, REAL, border="wrap")),)),
    Case("f is not an output", (Write(F, ONE),), (Write(OUT, ONE),)),
    Case("out is written a int", (Write(OUT, ZERO),), (Write(OUT, ONE),)),
    Case("bytes is written a float", (Write(BYTES, ONE),), (Write(BYTES, Const(1, Type(BYTES.type.storage))),)),
    # arrays, and fields at offsets
    Case("tile: local memory in a block", (If(TRUE, (Declare(TILE),)),), (Declare(TILE), If(TRUE, (DECLARED,)))),
    Case("array is not readable here", (Let(X, Load(ARRAY, (ZERO,), REAL)), DECLARED),
         (DECLARED, Let(X, Load(ARRAY, (ZERO,), REAL)))),
    Case("out is not readable here", (Let(X, Load(OUT, (ZERO,), REAL)),), (Let(X, Load(F, (ZERO,), REAL)),), LOWERED),
    Case("array is not stored to here", (count(DECLARED), Store(ARRAY, (ZERO,), ONE)),
         (DECLARED, count(Store(ARRAY, (ZERO,), ONE)))),
    Case("1 lanes are stored to 2 places of array", (DECLARED, Store(ARRAY, (ZERO,), ONE, ahead=(0, 1))),
         (DECLARED, Store(ARRAY, (ZERO,), ONE, ahead=(0,)))),
    Case("f is not stored to here", (Store(F, (ZERO,), ONE),), (Store(OUT, (ZERO,), ONE),), LOWERED),
    Case("array is not updated here", (Atomic("add", ARRAY, (ZERO,), (ONE,)),),
         (DECLARED, Atomic("add", ARRAY, (ZERO,), (ONE,)))),
    Case("f is not updated here", (Atomic("add", F, (ROW, COLUMN), (ONE,)),),
         (Atomic("add", OUT, (ROW, COLUMN), (ONE,)),)),
    Case("out is updated by a int", (Atomic("add", OUT, (ROW, COLUMN), (ZERO,)),),
         (Atomic("add", OUT, (ROW, COLUMN), (ONE,)),)),
    Case("n: int is bound to an element of out", (Atomic("add", OUT, (ROW, COLUMN), (ONE,), N),),
         (Atomic("add", OUT, (ROW, COLUMN), (ONE,), X),)),
    Case("n: int is what a reduce makes of float", (Collective("reduce", N, ONE),), (Collective("reduce", X, ONE),)),
    # several points of a thread
    Case("out is not accessed so", (DECLARED, Wide(OUT, ARRAY, True, (ROW, COLUMN))),
         (DECLARED, Wide(F, ARRAY, True, (ROW, COLUMN)))),
    Case("f is not accessed so", (DECLARED, Wide(F, ARRAY, False, (ROW, COLUMN))),
         (DECLARED, Wide(OUT, ARRAY, False, (ROW, COLUMN)))),
    Case("array does not hold lanes here", (Wide(F, ARRAY, True, (ROW, COLUMN)), DECLARED),
         (DECLARED, Wide(F, ARRAY, True, (ROW, COLUMN)))),
    Case("tile does not hold lanes here", (Declare(TILE), Wide(F, TILE, True, (ROW, COLUMN))),
         (DECLARED, Wide(F, ARRAY, True, (ROW, COLUMN)))),
    Case("integers has not the type of f", (Declare(INTEGERS), Wide(F, INTEGERS, True, (ROW, COLUMN))),
         (DECLARED, Wide(F, ARRAY, True, (ROW, COLUMN)))),
    # what a form has no more
    Case("a read survives lowering", (Let(X, Read(F, REAL)),), (Let(X, Load(F, (ZERO,), REAL)),), LOWERED),
    Case("a write survives lowering", (Write(OUT, ONE),), (Store(OUT, (ZERO,), ONE),), LOWERED),
    Case("a float2 survives lowering", (Let(V, Load(F, (ZERO,), PAIR)),), (LET_X,), LOWERED, SCALARS),
    Case("a vector survives lowering", (Let(X, Pack((ONE,), REAL)),), (LET_X,), LOWERED, SCALARS),
    Case("a vector survives lowering", (LET_X, Let(Y, Lane(Ref(X), 0, REAL))), (LET_X, Let(Y, Ref(X))), PRINTABLE),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_a_rule(case):
    def checked(body: Block) -> None:
        verify(kernel(*body, target=case.target), case.form, "spoil")

    with pytest.raises(VerifyError) as caught:
        checked(case.refused)
    assert str(caught.value).startswith(f"internal error in kernel 'handmade' after spoil: {case.sentence}")
    if case.sentence[-1] != "(":  # what follows is the node
        assert str(caught.value).endswith(case.sentence)
    checked(case.accepted)


def test_every_rule_has_a_case():
    """Each `raise VerifyError` of the file, but the one that names the kernel and the pass, is reached by a case."""
    reached = set()
    for case in CASES:
        with pytest.raises(VerifyError) as caught:
            verify(kernel(*case.refused, target=case.target), case.form)
        reached.add(traceback.extract_tb(caught.value.__cause__.__traceback__)[-1].lineno)
    tree = ast.parse(inspect.getsource(rules))
    raised = [n for n in ast.walk(tree) if isinstance(n, ast.Raise) and "VerifyError" in ast.unparse(n.exc)]
    missing = [ast.unparse(n) for n in raised if n.cause is None and not reached & {*range(n.lineno, n.end_lineno + 1)}]
    assert len(raised) > 25 and not missing
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.Assert)], "`python -O` drops assertions"


def test_forms_allow_what_they_are_for():
    """Operands nest in the printable form only, vectors live in recorded kernels and for targets that have them."""
    nested = kernel(Let(X, add(add(ONE, ONE), ONE)))
    assert verify(nested, PRINTABLE) is nested
    for form in (RECORDED, LOWERED):
        with pytest.raises(VerifyError, match="not an atom"):
            verify(nested, form)
    pair = (Let(V, Pack((ONE, ONE), PAIR)), Let(X, Lane(Ref(V), 1, REAL)))
    for form, target in ((RECORDED, None), (RECORDED, SCALARS), (LOWERED, VECTORS), (PRINTABLE, VECTORS)):
        verify(kernel(*pair, target=target), form)
    for form in (LOWERED, PRINTABLE):
        with pytest.raises(VerifyError, match="a float2 survives lowering"):
            verify(kernel(*pair, target=SCALARS), form)
    verify(kernel(Let(N, WIDTH)), RECORDED)  # the target is not known yet


# --- verify is asked ----------------------------------------------------------------------------------------------------


def spoil(kernel: Kernel) -> Kernel:
    """A pass that uses a variable which nothing binds."""
    return replace(kernel, body=(*kernel.body, Let(Var("t", REAL), Ref(Var("lost", REAL)))))


@gp.operator
def halved(field):
    return _readTensor(field) / 2


@pytest.mark.parametrize("after", range(len(PIPELINE)), ids=lambda n: f"{n}-{PIPELINE[n][0].__name__}")
def test_a_broken_pass_is_named(monkeypatch, after):
    planted = (*PIPELINE[: after + 1], (spoil, PIPELINE[after][1]), *PIPELINE[after + 1 :])
    recorded = halved(gp.ScalarField(np.ones(5, "f"))).node.call.kernel
    lower(recorded, SCALARS)
    monkeypatch.setattr(pipeline, "PIPELINE", planted)
    with pytest.raises(VerifyError) as caught:
        lower(recorded, SCALARS)
    message = "internal error in kernel 'halved' after spoil: lost is used before or outside its definition"
    assert str(caught.value) == message


def test_the_switch(monkeypatch):
    """Without GPUOP_VERIFY the first pass is verified, which is given what fusion makes, and the last one."""
    monkeypatch.setattr(config, "verify", False)
    recorded = halved(gp.ScalarField(np.ones(5, "f"))).node.call.kernel
    messages = []
    for planted in (
        ((spoil, RECORDED), *PIPELINE),
        (*PIPELINE[:-1], (spoil, LOWERED), PIPELINE[-1]),
        (*PIPELINE, (spoil, PRINTABLE)),
    ):
        monkeypatch.setattr(pipeline, "PIPELINE", planted)
        with pytest.raises(VerifyError) as caught:
            lower(recorded, SCALARS)
        messages.append(str(caught.value).split("after ")[1].split(":")[0])
    assert messages == ["spoil", PIPELINE[-1][0].__name__, "spoil"]


def test_what_is_recorded_is_verified():
    @gp.operator
    def spoiled(field):
        current().emit(Let(Var("t", REAL), Ref(Var("lost", REAL))))
        return _readTensor(field)

    with pytest.raises(VerifyError, match="kernel 'spoiled' after recording: lost is used before or outside"):
        spoiled(gp.ScalarField(np.ones(5, "f")))
