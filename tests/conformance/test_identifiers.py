"""Whatever the user calls things, the text is right: identifiers of the languages, names that look like gpuop's, comments."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpuop as gp
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from tests.codegen.nvrtc import compile_cuda

# What a compiler refuses as the name of a variable or a parameter: Intel's OpenCL, PoCL, or NVRTC. And what looks like it.
TAKEN = re.findall(
    r"\w+",
    """
CHAR_BIT CHAR_MAX CHAR_MIN CLANG_MAJOR CLK_LOCAL_MEM_FENCE CL_VERSION_1_0 CL_VERSION_1_1 CL_VERSION_1_2 CL_VERSION_2_0
CL_VERSION_3_0 CL_VERSION_3_1 DBL_DIG DBL_EPSILON DBL_MANT_DIG DBL_MAX DBL_MAX_10_EXP DBL_MAX_EXP DBL_MIN DBL_MIN_10_EXP
DBL_MIN_EXP DBL_RADIX FLT_DIG FLT_EPSILON FLT_MANT_DIG FLT_MAX FLT_MAX_10_EXP FLT_MAX_EXP FLT_MIN FLT_MIN_10_EXP FLT_MIN_EXP
FLT_RADIX FP_ILOGB0 FP_ILOGBNAN HALF_DIG HALF_EPSILON HALF_MANT_DIG HALF_MAX HALF_MAX_10_EXP HALF_MAX_EXP HALF_MIN
HALF_MIN_10_EXP HALF_MIN_EXP HALF_RADIX HUGE_VAL HUGE_VALF IMG_RO_AQ IMG_WO_AQ INFINITY INTTYPE INT_MAX INT_MIN LLVM_15_0
LLVM_OLDER_THAN_16_0 LONG_MAX LONG_MIN MAXFLOAT M_1_PI M_1_PI_F M_1_PI_H M_2_PI M_2_PI_F M_2_PI_H M_2_SQRTPI M_2_SQRTPI_F
M_2_SQRTPI_H M_E M_E_F M_E_H M_LN10 M_LN10_F M_LN10_H M_LN2 M_LN2_F M_LN2_H M_LOG10E M_LOG10E_F M_LOG10E_H M_LOG2E M_LOG2E_F
M_LOG2E_H M_PI M_PI_1 M_PI_2 M_PI_2_F M_PI_2_H M_PI_4 M_PI_4_F M_PI_4_H M_PI_F M_PI_H M_SQRT1_2 M_SQRT1_2_F M_SQRT1_2_H
M_SQRT2 M_SQRT2_F M_SQRT2_H NAN NULL POCL_DEVICE_ADDRESS_BITS POCL_DEVICE_TYPES_H SCHAR_MAX SCHAR_MIN SHRT_MAX SHRT_MIN
UCHAR_MAX UINT_MAX ULONG_MAX USHRT_MAX alignas alignof and_eq as_float asm atomicAdd auto barrier bitand bitor blockDim
bool case catch char char16_t char32_t cl_khr_fp16 cl_khr_fp64 cl_mem_fence_flags compl const const_cast constant constexpr
convert_int cudaStream_t decltype default delete do double dynamic_cast enum errno explicit export extern false float float4
friend generic get_global_id goto half half_1 image1d_array_t image1d_buffer_t image1d_t image2d_array_depth_t image2d_array_t
image2d_depth_t image2d_t image3d_t inline int isnan kernel linux local long mutable namespace native_sin new noexcept not_eq
nullptr operator or_eq pipe printf private protected public read_only read_write register reinterpret_cast restrict short
signed size_t sizeof static static_assert static_cast struct switch t_half template this threadIdx thread_local throw true
typedef typeid typename uchar16 union unix unsigned using vec_step virtual vload4 void volatile wchar_t write_only xor xor_eq
""",
)
AT_ONCE = 25
ALL = range(0, len(TAKEN), AT_ONCE)
x = gp.ScalarField(np.arange(12, dtype="float32").reshape(3, 4))


def chunks(first: int) -> tuple[list[str], list[str]]:
    """Names for parameters, and names for variables; over all tests each is both."""
    return TAKEN[first : first + AT_ONCE], TAKEN[(first + AT_ONCE) % (ALL[-1] + AT_ONCE) :][:AT_ONCE]


def summed(first: int) -> gp.Field:
    """The sum of the fields n, n + 1 …, whose names are some of these, and of variables with others of them."""
    parameters, variables = chunks(first)
    lines = [f"    {name} = _var(_readTensor({value}) * 2)" for name, value in zip(variables, parameters, strict=False)]
    total = [f"_readTensor({name})" for name in parameters] + variables[: len(lines)]
    scope = dict(globals())
    exec("\n".join([f"def f({', '.join(parameters)}):", *lines, f"    return {' + '.join(total)}"]), scope)
    return gp.operator(scope["f"])(*(x for _ in parameters))


@pytest.mark.parametrize("first", ALL)
def test_names_that_a_language_has(device: str, first: int) -> None:
    parameters, variables = map(len, chunks(first))
    assert np.array_equal(summed(first).numpy(), x.numpy() * (parameters + 2 * min(parameters, variables)))


@pytest.mark.parametrize("first", ALL)
def test_names_that_cuda_has(first: int) -> None:
    compile_cuda(text(summed(first), "cuda"), "sm_90")


def text(field: gp.Field, target: str) -> str:
    return "\n".join(generate(step.kernel, target_named(target)).text for step in plan(program([field.node])).launches)


def test_names_of_layouts(device: str) -> None:
    """The text has constants named after each field; the user's own `image_rows` is another thing."""

    @gp.operator
    def shifted(image_columns, image, image_rowStride, image_x):
        image_rows, image_tensorStride = _var(1), _var(2)
        image_rows += _row
        image_tensorStride += _column
        here = _readTensor(image, image_rows, image_tensorStride, border="zero")
        return here + 100 * _readTensor(image_columns) + 1000 * _readTensor(image_rowStride) + _readTensor(image_x).y

    image = np.arange(12, dtype="float32").reshape(3, 4)
    expected = np.zeros_like(image)
    expected[:-1, :-2] = image[1:, 2:]
    result = shifted(x, x, gp.Parameter(2.0), gp.Parameter((7.0, 5.0)))
    np.array_equal(result.numpy(), expected + 100 * image + 2005)


NASTY = [
    "C:\\new\\", "ends in \\ ", "really??/", "what???/", "two\nlines", "x\n#define get_global_id(n) 0\n//", "a\rb", "a\vb\fc",
    "\x00", "*/ int", "\u2028separator", "größer ×", "", " ", "a" * 3000, "\\", "\udcff", '"quoted"',
    "%s%n", "1st", "__",
]  # fmt: skip


def stepped(name: str) -> gp.Field:
    @gp.operator(outputs=x.type, name=name)
    def more(a):
        _writeTensor(_out0, _readTensor(a) + 1)

    def less(a):
        _writeTensor(_out0, _readTensor(a) - 3)

    less.__name__ = name
    return gp.operator(outputs=x.type)(less)(more(x))


@pytest.mark.parametrize("name", NASTY)
def test_names_of_operators(device: str, name: str) -> None:
    assert np.array_equal(stepped(name).numpy(), x.numpy() - 2)


@pytest.mark.parametrize("target", ["opencl", "cuda"])
@pytest.mark.parametrize("name", NASTY)
def test_names_end_no_line_of_the_text(name: str, target: str) -> None:
    lines = text(stepped(name), target).split("\n")
    assert len(lines) == len(text(stepped("plain"), target).split("\n"))
    assert not any(line.rstrip().endswith(("\\", "??/")) for line in lines)
