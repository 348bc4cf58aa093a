"""Random well-typed kernels: straight lines, branches and loops over int, float and uchar values with stencil reads.

What is recorded means the same on the interpreter, after lowering, and on every device, bit for bit: only correctly
rounded operations occur.
"""

from __future__ import annotations

import operator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import gpuop as gp
from gpuop.dsl import *

from .common import INTERPRETED, profile, reference

SHAPE = (5, 37)
DTYPES = {"i": "int32", "f": "float32", "u": "uint8"}
COMMON = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "min": _min, "max": _max}
WHOLE = {
    "%": operator.mod, "//": operator.floordiv, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift,
}  # fmt: skip
COMPARE = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne}
BORDERS = ["clamp", "zero", "wrap", "reflect", "symmetric", 7]
NUMBERS = {
    "i": st.sampled_from([0, 1, -1, 2, 3, -7, 31, 1000, 2**31 - 1, -(2**31)]),
    "f": st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e-3, 255.9, -2.5, 3e9, float("inf")]),
    "u": st.sampled_from([0, 1, 2, 7, 128, 254, 255]),
}


def leaves(kind):
    near = st.integers(-2, 2)
    choices = [
        st.tuples(st.just("number"), st.just(kind), NUMBERS[kind]),
        st.tuples(st.just("variable"), st.just(kind), st.integers(0, 1)),
        st.tuples(st.just("read"), st.just(kind), near, near, st.sampled_from(BORDERS)),
    ]
    if kind == "i":
        choices.append(st.tuples(st.sampled_from(["row", "column", "counter"])))
    return st.one_of(choices)


def values(kind, depth):
    if depth == 0:
        return leaves(kind)
    inner = values(kind, depth - 1)
    others = [values(k, depth - 1) for k in DTYPES if k != kind]
    signs = COMMON if kind == "f" else COMMON | WHOLE
    choices = [
        leaves(kind),
        st.tuples(st.just("binary"), st.sampled_from(sorted(signs)), inner, inner),
        st.tuples(st.just("where"), conditions(depth - 1), inner, inner),
        st.tuples(st.just("convert"), st.just(kind), st.one_of(others)),
        st.tuples(st.just("negative"), inner),
    ]
    if kind == "i":
        choices.append(st.tuples(st.just("gather"), inner, inner, st.sampled_from(BORDERS)))
    return st.one_of(choices)


def conditions(depth):
    if depth == 0:
        compared = [st.tuples(leaves(k), leaves(k)) for k in DTYPES]
    else:
        compared = [st.tuples(values(k, depth - 1), values(k, depth - 1)) for k in DTYPES]
    simple = st.tuples(st.just("compare"), st.sampled_from(sorted(COMPARE)), st.one_of(compared))
    return st.one_of(simple, st.tuples(st.just("both"), simple, simple), st.tuples(st.just("not"), simple))


def statements(depth):
    assigned = st.one_of(
        *(st.tuples(st.just("set"), st.just(k), st.integers(0, 1), values(k, 2)) for k in DTYPES),
        st.tuples(st.just("add"), st.just("i"), st.integers(0, 1), values("i", 1)),
        st.tuples(st.just("store"), values("i", 1), values("i", 1)),
    )
    if depth == 0:
        return assigned
    body = st.lists(statements(depth - 1), min_size=1, max_size=3)
    return st.one_of(
        assigned,
        assigned,
        st.tuples(st.just("if"), conditions(1), body, st.one_of(st.none(), body)),
        st.tuples(st.just("for"), st.integers(1, 4), st.booleans(), body, st.one_of(st.none(), conditions(1))),
        st.tuples(st.just("while"), st.integers(1, 3), body),
    )


PROGRAMS = st.lists(statements(2), min_size=3, max_size=8)


class Writer:
    """Writes a program down in the vocabulary of kernels."""

    def __init__(self, fields):
        self.fields = fields
        self.variables = {k: [_var(_readTensor(fields[k])), _var(_readTensor(fields[k], _row, _column + 1))] for k in DTYPES}
        self.array = _intArray(4)
        self.counters = []

    def value(self, expr):  # noqa: C901 - a case for each form
        match expr:
            case ("number", kind, number):
                return _convert(number, DTYPES[kind])
            case ("variable", kind, n):
                return self.variables[kind][n]
            case ("read", kind, dr, dc, border):
                return _readTensor(self.fields[kind], _row + dr, _column + dc, border=border)
            case ("gather", row, column, border):
                return _readTensor(self.fields["i"], self.value(row) % 9, self.value(column) % 50, border=border)
            case ("row",):
                return _row
            case ("column",):
                return _column + self.array[_column & 3]
            case ("counter",):
                return self.counters[-1] if self.counters else _columns
            case ("binary", sign, a, b):
                return (COMMON | WHOLE)[sign](self.value(a), self.value(b))
            case ("where", c, a, b):
                return _where(self.condition(c), self.value(a), self.value(b))
            case ("convert", kind, a):
                return _convert(self.value(a), DTYPES[kind])
            case ("negative", a):
                return -self.value(a)
        raise AssertionError(expr)

    def condition(self, expr):
        match expr:
            case ("compare", sign, (a, b)):
                return COMPARE[sign](self.value(a), self.value(b))
            case ("both", a, b):
                return self.condition(a) & self.condition(b)
            case ("not", a):
                return ~self.condition(a)
        raise AssertionError(expr)

    def block(self, block):
        for stmt in block:
            self.stmt(stmt)

    def stmt(self, stmt):
        match stmt:
            case ("set", kind, n, value):
                self.variables[kind][n].assign(self.value(value))
            case ("add", kind, n, value):
                self.variables[kind][n].assign(self.variables[kind][n] + self.value(value))
            case ("store", index, value):
                self.array[self.value(index) & 3] = self.value(value)
            case ("if", cond, then, orelse):
                with _if(self.condition(cond)):
                    self.block(then)
                if orelse is not None:
                    with _else():
                        self.block(orelse)
            case ("for", turns, unrolled, body, leave):
                with _for(turns, unroll=unrolled) as i:
                    self.counters.append(i)
                    if leave is not None:
                        with _if(self.condition(leave)):
                            _break() if unrolled else _continue()
                    self.block(body)
                    self.counters.pop()
            case ("while", turns, body):
                left = _intVar(turns)
                with _while(left > 0):
                    left -= 1
                    self.block(body)


def fields():
    rng = np.random.default_rng(2)
    whole = rng.integers(-40, 40, SHAPE).astype("i4")
    whole[0, :4] = 2**31 - 1, -(2**31), 0, -1
    real = (rng.integers(-64, 64, SHAPE) / 8).astype("f4")
    real[1, :4] = np.inf, -0.0, np.nan, 1e9
    arrays = {"i": whole, "f": real, "u": rng.integers(0, 256, SHAPE).astype("u1")}
    return {k: gp.ScalarField(a) for k, a in arrays.items()}


def outputs_of(program, inputs):
    def body():
        writer = Writer(inputs)
        writer.block(program)
        return tuple(v for pair in writer.variables.values() for v in pair)

    types = tuple(gp.FieldType(SHAPE, (), d) for d in DTYPES.values() for _ in range(2))
    return gp.operator(outputs=types, name="random")(body)()


def test_recorded_lowered_and_compiled_agree(device):
    inputs = fields()

    @profile(device, 150, 30)
    @given(PROGRAMS)
    def run(program):
        outputs = outputs_of(program, inputs)
        gp.evaluate(*outputs)
        got = [f.numpy() for f in outputs]
        with reference():
            gp.evaluate(*outputs)
            want = [f.numpy() for f in outputs]
        for n, (a, b) in enumerate(zip(got, want, strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=f"variable {n}")

    run()


def test_the_random_programs_use_everything():
    seen = set()

    def note(part):
        if isinstance(part, (tuple, list)):
            seen.update(p for p in part if isinstance(p, str))
            for p in part:
                note(p)

    @profile("reference", 150, 0)
    @given(PROGRAMS)
    def run(program):
        note(program)

    run()
    assert seen >= {"if", "for", "while", "gather", "store", "where", "convert", "counter", *COMMON, *WHOLE, *COMPARE, *BORDERS[:5]}
    assert len(INTERPRETED) == 2
