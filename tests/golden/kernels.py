"""The kernels whose generated text is kept: few, small, and each for one feature of the printer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gpuop as gp
from gpuop.dsl import *
from gpuop.dsl.fields.field import Field
from gpuop.ir.values import Leaf

GOLDEN: dict[str, Callable[[], object]] = {}


def golden(make: Callable[[], object]) -> Callable[[], object]:
    GOLDEN[make.__name__] = make
    return make


def field(shape: tuple[int, ...], tensor: tuple[int, ...] = (), dtype: str = "float32", name: str = "image") -> Field:
    """A field of a type, without values."""
    return Field.of(Leaf(gp.FieldType(shape, tensor, dtype)), name)


@golden
def half() -> object:
    """The listing of the guide."""

    @gp.operator
    def half(field):
        return _readTensor(field) / 2

    return half(field((512, 512)))


@golden
def square_big() -> object:
    """A big tensor: one thread per element."""

    @gp.operator
    def square(v):
        with _forEachTensorElement(v.tensor_shape):
            element = _tensorElementVar(v)
            element @= _readTensorElement(v)
            _writeTensorElement(_out0, element * element)

    return square(field((15, 17), (7, 7)))


@golden
def upside_down() -> object:
    """A computed address."""

    @gp.operator
    def upside_down(image):
        return _readTensor(image, _rows - _row - 1, _column)

    return upside_down(field((480, 640), (4,), "unorm8"))


@golden
def laplacian() -> object:
    """A stencil; every border in one kernel."""

    @gp.operator
    def laplacian(image):
        total = _readTensor(image, _row - 1, _column, border="clamp")
        total += _readTensor(image, _row + 1, _column, border="wrap")
        total += _readTensor(image, _row, _column - 1, border="reflect")
        total += _readTensor(image, _row, _column + 1, border=0.5)
        return total - 4 * _readTensor(image, _row + 3, _column, border="symmetric")

    return laplacian(field((33, 65)))


@golden
def branches() -> object:
    """Blocks of every kind."""

    @gp.operator
    def branches(image):
        x = _var(_readTensor(image))
        with _if(x > 1):
            x @= _sqrt(x)
        with _elseif(_readTensor(image, _row, 0) < 0):
            x @= -x
        with _else():
            with _for(10) as i:
                with _if(x > i):
                    _continue()
                x += i
        with _while(x > 2):
            x /= 2
        return x

    return branches(field((20, 20)))


@golden
def fused() -> object:
    """Three operators and host algebra in one kernel, with a parameter passed by value."""

    @gp.operator
    def gamma(image):
        return _pow(_readTensor(image), 2.2)

    @gp.operator
    def mixed(image):
        red, green, blue = _readTensor(image)
        return _float3(0.9 * red + 0.1 * green, green, 0.2 * red + 0.8 * blue)

    return np.clip(mixed(gamma(field((480, 641), (3,)))) * gp.Parameter(1.25), 0, 1)


@golden
def types() -> object:
    """Conversions, integer division, half, shifts, arrays, a scatter."""

    @gp.operator(outputs=lambda a, b, c: (c.type, gp.FieldType(b.type.field_shape, (), "uint8")))
    def types(a, b, c):
        small = _readTensor(a)
        wide = _readTensor(b)
        short = _readTensor(c)
        table = _intArray(4)
        table[wide & 3] = wide // 3
        _writeTensor(_out0, short * 0.1 + _convert_half(wide % wide))
        _writeTensor(_out1, table[_column & 3] + small + _convert_int(short) + (wide << 3), _column * 2)

    return types(field((100,), (), "uint8", "a"), field((100,), (), "int32", "b"), field((100,), (), "float16", "c"))


@golden
def doubles_3d() -> object:
    """Three dimensions, double, long, big tensors of a 3D field."""

    @gp.operator(outputs=lambda v: (v.type, gp.FieldType(v.field_shape, (), "int64")))
    def doubles(v):
        total = _doubleVar()
        for k in range(3):
            total += _readTensorElement(v, k)
        _writeTensor(_out0, _normalize(_readTensor(v)) * total)
        _writeTensor(_out1, _convert_long(total) + _layer * 1000 + _layers)

    return doubles(field((5, 7, 3), (3,), "float64"))


@golden
def tiles() -> object:
    """Local memory, barriers in a loop, tail threads, a result used after a barrier."""

    @gp.operator(outputs=lambda a, b: gp.FieldType((a.field_shape[0], b.field_shape[1])))
    def product(a, b):
        rows, columns = a.field_shape[0], b.field_shape[1]
        _localThreads(16, 16)
        _globalThreads((-(-rows // 16) * 16, -(-columns // 16) * 16))
        left = _local(_floatArray(16, 16))
        right = _local(_floatArray(16, 16))
        total = _floatVar()
        with _for(0, a.field_shape[1], 16) as start:
            left[_localRow, _localColumn] = _readTensor(a, _row, start + _localColumn, border="zero")
            right[_localRow, _localColumn] = _readTensor(b, start + _localRow, _column, border="zero")
            _syncThreadsLocal()
            with _for(16) as k:
                total += left[_localRow, k] * right[k, _localColumn]
            _syncThreadsLocal()
        _writeTensor(_out0, total, _row, _column)

    return product(field((179, 100), name="a"), field((100, 50), name="b"))


@golden
def counts() -> object:
    """Atomics on local memory and on an output, tail threads and barriers, a constant table, the integer functions."""

    @gp.operator(outputs=lambda f: (gp.FieldType(16, dtype="int32"), gp.FieldType((3, 4))))
    def counts(levels):
        _localThreads(4, 64)
        _globalThreads(levels)
        total = _local(_floatVar())
        first = (_localRow == 0) & (_localColumn == 0)
        with _if(first):
            total @= 0
        _syncThreadsLocal()
        level = _readTensor(levels)
        weights = _constantArray(np.array([[0.5, 1, 2, 4], [1, 1, 1, 1]], np.float32))
        _atomic_add(_pointerTo(total), weights[_row & 1, _rotate(level, 2) & 3])
        _atomic_inc(_pointerTo(_out0, _add_sat(level, level) >> 4))
        _syncThreadsLocal()
        with _if(first):
            _writeTensor(_out1, total, _groupRow, _groupColumn)

    return counts(field((10, 250), (), "uint8", "levels"))


@golden
def collectives() -> object:
    """A reduction of a work-group that lacks threads at the edge, parts of it, a scan, and a selection."""

    @gp.operator(outputs=lambda f: (f.type, f.type, f.type, f.type))
    def collectives(values):
        _localThreads(4, 32)
        x = _readTensor(values)
        _writeTensor(_out0, x - _reduceGroup(x, "add"))
        _writeTensor(_out1, _reduceGroup(x, "max", over="column"))
        _writeTensor(_out2, _scanGroup(x, "add", inclusive=False, over=8))
        _writeTensor(_out3, _selectGroup(x, 16, over="column"))

    return collectives(field((10, 50), name="values"))


@golden
def targets() -> object:
    """Decisions of a target: a branch with its field and its table, the work-groups, an array, a loop that is expanded."""

    @gp.operator
    def targets(a, b):
        _localThreads(2, _target.choose({"opencl": 16, "cuda:sm_80": 32}))
        tile = _local(_floatArray(_localRows, _localColumns + 1))
        x = _var(_readTensor(a))
        with _codegenIf((_target.backend == "cuda") & (_target.architecture >= 80)):
            x += _convert_float(_exp(_convert_double(_readTensor(b)))) * _constantArray([0.5, 2.0])[_row & 1]
        with _codegenElse():
            with _for(_target.simd_width + 1, unroll=True) as i:
                x += _readTensor(a, _row, _column + i)
        tile[_localRow, _localColumn] = x
        _syncThreadsLocal()
        return tile[_localRow, _localColumns - 1 - _localColumn]

    return targets(field((10, 64), name="a"), field((10, 64), name="b"))


@golden
def wide_lanes() -> object:
    """Lanes that are loaded at once: bytes of three planes, and halves that the position decides about."""

    @gp.operator(outputs=lambda f, g: (f.type, g.type))
    def wide(f, g):
        _writeTensor(_out0, 255 - _readTensor(f))
        x = _var(_readTensor(g))
        with _if(_row < _column):
            x *= 2
        _writeTensor(_out1, x)

    return wide(field((48, 64), (3,), "uint8", "f"), field((48, 64), (), "float16", "g"))


@golden
def vector_lanes() -> object:
    """Lanes as OpenCL's vectors: a condition becomes a choice, and the last vector is not full."""

    @gp.operator
    def vector(f):
        x = _var(_readTensor(f))
        with _if(x > 1):
            x @= _sqrt(x) + _column
        return x

    return vector(field((35, 51), name="f"))


@golden
def spaced_lanes() -> object:
    """Lanes a work-group apart, since there is an odd number of points."""

    @gp.operator
    def spaced(f):
        return _readTensor(f) * (_row + 1)

    return spaced(field((35, 51), (2,), name="f"))


@golden
def photo_points() -> object:
    """A photo of bytes as it lies: vectors of each colour are shuffled out of it, or picked from words of 16 bytes."""

    @gp.operator
    def warm(photo):
        red, green, blue = _convert_int3(_readTensor(photo))
        return _convert_uchar3(_int3(red + 20, green, blue - 20))

    return warm(field((32, 64), (3,), "uint8", "photo"))


@golden
def photo_stencil() -> object:
    """A stencil of a photo of floats as it lies."""

    @gp.operator
    def below(photo):
        return 0.5 * (_readTensor(photo) + _readTensor(photo, _row + 1, _column))

    return below(field((32, 64), (3,), name="photo"))
