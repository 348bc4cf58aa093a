"""Faults that random programs revealed, each as small as possible."""

from __future__ import annotations

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *
from tests.borders import CHECKED
from tests.codegen.nvrtc import compile_cuda
from tests.conformance.compare import same

FLOATS = np.float32([1.5, 300, -5, np.nan])


def test_narrow_integers_of_floating_values(device):
    """As operands of functions they were ints: `max` was ambiguous."""
    same(gp.operator(lambda f: _max(_convert_char(_readTensor(f)), 3))(gp.ScalarField(FLOATS)), np.int8([3, 127, 3, 3]))


def test_leading_zeros_of_narrow_integers_of_floating_values(device):
    """`clz` counted those of an int, 31 for 7."""
    same(gp.operator(lambda f: _clz(_convert_uchar(_readTensor(f))))(gp.ScalarField(FLOATS)), np.uint8([7, 0, 8, 8]))


def test_bits_of_narrow_integers_of_floating_values(device):
    same(
        gp.operator(lambda f: _as_char(_convert_uchar(_readTensor(f))))(gp.ScalarField(FLOATS)), np.int8([1, -1, 0, 0])
    )


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_power_of_zero_has_the_type_of_its_base(dtype):
    out = gp.operator(lambda f: _readTensor(f) ** 0)(gp.ScalarField(FLOATS.astype(dtype)))
    assert out.dtype == dtype


def fused(dtype, a, b, c):
    fields = [gp.ScalarField(np.array([v], dtype)) for v in (a, b, c)]
    return gp.operator(lambda a, b, c: _fma(_readTensor(a), _readTensor(b), _readTensor(c)))(*fields)


def test_fma_of_half_is_rounded_once(device):
    """683 · 3 is half way between two halves, and what is added decides."""
    same(fused("float16", 683, 3, 2.0**-24), np.float16([2050]))


def test_fma_of_float_is_rounded_once(device):
    """97 · 172961 is half way between two floats, and what is added decides."""
    same(fused("float32", 97, 172961, 2.0**-60), np.float32([16777218]))


@pytest.mark.parametrize(
    ("dtype", "vector", "numbers"),
    [
        ("uint32", lambda: _uint2(4294967295, 1), [4294967295, 1]),
        ("uint64", lambda: _ulong2(2**63, 0), [2**63, 0]),
        ("float64", lambda: _double2(1e300, 1), [1e300, 1]),
    ],
)
def test_vectors_of_numbers_that_only_their_type_holds(dtype, vector, numbers):
    same(gp.operator(outputs=gp.FieldType(1, 2, dtype))(vector)(), np.array([numbers], dtype))


def test_convert_gives_a_number_its_type():
    """It is what the message about numbers that do not fit advises."""
    out = gp.operator(outputs=gp.FieldType(1, (), "int64"))(lambda: _convert(2**40, "int64"))()
    same(out, np.int64([2**40]))


def test_convert_to_a_field_type_is_a_semantic_error():
    with pytest.raises(gp.SemanticError):
        gp.operator(lambda f: _convert(_readTensor(f), gp.FieldType((), 3)))(gp.ScalarField(FLOATS))


def test_more_elements_than_int_counts_is_a_semantic_error():
    def body(f):
        with _forEachTensorElement(2**200):
            _writeTensor(_out0, _readTensor(f))

    with pytest.raises(gp.SemanticError):
        gp.operator(body)(gp.ScalarField(FLOATS))


def test_comparisons_of_comparisons(device):
    """Intel's compiler takes `a < b < c` for a slip, and refused it; of vectors too."""
    f = gp.ScalarField(np.int32([1, 2, 3, 0]))
    actual = gp.operator(lambda f: (_readTensor(f) < 2) < (_readTensor(f) > 0))(f)
    same(actual, np.array([False, True, True, False]))


def test_a_barrier_under_a_condition_and_memory_in_its_else(device):
    """Tail threads, a barrier before, and an `_else` that is not taken: PoCL gave garbage."""
    yes = gp.ScalarField(np.int32(3))

    @gp.operator
    def body(f):
        _localThreads(16)
        memory, first = _local(_intArray(16)), _local(_intVar())
        x = _var(_readTensor(f))
        memory[_localColumn] = _column * 3 + 1
        with _if(_localColumn == 0):
            first @= 0
        _syncThreadsLocal()
        with _if(_readTensor(yes) != 0):
            _syncThreadsLocal()
        with _else():
            memory[_localColumn] = x
        return memory[_localColumn] + 100 * x

    same(body(gp.ScalarField(np.int32([1, 2, 3, 4, 5]))), np.int32([101, 204, 307, 410, 513]))


@pytest.mark.parametrize("border", CHECKED)
def test_borders_of_half_fields_in_cuda(border):
    """The offset is a conditional expression there."""
    f = gp.ScalarField(np.ones(37, np.float16))
    compile_cuda(
        gp.operator(lambda f: _readTensor(f, _column - 1, border=border)).source(f.type, target="cuda"), "sm_90"
    )


def test_equal_texts_with_other_defaults(device):
    """They shared a compiled kernel, and with it what the first one's output was filled with."""

    def at_first(f):
        _writeTensor(_out0, _readTensor(f, 0), 0)

    f = gp.ScalarField(np.arange(5, 9, dtype=np.int32))
    for default in (1, 7, -3):
        result = gp.operator(name="at_first", default=default)(at_first)(f).numpy()
        assert result.tolist() == [5, default, default, default]


def test_clamp_takes_the_type_of_all_three(device):
    """The first two were compared in their own: -1 as an unsigned byte was 255, and two bools became an int."""
    x, low = gp.ScalarField(np.int8([-1, 5, 100])), gp.ScalarField(np.uint8([0, 9, 200]))

    bounded = gp.operator(lambda x, low: _clamp(_readTensor(x), _readTensor(low), _convert_int(250)))
    same(bounded(x, low), np.int32([0, 9, 200]))
    bools = gp.operator(lambda x: _clamp(_readTensor(x) > 0, _readTensor(x) > 9, _readTensor(x)))
    same(bools(x), np.int8([-1, 1, 1]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("operation", ["quotient", "product"])
def test_constant_infinities_are_no_warnings_in_cuda(dtype, operation):
    """Compilers fold an extent, which is a constant, and a number beside it: the suite takes warnings for errors."""
    least, most = float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).max)

    def folded(f):
        value = _var(_readTensor(f))
        with _if(value > 3):
            if operation == "product":
                value @= _convert(_rows, dtype) * most
            else:
                value @= _convert(_rows, dtype) / least
        return value

    f = gp.ScalarField(np.ones((37, 5), dtype))
    compile_cuda(gp.operator(folded).source(f.type, target="cuda"), "sm_90")
