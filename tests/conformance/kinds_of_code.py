"""Small operators, continued: what is written in their bodies."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

import gpuop as gp
from gpuop.dsl import *

from .kinds import COLUMNS, COUNTS, IMAGE, OTHER, RGB, ROWS, counts, image, kind, other, rgb


@kind((image,), ROWS + 10 * COLUMNS + 100 * 6 + 1000 * 7 + 1)
def thread_constants(f):
    return _row + 10 * _column + 100 * _rows + 1000 * _columns + _layer + _layers + _tensorElement


@kind((image,), np.where(IMAGE > 1, 1, np.where(IMAGE > 0, IMAGE, -IMAGE)).astype(np.float32))
def branches(f):
    x = _var(_readTensor(f))
    with _if(x > 1):
        x @= 1
    with _elseif(x <= 0):
        x @= -x
    return x


@kind((counts,), np.vectorize(lambda n: n.bit_length(), otypes=["i4"])(COUNTS))
def while_loop(f):
    n, bits = _var(_readTensor(f)), _intVar()
    with _while(n > 0):
        n >>= 1
        bits += 1
    return bits


@kind((counts,), np.vectorize(lambda n: sum(k for k in range(n % 9) if k % 2 and k < 6), otypes=["i4"])(COUNTS))
def for_loop(f):
    total = _intVar()
    with _for(_readTensor(f) % 9) as k:
        with _if(k % 2 == 0):
            _continue()
        with _if(k >= 6):
            _break()
        total += k
    return total


@kind((image,), ndimage.median_filter(IMAGE, (1, 3), mode="nearest"))
def arrays(f):
    window = _tensorArray(f, 3)
    for k in range(3):
        window[k] = _readTensor(f, _row, _column + k - 1)
    with _for(2) as i, _for(2 - i) as j:
        low = _min(window[j], window[j + 1])
        window[j + 1] = _max(window[j], window[j + 1])
        window[j] = low
    return window[1]


@kind((counts,), COUNTS * 5 % 7 + (COUNTS >> 2 & 12 | COUNTS << 1 ^ 3) - COUNTS // 3 + ~COUNTS)
def integer_operators(f):
    n = _readTensor(f)
    return n * 5 % 7 + (n >> 2 & 12 | n << 1 ^ 3) - n // 3 + ~n


@kind((image, other), (IMAGE < OTHER) & ~(IMAGE == 0) | (OTHER >= 2), np.where(IMAGE != OTHER, IMAGE, np.float32(9)))
def logic(f, g):
    x, y = _readTensor(f), _readTensor(g)
    return _or(_and(x < y, _not(x == 0)), y >= 2), _where(x != y, x, 9)


@kind(
    (image, counts),
    np.stack([IMAGE, COUNTS, 0 * IMAGE + 2.5], -1).astype("f4"),
    np.stack([COUNTS % 5, COUNTS * 0 - 1], -1).astype("i4"),
)
def vector_literals(f, n):
    return _float3(_readTensor(f), _readTensor(n), 2.5), _int2(_readTensor(n) % 5, -1)


@kind((image,), IMAGE.view(np.int32), np.trunc(IMAGE * 10).astype(np.int32))
def conversions(f):
    return _as_int(_readTensor(f)), _convert_int(_readTensor(f) * 10)


@kind(
    (image, other),
    np.sqrt(abs(IMAGE)),
    np.maximum(IMAGE, OTHER),
    np.clip(IMAGE, -1, 1),
    np.floor(OTHER),
    np.copysign(IMAGE, OTHER),
)
def functions(f, g):
    x, y = _readTensor(f), _readTensor(g)
    return _sqrt(_fabs(x)), _fmax(x, y), _clamp(x, -1.0, 1.0), _floor(y), _copysign(x, y)


@kind((rgb,), (RGB * RGB).sum(-1), np.cross(RGB, np.float32([1, 2, 4])).astype(np.float32))
def geometry(f):
    v = _readTensor(f)
    return _dot(v, v), _cross(v, _float3(1, 2, 4))


@kind((image,), (IMAGE + np.pad(IMAGE, 1, "reflect")[2:, 1:-1]) / 2)
def samples(f):
    return _sampleTensor(f, _row + 0.5, _column, border="reflect")


@kind((image,), ndimage.correlate(IMAGE, np.ones((3, 3)), mode="constant"))
def metaprogramming(f):
    return sum(_readTensor(f, _row + r, _column + c, border="zero") for r in (-1, 0, 1) for c in (-1, 0, 1))


@kind((image,), IMAGE[:, [3, 2, 1, 0, 6, 5, 4]], outputs=image.type)
def local_memory(f):
    _globalThreads((6, 8))
    _localThreads(2, 4)
    tile = _local(_floatArray(2, 4))
    tile[_localRow, _localColumn] = _readTensor(f, _row, _column)
    _syncThreadsLocal()
    last = _min(4 * _groupColumn + 3, 6)
    with _if(_column < 7):
        _writeTensor(_out0, tile[_localRow, last - _column], _row, _column)


@kind((counts,), np.bincount(COUNTS.ravel() % 8, minlength=8).astype(np.int32), outputs=gp.FieldType(8, (), "int32"))
def histogram(f):
    _globalThreads(f)
    _atomic_add(_pointerTo(_out0, _readTensor(f) % 8), 1)
