"""Local and private memory: of every type and dimension, in helpers, blocks and graphs. Expected values are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import same
from .cuda import compiled_as_cuda  # noqa: F401

rng = np.random.default_rng(5)


@pytest.mark.parametrize(
    "name",
    ["bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double"],
)
def test_arrays_of_every_type(device: str, name: str) -> None:
    """One to three dimensions, scalars and vectors: what is written is read back, by another thread where it is shared."""
    a = rng.integers(0, 2 if name == "bool" else 100, 37).astype(np.int32)
    lanes = (0, 0, 0) if name == "bool" else (2, 3, 4)

    def through(qualifier, x, other, lanes):
        """The sum of what the other thread put into arrays."""
        make = globals()[f"_{name}Array"]
        one, two, three = qualifier(make(8)), qualifier(make(2, 4)), qualifier(make(2, 2, 2))
        at = _localColumn
        one[at] = x
        two[at / 4, at % 4] = one[at]
        three[at / 4, at / 2 % 2, at % 2] = two[at / 4, at % 4]
        wide = qualifier(globals()[f"_{name}{lanes}Array"](8)) if lanes else None
        if wide is not None:
            wide[at] = _vector(*(x + k for k in range(lanes)))
        _syncThreadsLocal()
        total = _var(_convert_int(three[other / 4, other / 2 % 2, other % 2]))
        for k in range(lanes):
            total += _convert_int(wide[other][k]) * (k + 1)
        return total

    @gp.operator
    def sums(f):
        _localThreads(8, whole_groups=True)
        x, own, other = _readTensor(f), _localColumn, _localColumn ^ 1
        private, shared = through(lambda a: a, x, own, lanes[0]), through(_local, x, other, lanes[1])
        return _vector(private, shared, through(lambda a: _volatile(_local(_volatile(a))), x, other, lanes[2]))

    swapped = a.copy()
    swapped[:36] = a[:36].reshape(-1, 2)[:, ::-1].ravel()
    sources = zip((a, swapped, swapped), lanes, strict=True)
    expected = np.stack([x + sum((x + k) * (k + 1) for k in range(n)) for x, n in sources], -1)
    actual = sums(gp.ScalarField(a)).numpy()
    same(actual[:36], expected[:36].astype(np.int32), name)


def test_local_variables(device: str) -> None:
    """Scalars and vectors, by component, of several types; compound assignment by one thread."""
    a = rng.integers(0, 99, 50).astype(np.int32)

    @gp.operator(outputs=gp.FieldType(50, 4, "float32"))
    def shared(f):
        _localThreads(16)
        first, pair, colour = _local(_intVar()), _volatile(_local(_float2Var())), _local(_uchar4Var())
        flag, small = _local(_volatile(_boolVar())), _local(_half3Var())
        with _if(_localColumn == 1):
            first @= _readTensor(f)
            pair.x = first + 0.5
            pair[1] = 7
            pair.yx = pair.xy
            first += 1
            colour @= _uchar4(1, 2, 3, 250)
            colour.w += 10
            flag @= first > 50
            small @= _half3(1, 2, 3) / 4
        _syncThreadsLocal()
        kept = _var(pair)
        kept.x *= 2
        return _float4(first, kept.x * 1000 + pair.y, _dot(_convert_float3(small), 1) + colour.w, flag)

    x = np.repeat(a[1::16], 16)[:50]
    expected = np.stack([x + 1, 14000 + x + 0.5, np.full(50, 1.5 + 4), x + 1 > 50], -1).astype(np.float32)
    same(shared(gp.ScalarField(a)), expected)


def test_a_private_array_of_vectors(device: str) -> None:
    a = rng.integers(0, 99, (6, 9)).astype(np.float32)

    @gp.operator
    def body(f):
        cube = _float2Array(3, 5, 7)
        with _for(3) as i:
            with _for(5) as j:
                with _for(7) as k:
                    cube[i, j, k] = _float2(i * 100 + j * 10 + k, _readTensor(f))
        return cube[_row % 3, _column % 5, _row].x + cube[2, 4, 6].y + cube[0, 1, 6].x

    r, c = np.indices((6, 9))
    same(body(gp.ScalarField(a)), (r % 3 * 100 + c % 5 * 10 + r + a + 16).astype(np.float32))


def test_declared_in_helpers_and_blocks(device: str) -> None:
    a = rng.integers(0, 99, 40).astype(np.int32)

    def exchanged(x, where):
        memory = _volatile(_local(_intArray(2 * _localColumns)))
        memory[2 * _localColumn] = x
        _syncThreadsLocal()
        return memory[2 * where]

    @gp.operator
    def body(f):
        _localThreads(8)
        x = _var(exchanged(_readTensor(f), 7 - _localColumn))
        with _for(2):
            x @= exchanged(x, _localColumn ^ 1)
            _syncThreadsLocal()
        with _if(_groupColumn % 2 == 0):
            temporary = _local(_intVar())
            with _if(_localColumn == 3):
                temporary @= x
            _syncThreadsLocal()
            x += temporary
        return x

    turned = a.reshape(5, 8)[:, ::-1].copy()
    turned[::2] += turned[::2, 3:4]
    same(body(gp.ScalarField(a)), turned.reshape(40))


def test_an_array_that_gets_its_qualifier_later(device: str) -> None:
    """`_local` annotates what it is given: the name of before means the same memory."""

    @gp.operator(outputs=gp.FieldType(8, (), "int32"))
    def body():
        _localThreads(8)
        v = _intVar()
        shared = _local(v)
        a = _intArray(8)
        again = _local(a)
        a[_localColumn] = _localColumn
        with _if(_localColumn == 0):
            v @= 100
        _syncThreadsLocal()
        return again[7 - _localColumn] + shared

    same(body(), np.arange(107, 99, -1, dtype=np.int32))


def test_two_kernels_with_local_memory_in_a_graph(device: str) -> None:
    """Fused or not: equal."""
    a = rng.integers(0, 99, (20, 21)).astype(np.float32)

    def mirrored(axis):
        @gp.operator
        def mirror(f):
            _localThreads(4, 8)
            shared = _local(_floatArray(_localRows, _localColumns))
            shared[_localRow, _localColumn] = _readTensor(f)
            _syncThreadsLocal()
            last = _min(_localColumns, _columns - _groupColumn * _localColumns) - 1
            r, c = (3 - _localRow, _localColumn) if axis == 0 else (_localRow, last - _localColumn)
            return shared[r, c] + 1

        return mirror

    expected = a.copy()
    for start, stop in ((0, 8), (8, 16), (16, 21)):
        expected[:, start:stop] = expected[:, start:stop][:, ::-1]
    expected = expected.reshape(5, 4, 21)[:, ::-1].reshape(20, 21) * 2 + 4
    for optimize in (True, False):
        with gp.ComputeGraph(optimize=optimize) as graph:
            image = gp.ScalarField(a)
            graph.probe(mirrored(0)(mirrored(1)(image * 2) + 1) + 1, "out")
        same(graph.read("out"), expected.astype(np.float32))
    same(mirrored(0)(mirrored(1)(gp.ScalarField(a) * 2) + 1) + 1, expected.astype(np.float32))


def test_states_and_local_memory(device: str) -> None:
    """A kernel with a barrier that is launched again and again."""
    a = rng.integers(0, 9, 48).astype(np.int32)

    @gp.operator
    def scan(f):
        _localThreads(16)
        shared = _local(_intArray(16))
        shared[_localColumn] = _readTensor(f)
        _syncThreadsLocal()
        total = _var(0)
        with _for(_localColumn + 1) as i:
            total += shared[i]
        return total

    with gp.ComputeGraph() as graph:
        state = gp.ScalarField(a)
        state.next = scan(state) % 1000
        graph.probe(state, "state")
    graph.step(5)
    expected = a
    for _ in range(5):
        expected = np.cumsum(expected.reshape(3, 16), 1).reshape(48) % 1000
    same(graph.read("state"), expected.astype(np.int32))


def test_names_in_the_text(device: str) -> None:
    """Memory has the name that it is assigned to, whichever qualifier stands outside."""

    @gp.operator(outputs=gp.FieldType(8, (), "int32"))
    def body():
        first, late = _local(_intArray(8)), _intVar()
        plain = _local(_intVar())
        outside = _volatile(_local(_intArray(8)))
        inside = _local(_volatile(_intVar()))
        with _if(_localColumn == 0):
            plain @= 1
            inside @= 2
        first[_localColumn] = outside[_localColumn] = late
        _syncThreadsLocal()
        return plain + inside + first[0] + outside[1]

    same(body(), np.full(8, 3, np.int32))
    text = body.source(target="opencl")
    for declaration in ("int plain;", "volatile int outside[8];", "volatile int inside;"):
        assert declaration in text, text
