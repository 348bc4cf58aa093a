"""Cases that follow from the defects of Cog, the predecessor: 1 to 11 of 22; then test_cog_defects_more.py and _last.py.

Numbered as in the notes on Cog. What is expected is NumPy's, or written down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.borders import MODES
from tests.errors.wrong import check_line
from tests.harness import graph_of

from .compare import all_same, compute, same

rng = np.random.default_rng(61)
BORDERS: tuple[tuple[Any, dict[str, Any]], ...] = (
    *((rule, {"mode": pad}) for rule, (pad, _) in MODES.items()),
    (-1.5, {"mode": "constant", "constant_values": -1.5}),
)
FAR = 2**31 - 1


def floats(*shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("grid", [(5,), (3, 4), (2, 3, 5)], ids=str)
def test_01_reads_outside_every_edge_and_corner(device: str, grid: tuple[int, ...]) -> None:
    """Cog neither checks nor clamps reads of buffers."""
    a, larger = floats(*grid), gp.FieldType(tuple(n + 4 for n in grid))

    def body(field):
        place = [i - 2 for i in (_layer, _row, _column)[3 - len(grid) :]]
        return tuple(_readTensor(field, *place, border=rule) for rule, _ in BORDERS)

    results = gp.operator(outputs=(larger,) * len(BORDERS))(body)(gp.ScalarField(a))
    all_same(results, [np.pad(a, 2, **how) for _, how in BORDERS], [str(rule) for rule, _ in BORDERS])


def test_02_scatter_outside_is_dropped(device: str) -> None:
    """Cog guards the upper bound alone, and with the extents of the threads rather than the output's."""
    a, types = floats(4, 5), [gp.FieldType(shape) for shape in ((4, 5), (9, 11), (2, 3), (4, 5))]
    places = [(3 - r, 4 - c) for r, c in np.ndindex(4, 5)], [(3 * r - 2, 4 * c - 3) for r, c in np.ndindex(4, 5)]

    def body(field):
        x = _readTensor(field)
        _writeTensor(_out0, x, 3 - _row, 4 - _column)
        for out in (_out1, _out2):
            _writeTensor(out, x, 3 * _row - 2, 4 * _column - 3)
        for place in ((FAR, _column), (-FAR, _column), (_row, -FAR), (_row, FAR)):
            _writeTensor(_out3, x, *place)

    results = gp.operator(outputs=tuple(types), default=7)(body)(gp.ScalarField(a))
    expected = [np.full(kind.field_shape, 7, np.float32) for kind in types]
    for out, where in zip(expected, (places[0], places[1], places[1]), strict=False):
        for (r, c), value in zip(where, a.flat, strict=True):
            if 0 <= r < out.shape[0] and 0 <= c < out.shape[1]:
                out[r, c] = value
    all_same(results, expected)


def test_03_two_scatters_of_vectors_have_their_own_addresses(device: str) -> None:
    """In Cog they share scratch variables: the second address is used for both."""
    a = floats(4, 6, 4)

    @gp.operator(outputs=lambda f: (f.type, f.type))
    def two(field):
        v = _readTensor(field)
        _writeTensor(_out0, v, 3 - _row, _column)
        _writeTensor(_out1, v.wzyx, _row, 5 - _column)

    all_same(two(gp.VectorField(a)), (a[::-1], a[:, ::-1, ::-1]))


def test_04_a_read_in_a_while_condition_is_read_at_every_turn(device: str) -> None:
    """Cog reads once, before the loop."""
    a = np.cumsum(rng.random(40)).astype(np.float32)
    limits = np.float32([0, a[7], a[20] + 0.001, a[-1]])

    @gp.operator(outputs=gp.FieldType(4, (), "int32"))
    def first(field, limit):
        i = _intVar()
        with _while(_readTensor(field, i) < _readTensor(limit)):
            i += 1
        _writeTensor(_out0, i)

    same(first(gp.ScalarField(a), gp.ScalarField(limits)), np.searchsorted(a, limits).astype(np.int32))


def test_05_a_read_in_an_elseif_condition(device: str) -> None:
    """In Cog it gives an error, or text that does not compile."""
    a, b = floats(6, 7), floats(6, 7)

    @gp.operator
    def pick(f, g):
        kind = _var(0)
        with _if(_readTensor(f) > 0.5):
            kind @= 1
        with _elseif(_readTensor(g, _row, _column + 1) > 0.5):
            kind @= 2
        with _elseif(_readTensor(f, _row - 1, _column) + _readTensor(g) > 0.5):
            kind @= 3
        with _else():
            kind @= 4
        return kind

    right, above = np.pad(b, 1, mode="edge")[1:-1, 2:], np.pad(a, 1, mode="edge")[:-2, 1:-1]
    same(
        pick(gp.ScalarField(a), gp.ScalarField(b)),
        np.select([a > 0.5, right > 0.5, above + b > 0.5], np.int32([1, 2, 3]), 4),
    )


def test_06_writes_in_branches(device: str) -> None:
    """Cog has none there, and leaves garbage where a write is forgotten."""
    a = floats(5, 6)

    @gp.operator(outputs=lambda f: f.type)
    def both(field):
        x = _readTensor(field)
        with _if(x > 0):
            _writeTensor(_out0, x)
        with _else():
            _writeTensor(_out0, -2 * x)

    same(both(gp.ScalarField(a)), np.where(a > 0, a, -2 * a))

    def forgotten():
        @gp.operator(outputs=lambda f: f.type)
        def positive(field):
            with _if(_readTensor(field) > 0):
                _writeTensor(_out0, 1)  # here

        positive(gp.ScalarField(a))

    with pytest.raises(gp.SemanticError, match="_out0 is not written on every path") as caught:
        forgotten()
    check_line(caught.value, forgotten)


def test_07_variables_initialised_alike_before_a_loop(device: str) -> None:
    """Cog's `_for` removes the first of the initialisations that are equal, which may be another variable's."""

    @gp.operator(outputs=gp.FieldType(9, (4,), "int32"))
    def sums():
        a, b, c = _intVar(0), _intVar(0), _intVar(0)
        with _for(0, _column) as i:
            a += i
            with _for(0, i):
                b += 1
        with _for(0, 3):
            c += _column
        d = _intVar(0)
        _writeTensor(_out0, _int4(a, b, c, d))

    k = np.arange(9, dtype=np.int32)
    triangle = k * (k - 1) // 2
    same(sums(), np.stack([triangle, triangle, 3 * k, 0 * k], -1))


INTEGERS = ("uint8", "int8", "uint16", "int32", "uint32", "int64")


def test_08_types_of_mixed_arithmetic(device: str) -> None:
    """Cog types `1 + 2.5` as int. A float wins, then the wider type, then the unsigned one."""
    types = [np.dtype(name) for name in (*INTEGERS, "float32")]
    arrays = [np.array([100, 7, 55], t) if t.kind == "u" else np.array([100, -7, -55], t) for t in types]
    fields = [gp.ScalarField(a) for a in arrays]
    results, expected = [], []
    for a, field in zip(arrays, fields, strict=True):
        results += gp.operator(lambda x, *others: tuple(_readTensor(x) + _readTensor(y) for y in others))(
            field, *fields
        )
        for b in arrays:
            common = max(a.dtype, b.dtype, key=lambda t: (t.kind == "f", t.itemsize, t.kind == "u"))
            with np.errstate(over="ignore"):
                expected.append(a.astype(common) + b.astype(common))
    all_same(results, expected)
    numbers = compute(
        lambda f: (_readTensor(1) + 2.5, _var(1) + 2.5, _readTensor(f) + 2.5, _readTensor(f) / 2), fields[3]
    )
    for actual, want in zip(numbers, (3.5, 3.5, arrays[3] + np.float32(2.5), np.int32([50, -3, -27])), strict=True):
        same(actual, np.broadcast_to(np.asarray(want, np.int32 if actual is numbers[3] else np.float32), 3).copy())


def test_09_dot_and_length_are_scalars(device: str) -> None:
    """Cog types them as their arguments, vectors."""
    v, w = rng.integers(-8, 9, (2, 7, 3)).astype(np.float32)

    @gp.operator
    def mixed(f, g):
        a, b = _readTensor(f), _readTensor(g)
        scaled = _dot(a, b) * a + _length(_float2(3 + 0 * a.x, 4))
        return scaled, _dot(a, b) / 2 - 1, _distance(a * 0, _float3(2, 3, 6)) * 2, _float2(_dot(a, a), 1)

    dot = (v * w).sum(1)
    expected = (
        dot[:, None] * v + 5,
        dot / 2 - 1,
        np.full(7, 14, np.float32),
        np.stack([(v * v).sum(1), 0 * dot + 1], 1),
    )
    all_same(mixed(gp.VectorField(v), gp.VectorField(w)), expected)


def test_10_comparisons_are_bool(device: str) -> None:
    """Cog gives them the type of their operands. To a float they convert where one is wanted."""
    a, b = rng.integers(-2, 3, (2, 4, 5)).astype(np.float32)

    @gp.operator
    def compare(f, g):
        x, y = _readTensor(f), _readTensor(g)
        less = x < y
        return less, x == y, less & (x != 0), _convert_float(less) * 2.5, less + (x == y), less * x, ~less

    less, equal = a < b, a == b
    expected = (
        less,
        equal,
        less & (a != 0),
        less * np.float32(2.5),
        np.add(less, equal, dtype=np.int32),
        less * a,
        ~less,
    )
    all_same(compare(gp.ScalarField(a), gp.ScalarField(b)), expected)


def test_11_a_constant_element_is_fused(device: str) -> None:
    """In Cog reading element 2 is non-local, and keeps the operators apart."""
    a = floats(6, 7, 3)

    @gp.operator
    def blue(field):
        return _readTensorElement(field, 2) - _readTensorElement(field, 0)

    graph = graph_of(lambda: {"out": blue(gp.VectorField(a) * 2) + 1})
    graph.reset()
    assert graph.kernel_count == 1, graph.explain()
    same(graph.read("out"), a[..., 2] * 2 - a[..., 0] * 2 + np.float32(1))
