"""More operators of random graphs: those that read and write elsewhere, count, reduce and share memory."""

from __future__ import annotations

import gpuop as gp
from gpuop.dsl import *

from .graph_kinds import LARGE, SMALL, add, also, like, tame

COUNTS = gp.FieldType(20, dtype="int32")


# --- stencils and gathers -----------------------------------------------------------------------------------------------


@add("stencil", "f", rank=2)
def blur(f):
    x = _readTensor(f)
    for dr, dc, border in ((-1, 0, "clamp"), (1, 0, "reflect"), (0, -1, "wrap"), (0, 2, "zero"), (-2, 1, 0.5)):
        x = x + _readTensor(f, _row + dr, _column + dc, border=border)
    return tame(x * 0.25)


@add("stencil", "i", rank=2)
def spread(i):
    x = _readTensor(i, _row, _column - 1, border="symmetric") + _readTensor(i, _row + 1, _column, border=7)
    return (x - _readTensor(i)) & 0xFFFF


@add("stencil", "u", rank=2)
def dilated(u):
    return _max(_readTensor(u), _readTensor(u, _row - 1, _column + 1, border="zero"))


@add("stencil", "b", rank=2)
def edge(b):
    return _readTensor(b) ^ _readTensor(b, _row, _column + 1, border="wrap")


@add("stencil", "v", rank=2)
def slope(v):
    return _readTensor(v, _row, _column + 1, border="reflect") - _readTensor(v) * 0.5


@add("stencil", "f", rank=1)
def along(f):
    return tame(_readTensor(f, _column + 1, border="wrap") - _readTensor(f, _column - 2, border=0.25))


@add("gather", "f", rank=2)
def shift(f):
    return _readTensor(f, _row, _column + 1)


@add("gather", "f", rank=2)
def flipped(f):
    return _readTensor(f, _rows - 1 - _row, _column)


@add("gather", "fi", rank=2)
def picked(f, i):
    at = _readTensor(i)
    return _readTensor(f, _row + at % 3, _column - at / 9, border="symmetric")


@add("gather", "f", grid=LARGE, outputs=like(field_shape=SMALL))
def downsampled(f):
    _writeTensor(_out0, _readTensor(f, 2 * _row, 2 * _column + 1))


@add("gather", "f", grid=SMALL, outputs=like(field_shape=LARGE))
def upsampled(f):
    _writeTensor(_out0, _readTensor(f, _row / 2, _column / 2))


@add("gather", "i", grid=(20,), outputs=like(field_shape=LARGE))
def outer(i):
    _writeTensor(_out0, (_readTensor(i, _column) + _row) & 0xFFFF)


also("cropped", "gather", "f", lambda f: f[1:4, 5:15], grid=LARGE)
also("cropped bytes", "gather", "u", lambda u: u[::2, ::-2], grid=LARGE)
also("cropped vectors", "gather", "v", lambda v: v[3:, 10:], grid=LARGE)
also("a row", "slice", "f", lambda f: f[1], rank=2)
also("a point", "slice", "f", lambda f: f[1, 2], rank=2)


# --- scatters and work-groups -------------------------------------------------------------------------------------------


@add("scatter", "f", rank=2, outputs=like())
def mirrored(f):
    _writeTensor(_out0, _readTensor(f), _row, _columns - 1 - _column)


@add("scatter", "i", rank=2, outputs=like(), default=5)
def spaced(i):
    with _if((_readTensor(i) & 1) == 0):
        _writeTensor(_out0, _readTensor(i), _rows - 1 - _row, _column)


@add("scatter", "fi", rank=2, outputs=lambda f, i: (f.type, i.type))
def half_moved(f, i):
    _writeTensor(_out0, _readTensor(f), _rows - 1 - _row, _column)
    _writeTensor(_out1, _readTensor(i) & 255)


@add("local memory", "f", rank=2)
def tiled(f):
    _localThreads(4, 8)
    tile = _local(_floatArray(_localRows, _localColumns))
    tile[_localRow, _localColumn] = _readTensor(f)
    _syncThreadsLocal()
    return tame(tile[_localRow, _localColumn - _min(_localColumn, 1)] + _readTensor(f))


@add("local memory", "i", rank=2)
def tiled_otherwise(i):
    _localThreads(2, 16)
    tile = _local(_intArray(_localRows, _localColumns))
    tile[_localRow, _localColumn] = _readTensor(i)
    _syncThreadsLocal()
    return tile[_localRow - _min(_localRow, 1), _localColumn] & 0xFFFF


@add("atomic", "i", rank=2, outputs=COUNTS)
def histogram(i):
    _globalThreads(i)
    _atomic_inc(_pointerTo(_out0, _readTensor(i) & 15))


@add("atomic", "ib", rank=2, outputs=lambda i, b: (COUNTS, i.type))
def counted(i, b):
    _globalThreads(i)
    with _if(_readTensor(b)):
        _atomic_add(_pointerTo(_out0, _column % 20), _readTensor(i) & 255)
    _writeTensor(_out1, _readTensor(i) & 127)


# --- reductions ---------------------------------------------------------------------------------------------------------


@add("local", "f")
def tamed(f):
    return tame(_readTensor(f))


for name in ("sum", "min", "max"):
    for axis in (None, 0, 1):
        also(f"{name} {axis}", "reduction", "f", lambda f, n=name, a=axis: tamed(getattr(f, n)(axis=a)), rank=2)
    also(f"{name} of vectors", "reduction", "v", lambda v, n=name: tamed(getattr(v, n)(axis=-1)))
for name in ("argmin", "argmax"):
    also(f"{name} 0", "reduction", "f", lambda f, n=name: getattr(f, n)(axis=0), rank=2)
    also(name, "reduction", "f", lambda f, n=name: getattr(f, n)(), rank=2)
also("sum of integers", "reduction", "i", lambda i: i.sum(axis=0), rank=2)
also("sum of bytes", "reduction", "u", lambda u: u.sum(), rank=2)
also("sum of a tensor", "reduction", "t", lambda t: tamed(t.sum(axis=-1)))
also("count", "reduction", "b", lambda b: b.sum(axis=1), rank=2)
