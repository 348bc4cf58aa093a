"""Loops: how often they turn, when bounds and conditions are computed, and how they are left."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.recorder import frames

from .compare import all_same, same
from .test_blocks import N, each, run


def test_for(device: str) -> None:
    def total(*bounds: Any, **options: Any) -> Callable[[Any], Any]:
        def body(x):
            y = _intVar()
            with _for(*(b(x) if callable(b) else b for b in bounds), **options) as i:
                y @= y * 3 + i
            return y

        return body

    def expected(*bounds: Any) -> Any:
        def in_python(v: int) -> int:
            y = 0
            for i in range(*(b(v) if callable(b) else b for b in bounds)):
                y = y * 3 + i
            return (y + 2**31) % 2**32 - 2**31

        return each(in_python)

    def size(v):
        return abs(v) % 6

    cases = (
        (5,),
        (2, 6),
        (6, 0, -2),
        (5, 2),
        (0,),
        (size,),
        (-3, size),
        (size, -4, -1),
        (0, 20, lambda v: abs(v) % 4 + 3),
        (3, 3, 1),
    )
    all_same(run(*(total(*c) for c in cases)), [expected(*c) for c in cases], [str(c) for c in cases])
    unrolled = ((4,), (5, -1, -3), (2, 2), (size,))
    actual = run(*(total(*c, unroll=u) for c in unrolled for u in (True, 2)))
    all_same(actual, [expected(*c) for c in unrolled for _ in range(2)])


def test_unroll_false_leaves_a_loop() -> None:
    @gp.operator
    def counted(f):
        n = _intVar()
        with _for(5, unroll=False) as i:
            n += i
        return n

    text = counted.source(gp.FieldType(3), target="opencl")
    assert "for (int i = 0; i < 5; i += 1)" in text and "unroll" not in text


def test_for_binds_its_bounds_at_entry(device: str) -> None:
    def body(x):
        n, y = _var(_convert_int(abs(x) % 5)), _intVar()
        with _for(n) as i:
            n += 1
            y += i + 1
        with _for(n, 0, -n) as i:  # one turn, though n changes
            n @= 1
            y += 100 + i * 0
        return y * 1000 + n

    def in_python(v: int) -> int:
        k = abs(v) % 5
        return (sum(range(1, k + 1)) + (100 if k else 0)) * 1000 + (1 if k else 0)

    same(run(body)[0], each(in_python))


def test_leaving_loops(device: str) -> None:
    def body(x):
        y = _intVar()
        with _for(10) as i:
            with _if(i % 3 == 1):
                _continue()
            with _for(5) as j:
                with _if(j > i):
                    _break()
                with _if((i + j + x) % 4 == 0):
                    _continue()
                y += 10 * i + j
            with _if(i * x > 30):
                y += 1000
                _break()
            y += 1
        return y

    def unrolled(x):
        y = _intVar()
        with _for(6, unroll=True) as i:
            with _if(i == x):
                _break()
            y += i
        return y

    def in_python(v: int) -> int:
        y = 0
        for i in range(10):
            if i % 3 == 1:
                continue
            for j in range(5):
                if j > i:
                    break
                if (i + j + v) % 4:
                    y += 10 * i + j
            if i * v > 30:
                return y + 1000
            y += 1
        return y

    all_same(run(body, unrolled), (each(in_python), each(lambda v: sum(range(v)) if 0 <= v < 6 else 15)))


def test_while(device: str) -> None:
    """The condition of `_while(…)` is computed before every turn, its reads included."""

    def collatz(x):
        n, steps = _var(abs(x) + 1), _intVar()
        with _while(n != 1):
            with _if(n % 2 == 0):
                n /= 2
            with _else():
                n @= 3 * n + 1
            steps += 1
        return steps

    def leaving(x):
        y, n = _intVar(), _var(x)
        with _while(lambda: _and(n > 0, y < 50)):
            n -= 1
            with _if(n % 3 == 0):
                _continue()
            with _if(n == 10):
                _break()
            y += n
        return y * 100 + n

    def forever(x):
        y = _var(x)
        with _while(True):
            with _if(y > 3):
                _break()
            y += 5
        return y

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    def left(v: int) -> int:
        y = 0
        while v > 0 and y < 50:
            v -= 1
            if v % 3 == 0:
                continue
            if v == 10:
                break
            y += v
        return y * 100 + v

    expected = each(lambda v: steps(abs(v) + 1)), each(left), each(lambda v: v if v > 3 else v + 5 * ((3 - v) // 5 + 1))
    all_same(run(collatz, leaving, forever), expected)


def test_while_reads_in_its_condition(device: str) -> None:
    data = (np.arange(N) * 7 % 11).astype(np.int32)

    def first_large(field):
        at = _var(_column)
        with _while(_readTensor(field, at, border=99) < 8):
            at += 1
        return at

    def nested(field):
        """A loop in a loop, and a search from each found place."""
        at, found = _var(_column), _intVar()
        with _while(found < 2):
            with _while(_readTensor(field, at, border=99) < 8):
                at += 1
            found += 1
            at += 1
        return at

    def place(c: int, count: int = 1) -> int:
        while c < N and data[c] < 8:
            c += 1
        return c if count == 1 else place(c + 1, count - 1)

    all_same(
        [gp.operator(b)(gp.Field(data)) for b in (first_large, nested)],
        (each(place, range(N)), each(lambda c: place(c, 2) + 1, range(N))),
    )


def doubled(x):
    return x * 2 + 1


def counted(k, n, x):
    with _while(k + x < n):
        k += 1


def test_frames_that_have_ended_are_not_the_ones_that_follow(device, monkeypatch):
    """A frame may have the identity of one that has ended: what that one recorded belongs to no condition of this one."""
    monkeypatch.setattr(frames, "id", lambda thing: 7 if isinstance(thing, FrameType) else id(thing), raising=False)

    @gp.operator
    def op(f):
        x, k = _readTensor(f), _var(0)
        a = doubled(x)
        counted(k, 9, x)
        return k * 100 + a

    x = np.arange(4, dtype=np.int32)
    assert op(gp.ScalarField(x)).numpy().tolist() == ((9 - x) * 100 + 2 * x + 1).tolist()


def test_a_variable_compared_with_itself_is_decided_only_before_it_changes(device):
    """Components of a vector that are one variable compare equal, which compilers would warn of; copies of other turns do not."""

    @gp.operator
    def op(f):
        x = _var(_readTensor(f))
        pair = _var(_convert_uchar2(3))
        same = _where(_convert_short4(pair.xyyx) == _convert_short4(pair.xyxy), 1, 0)
        pair.x = 7
        before, turns = _var(x), _var(0)
        with _while(_and(x == before, turns < 3)):
            before @= x
            x @= x + turns
            turns @= turns + 1
        return same.x * 1000 + same.y * 100 + turns * 10 + x + _convert_int(pair.x)

    x = np.arange(4, dtype=np.int32)
    assert op(gp.ScalarField(x)).numpy().tolist() == (1100 + 20 + x + 1 + 7).tolist()
