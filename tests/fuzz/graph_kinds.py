"""The operators of random graphs, each with what it takes; all are exact, and keep values small.

Letters stand for types: f float32, i int32, l int64, u uint8, b bool, v a float32 vector of 3, t one of 6 (a big tensor).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpuop as gp
from gpuop.dsl import *

LETTERS = {
    ("float32", ()): "f", ("int32", ()): "i", ("int64", ()): "l", ("uint8", ()): "u", ("bool", ()): "b",
    ("float32", (3,)): "v", ("float32", (6,)): "t",
}  # fmt: skip
LARGE, SMALL = (6, 20), (3, 10)


@dataclass(frozen=True)
class Kind:
    """A function from fields to fields.

    Attributes:
        sort: what the strategy counts.
        takes: letters of the inputs, on one grid, or (upper case) on none.
        rank: the dimensions of the grid, if they matter.
        grid: the grid, if it matters.
    """

    name: str
    sort: str
    make: Callable[..., Any]
    takes: str
    rank: int | None = None
    grid: tuple[int, ...] | None = None


def letter(field: gp.Field) -> str:
    return LETTERS.get((str(field.dtype), tuple(field.tensor_shape)), "?")


KINDS: dict[str, Kind] = {}


def add(sort: str, takes: str, rank: int | None = None, grid: Any = None, **operator: Any) -> Callable[..., Any]:
    """Have an operator of a body in the pool."""

    def having(body: Callable[..., Any]) -> Callable[..., Any]:
        result = gp.operator(**operator)(body)
        KINDS[body.__name__] = Kind(body.__name__, sort, result, takes, rank, grid)
        return result

    return having


def also(name: str, sort: str, takes: str, make: Callable[..., Any], rank: int | None = None, grid: Any = None) -> None:
    """Have fields' own methods and operators in the pool."""
    KINDS[name] = Kind(name, sort, make, takes, rank, grid)


def like(**changes: Any) -> Callable[..., Any]:
    return lambda f, *_: f.type.replace(**changes)


def tame(x: Any) -> Any:
    """Within ±64, and no negative zero."""
    return _clamp(x, -64.0, 64.0) + 0.0


# --- local ------------------------------------------------------------------------------------------------------------


@add("local", "ff")
def mix(a, b):
    return tame(_readTensor(a) * 0.75 - _readTensor(b) * 1.3 + 0.1)


@add("local", "ff")
def product(a, b):
    return tame(_readTensor(a) * _readTensor(b))


@add("local", "fi")
def chosen(a, i):
    x = _var(_readTensor(a))
    with _if((_readTensor(i) & 1) == 0):
        x @= _floor(x) + 0.5
    with _elseif(x > 2):
        x @= 2.0 - x
    return tame(x)


@add("local", "ii")
def wrapped(a, b):
    return (_readTensor(a) * 3 + (_readTensor(b) ^ 77)) & 0xFFFF


@add("local", "ub")
def bytes_(u, b):
    return _where(_readTensor(b), _readTensor(u), _convert_uchar(_readTensor(u) ^ 85))


@add("local", "ff")
def above(a, b):
    return _readTensor(a) > _readTensor(b)


@add("local", "f")
def whole(f):
    return _convert_int(_floor(_readTensor(f) * 4.0))


@add("local", "i")
def real(i):
    return _convert_float(_readTensor(i) & 63) * 0.25


@add("local", "i")
def narrow(i):
    return _convert_uchar(_readTensor(i) & 255)


@add("local", "u")
def wide(u):
    return _convert_int(_readTensor(u)) - 99


@add("local", "l")
def short(n):
    return _convert_int(_readTensor(n) & 0xFFFF)


@add("local", "i")
def looped(i):
    n = _var(_readTensor(i) & 0xFFF)
    with _for(3):
        n @= _where((n & 1) == 0, n / 2, n * 3 + 1)
    return n


@add("local", "fb", outputs=like(), default=0.75)
def sometimes(a, b):
    with _if(_readTensor(b)):
        _writeTensor(_out0, _readTensor(a))


@add("local", "f", rank=2)
def placed(f):
    return tame(_readTensor(f) + _convert_float(_row * 2 - _column))


@add("costly", "f")
def costly(f):
    x = _var(_readTensor(f))
    for k in range(60):
        x @= x * 0.5 + (k % 3 - 1.0)
    return tame(x)


@add("vector", "fff")
def packed(a, b, c):
    return _vector(_readTensor(a), _readTensor(b), _readTensor(c))


@add("vector", "vf")
def swizzled(v, a):
    return _readTensor(v).zxy * 0.5 + _readTensor(a) * 0.25


@add("vector", "v")
def parts(v):
    x, y, z = _readTensor(v)
    return x, tame(y * z)


@add("outputs", "f")
def split(f):
    x = _readTensor(f)
    return tame(x + 1), _convert_int(_floor(x)), x > 0.25


@add("outputs", "ff", outputs=lambda a, b: (a.type, b.type))
def late(a, b):
    x = _var(_readTensor(a))
    _writeTensor(_out0, x)
    x += 0.5
    _writeTensor(_out1, tame(x * _readTensor(b)))


@add("unused", "ff")
def careless(a, b):
    return tame(_readTensor(a) * 0.5 - 1)


@add("unused", "ffi")
def thrifty(a, b, i):  # each output needs one input
    return _readTensor(b) * 0.5, _readTensor(i) & 31


@add("0D", "fF")
def lit(f, amount):
    return tame(_readTensor(f) * _readTensor(amount))


@add("0D", "FF")
def level(a, b):
    return tame(_readTensor(a) * 0.5 + _readTensor(b) * 0.25 + 1)


@add("elements", "v")
def squared(v):
    with _forEachTensorElement(v.tensor_shape):
        x = _readTensorElement(v)
        _writeTensorElement(_out0, tame(x * x - 1))


@add("elements", "t")
def halved(t):
    with _forEachTensorElement(t.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(t) * 0.5 + 1)


@add("elements", "tf")
def scaled(t, f):
    x = _floor(_readTensor(f)) + 1
    with _forEachTensorElement(t.tensor_shape):
        _writeTensorElement(_out0, tame(_readTensorElement(t) * x))


@add("elements", "t", outputs=like())
def turned(t):
    for n in range(6):
        _writeTensorElement(_out0, _readTensorElement(t, 5 - n) - n, n)


@add("elements", "tt", outputs=lambda t, s: (t.type, t.type))
def centred(t, s):
    least, kept = _var(_readTensorElement(t, 0)), _floatArray(6)
    with _for(1, 6) as k:
        least @= _min(least, _readTensorElement(t, k))
        kept[k] = least
    with _forEachTensorElement(t.tensor_shape):
        _writeTensorElement(_out0, tame(_readTensorElement(t) - least))
    for n in range(6):
        _writeTensorElement(_out1, tame(_readTensorElement(s, n) + (kept[n] if n % 2 else least)), n)


@add("elements", "ti", rank=2)
def pulled(t, i):
    c = _column + (_readTensor(i) & 3)
    with _forEachTensorElement(t.tensor_shape):
        _writeTensorElement(_out0, _readTensorElement(t, _row, c, _tensorElement) * 0.5 + 1, _tensorElement)


@add("elements", "t", outputs=like(tensor_shape=()))
def of_elements(t):
    _writeTensor(_out0, tame(_readTensorElement(t, 1) - _readTensorElement(t, 4)))


also("times", "elements", "tf", lambda t, f: t * 0.25 + f)
also("twice", "local", "f", lambda f: f * 0.5 + f)
also("first", "vector", "v", lambda v: v[..., 0])
