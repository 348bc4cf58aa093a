"""Random mistakes: every name of the vocabulary with arguments of every sort. They give SemanticErrors, and nothing else."""

from __future__ import annotations

import operator
import re
import traceback
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuop as gp
from gpuop import dsl
from gpuop.dsl import *
from tests.nightly import is_nightly
from tests.rotation import day

from .common import profile

FIELDS = {
    "scalar": gp.ScalarField(np.ones((3, 4), "f")),
    "vector": gp.VectorField(np.ones((3, 4, 3), "i2")),
    "big": gp.VectorField(np.ones((3, 4, 7), "f8")),
    "0D": gp.ScalarField(np.float32(2)),
    "1D": gp.ScalarField(np.arange(5)),
    "bool": gp.ScalarField(np.ones((3, 4), bool)),
    "complex": gp.ComplexField(np.ones((3, 4), "c8")),
    "empty": gp.ScalarField(np.ones((0, 4), "f")),
    "parameter": gp.Parameter(0.5),
}
PLAIN = [
    0, 1, -1, 2, 3, 70, 2**31, -(2**31), 2**63, 2**64, 2**200, -(2**200), 0.0, 0.5, -2.5, 1e300, float("inf"), float("nan"), True,
    False, None, "x", "", "clamp", "float32", b"x", 1j, (), (2,), (2, 3), (-1,), (0,), [1, 2], [[1], [2, 3]], {}, {1: 2}, ...,
    slice(0, 2), np.float32(1.5), np.int64(7), np.uint8(200), np.bool_(True), np.float16("nan"), np.array(3), np.array([1, 2]),
    np.array([]), np.complex64(1), np.array("x"), np.datetime64(3, "s"), np.dtype("f4"), np.float64, int, object(), len,
    ValueError("x"), gp.FieldType((3, 4)), gp.FieldType((), 3), gp.Shape(2, 2), range(3), {1, 2},
]  # fmt: skip
VALUES = {
    "int": lambda: _row + 0 * _column, "float": lambda: _readTensor(FIELDS["scalar"]), "bool": lambda: _row > 1,
    "float2": lambda: _float2(1, _row), "float3": lambda: _readTensor(FIELDS["vector"]) * 0.5,
    "short3": lambda: _readTensor(FIELDS["vector"]),
    "bool3": lambda: _readTensor(FIELDS["vector"]) > 0, "half": lambda: _convert_half(_row), "double4": lambda: _double4(_row),
    "ulong": lambda: _convert_ulong(_row), "char2": lambda: _char2(_row), "variable": lambda: _floatVar(1),
    "vector variable": lambda: _uint4Var(), "array": lambda: _floatArray(3), "matrix": lambda: _int2Array(2, 2),
    "local": lambda: _local(_intArray(4)), "local variable": lambda: _local(_float2Var()), "table": lambda: _constantArray([1, 2]),
    "volatile": lambda: _volatile(_shortArray(2)), "pointer": lambda: _pointerTo(_intVar()), "element": lambda: _intArray(2)[1],
}  # fmt: skip
ONE = "neg pos abs invert not_ truth index"
TWO = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le eq ne matmul getitem iadd imatmul ipow contains"
OPERATORS = {name: getattr(operator, name) for name in f"{ONE} {TWO}".split()}
ATTRIBUTES = ["x", "w", "xyzw", "xx", "foo", "shape", "type", "assign", "dtype", "field_shape"]
ARGUMENTS = st.one_of(
    st.sampled_from([("value", v) for v in VALUES]),
    st.sampled_from([("value", v) for v in VALUES]),
    st.sampled_from([("field", f) for f in FIELDS]),
    st.sampled_from([("plain", n) for n in range(len(PLAIN))]),
    st.sampled_from([("name", n) for n in dsl.__all__]),
)
OPTIONS = st.dictionaries(st.sampled_from(["border", "unroll", "step", "init", "foo"]), ARGUMENTS, max_size=1)
STEPS = st.one_of(
    st.tuples(st.just("call"), st.sampled_from(dsl.__all__), st.lists(ARGUMENTS, max_size=4), st.just({})),
    st.tuples(st.just("call"), st.sampled_from(dsl.__all__), st.lists(ARGUMENTS, max_size=4), st.just({})),
    st.tuples(st.just("call"), st.sampled_from(dsl.__all__), st.lists(ARGUMENTS, max_size=4), OPTIONS),
    st.tuples(st.just("operate"), st.sampled_from(sorted(OPERATORS)), ARGUMENTS, ARGUMENTS),
    st.tuples(st.just("get"), st.sampled_from(ATTRIBUTES), ARGUMENTS, st.none()),
    st.tuples(st.just("set"), st.sampled_from(ATTRIBUTES), ARGUMENTS, ARGUMENTS),
    st.tuples(st.just("put"), ARGUMENTS, ARGUMENTS, ARGUMENTS),
    st.tuples(st.just("block"), ARGUMENTS, st.none(), st.none()),
    st.tuples(st.just("block"), st.just(("value", "bool")), st.none(), st.none()),
    st.tuples(st.just("return"), st.lists(ARGUMENTS, max_size=3), st.none(), st.none()),
)
MISCALLED = re.compile(r"_\w+(\.__init__)?\(\) ")  # Python's own words of a call that gives a word wrong arguments


def made(argument):
    kind, which = argument
    if kind == "value":
        return VALUES[which]()
    return FIELDS[which] if kind == "field" else PLAIN[which] if kind == "plain" else getattr(dsl, which)


def ours(value) -> bool:
    """Return whether gpuop made the value: mistakes with others are those of Python."""
    return type(value).__module__.startswith("gpuop.dsl")


def take(step):
    """Do what a step says."""
    what, *rest = step
    return globals()[f"do_{what}"](*rest)


def do_call(name, args, options):
    """A call may give a block, which is entered."""
    function = getattr(dsl, name)
    if not callable(function):
        return function
    result = function(*map(made, args), **{k: made(v) for k, v in options.items()})
    if isinstance(result, (dsl._if, dsl._for, dsl._while, dsl._forEachTensorElement, dsl._elseif, dsl._else)):
        with result as counter:
            _floatVar(1).assign(counter if isinstance(counter, type(_row)) else 2)
    return result


def do_operate(name, a, b):
    x, y = made(a), made(b)
    if (ours(x) and not isinstance(x, gp.Field)) or isinstance(y, type(_row + 0)):
        OPERATORS[name](*((x,) if name in ONE.split() else (x, y)))


def do_get(name, a, _):
    x = made(a)
    if ours(x):
        getattr(x, name)


def do_set(name, a, b):
    x = made(a)
    if ours(x) and not isinstance(x, gp.Field):
        setattr(x, name, made(b))


def do_put(a, b, c):
    x = made(a)
    if ours(x) and not isinstance(x, gp.Field):
        x[made(b)] = made(c)


def do_block(a, *_):
    with _if(made(a)):
        _floatVar(2)


def do_return(args, *_):
    return tuple(map(made, args))


def attempt(steps, outputs) -> str:
    """The outcome of recording the steps: "fine", or the kind of the error.

    Raises:
        AssertionError: it was another error.
    """

    def body():
        result = [take(step) for step in steps]
        if outputs is not None:
            _writeTensor(_out0, 0)
            return None
        return result[-1]

    try:
        gp.operator(outputs=outputs)(body)()
    except gp.SemanticError:
        return "SemanticError"
    except Exception as error:
        if python_refuses(error):
            return "Python's error"
        raise
    return "fine"


def python_refuses(error: Exception) -> bool:
    """Return whether Python refused the text before gpuop saw it."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    after = frames[len(frames) - frames[::-1].index(__file__) :]
    miscalled = isinstance(error, TypeError) and MISCALLED.match(str(error))
    return not miscalled and not any(Path(gp.__file__).parent in Path(name).parents for name in after)


TYPE = gp.FieldType((3, 4))


@pytest.mark.parametrize("count", [1, 3])
def test_mistakes_are_semantic_errors(count):
    counts = {"fine": 0, "SemanticError": 0, "Python's error": 0}

    @profile("reference", 350, 0)
    @given(st.lists(STEPS, min_size=count, max_size=count), st.sampled_from([TYPE, TYPE, None]))
    def run(steps, outputs):
        counts[attempt(steps, outputs)] += 1

    run()
    assert min(counts["fine"], counts["SemanticError"]) > 10, counts


def test_every_name_with_every_argument():
    """Each name with every argument, alone or beside another: by day a quarter, tomorrow the next."""
    arguments = (
        [("value", v) for v in VALUES] + [("field", f) for f in FIELDS] + [("plain", n) for n in range(len(PLAIN))]
    )
    many = ("_convert_", "_as_"), ("2", "3", "4", "Var", "Array")  # one for each type
    plain = [n for n in dsl.__all__ if not n.startswith(many[0]) and not n.endswith(many[1])]
    for n, name in enumerate([*plain, "_convert_int2", "_as_short", "_half3", "_ucharVar", "_double2Array"]):
        for k, argument in enumerate(arguments):
            if is_nightly() or (k // 2 + n) % 4 == day() % 4:
                attempt([("call", name, [argument, arguments[-1 - k]][: 1 + k % 2], {})], TYPE)
