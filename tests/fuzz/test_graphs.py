"""Random graphs of local, stencil, gathering, scattering, branching and many-valued operators: fusing changes no bit.

All operators but `wave` consist of correctly rounded operations on values that stay small, so that every device gives
the reference's bits too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import gpuop as gp
from gpuop.dsl import *
from tests.harness import same_bits

from .common import INTERPRETED, profile, reference

SHAPES = [(6, 35), (1, 1), (5, 1), (1, 17), (3, 64)]
DTYPES = {"f": "float32", "h": "float16", "i": "int16", "b": "bool", "u": "unorm8", "v": "float32"}


def mix(a, b):
    return _clamp(_readTensor(a) * 0.7 - _readTensor(b) * 1.3 + 0.1, -4.0, 4.0)


def ratio(a):
    v = _readTensor(a)
    return v * v / (1 + v * v)


def split(a):
    v = _readTensor(a)
    return v / 2, _floor(v), v > 0.25


def late(a):
    v = _var(_readTensor(a))
    _writeTensor(_out0, v)
    v += 0.5
    _writeTensor(_out1, v)
    v @= 0


def branch(a, b):
    x, y = _readTensor(a), _readTensor(b)
    with _if(x > y):
        _writeTensor(_out0, x - y)
    with _elseif(x > 0):
        _writeTensor(_out0, x / 3)
    with _else():
        _writeTensor(_out0, y)


def sometimes(a, mask):
    with _if(_readTensor(mask)):
        _writeTensor(_out0, _readTensor(a))


def narrow(a):
    return _convert(_readTensor(a), "float16") / 3


def wide(a):
    return _convert_float(_readTensor(a)) * 1.5


def quantised(a):
    _writeTensor(_out0, _readTensor(a) / 3 + 0.2)


def integer(a):
    return _convert_short(_readTensor(a) * 9000)


def wrapped(a, b):
    return _readTensor(a) * 3 + (_readTensor(b) ^ 77)


def looped(a):
    n = _var(_readTensor(a))
    with _for(4):
        with _if((n & 1) == 0):
            n @= n / 2
        with _else():
            n @= n * 3 + 1
    return n


def real(a):
    return _convert_float(_readTensor(a)) / 8192


def vector(a, b):
    x, y = _readTensor(a), _readTensor(b)
    return _vector(x, y, x - y)


def swizzled(v, a):
    value = _readTensor(v)
    return value.zxy * 0.5 + _readTensor(a)


def length(v):
    return _min(_length(_readTensor(v)), 4.0)


def blur(a):
    total = _readTensor(a)
    for dr, dc, border in ((-1, 0, "clamp"), (1, 0, "reflect"), (0, -1, "wrap"), (0, 2, "zero"), (-2, 1, 0.5)):
        total = total + _readTensor(a, _row + dr, _column + dc, border=border)
    return total / 6


def slope(v):
    return _readTensor(v, _row, _column + 1) - _readTensor(v)


def picked(a, i):
    at = _readTensor(i)
    return _readTensor(a, _row + at % 3, _column - at / 999, border="symmetric")


def mirrored(a):
    _writeTensor(_out0, _readTensor(a), _rows - 1 - _row, _columns - 1 - _column)


def wave(a):
    return _sin(_readTensor(a) * 2) + _exp(-_fabs(_readTensor(a)))


def like(kind):
    return lambda *fields: gp.FieldType(fields[0].field_shape, (), DTYPES[kind])


@dataclass(frozen=True)
class Kind:
    """An operator with the kinds of its inputs and outputs."""

    operator: object
    takes: str
    gives: str


def kind(body, takes, gives, outputs=None, default=None):
    return Kind(gp.operator(outputs=outputs, default=default)(body), takes, gives)


LOCAL = [
    kind(mix, "ff", "f"), kind(ratio, "f", "f"), kind(split, "f", "ffb"), kind(branch, "ff", "f"), kind(narrow, "f", "h"),
    kind(late, "f", "ff", lambda a: (a.type, a.type)), kind(sometimes, "fb", "f", like("f"), 0.75), kind(wide, "h", "f"),
    kind(quantised, "f", "u", like("u")), kind(wide, "u", "f"), kind(integer, "f", "i"), kind(wrapped, "ii", "i"),
    kind(looped, "i", "i"), kind(real, "i", "f"), kind(vector, "ff", "v"), kind(swizzled, "vf", "v"), kind(length, "v", "f"),
]  # fmt: skip
DISTANT = [
    kind(blur, "f", "f"),
    kind(slope, "v", "v"),
    kind(picked, "fi", "f"),
    kind(mirrored, "f", "f", lambda a: a.type),
]
INEXACT = [kind(wave, "f", "f")]


@st.composite
def graphs(draw, shapes):
    """(shape, exact, calls as (operator, numbers that choose inputs), numbers that choose outputs, steps)."""
    exact = draw(st.booleans())
    pool = LOCAL * 2 + DISTANT + ([] if exact else INEXACT * 6)
    call = st.tuples(st.sampled_from(pool), st.tuples(*[st.integers(0, 30)] * 2))
    calls = draw(st.lists(call, min_size=5, max_size=24))
    return (
        draw(st.sampled_from(shapes)),
        exact,
        calls,
        draw(st.sets(st.integers(0, 40), max_size=6)),
        draw(st.integers(0, 2)),
    )


def build(spec, optimize):
    """The graph that a spec stands for; late values are chosen more often, so that chains grow."""
    shape, _, calls, outputs, _ = spec
    rng = np.random.default_rng(11)
    start = rng.random((3, *shape), np.float32) * 4 - 2
    with gp.ComputeGraph(optimize=optimize) as graph:
        state = gp.ScalarField(start[0])
        values = {k: [] for k in DTYPES}
        values["f"] += [state, gp.ScalarField(start[1])]
        values["i"].append(gp.ScalarField((start[2] * 9999).astype("i2")))
        values["b"].append(gp.ScalarField(start[2] > 0))
        array = []
        for operator, choices in calls:
            takes = operator.takes
            if any(not values[k] for k in takes):
                continue
            arrays = [values[k][-1 - c % min(len(values[k]), 8)] for k, c in zip(takes, choices, strict=False)]
            results = operator.operator(*arrays)
            for k, result in zip(operator.gives, results if isinstance(results, tuple) else (results,), strict=True):
                values[k].append(result)
                array.append(result)
        for n in sorted({w % len(array) for w in outputs} | {len(array) - 1}) if array else ():
            graph.probe(array[n], f"{n}")
        state.next = values["f"][-1]
        graph.probe(state, "state")
    return graph


def results(spec, optimize=True):
    graph = build(spec, optimize)
    graph.reset()
    graph.step(spec[4])
    return {name: graph.read(name) for name in graph._definition.probes}, graph.kernel_count


def test_fused_unfused_and_reference_agree(device):
    sizes = []

    @profile(device, 40, 5)
    @given(graphs(SHAPES if device in INTERPRETED else SHAPES[:1]))
    def run(spec):
        fused, kernels = results(spec)
        plain, most = results(spec, optimize=False)
        sizes.append((kernels, most))
        with reference():
            expected, _ = results(spec)
        for name, value in fused.items():
            same_bits(value, plain[name], f"{name}, fused and unfused")
            if spec[1]:
                same_bits(value, expected[name], f"{name}, device and reference")

    run()
    kernels, most = map(sum, zip(*sizes, strict=True))
    assert kernels < 0.7 * most  # it is fusion that was tested
