"""Identifiers: names of the user, made unique and distinct from those of the language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from gpuop.codegen.c.dialect import Dialect
from gpuop.ir.nodes import AXES, Array, FieldParam, Index, Var
from gpuop.ir.ops import OPS
from gpuop.ir.types import DTYPES

# Reserved identifiers of OpenCL C and CUDA C++: keywords, types, macros and functions of their standards. Sources: OpenCL C 1.2,
# 2.0 and 3.0 (keywords 6.1.9; types 6.3; functions and macros 6.15), ISO C99 (6.4.1, annex B), ISO C++20 (lex.key, lex.digraph),
# and the CUDA C++ Programming Guide (language extensions).
C99 = """
auto break case char const continue default do double else enum extern float for goto if inline int long register restrict
return short signed sizeof static struct switch typedef union unsigned void volatile while
"""
CPP20 = """
alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept bitand bitor bool catch char8_t char16_t char32_t
class compl concept const_cast consteval constexpr constinit co_await co_return co_yield decltype delete dynamic_cast explicit
export false final friend import module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private
protected public reflexpr reinterpret_cast requires static_assert static_cast synchronized template this thread_local throw
true try typeid typename using virtual wchar_t xor xor_eq
"""
OPENCL_WORDS = """
kernel global local constant private generic read_only write_only read_write uniform pipe half quad complex imaginary
vec_type_hint work_group_size_hint reqd_work_group_size vec_step in out half_float
"""
OPENCL_TYPES = """
uchar ushort uint ulong size_t ptrdiff_t intptr_t uintptr_t image1d_t image1d_array_t image1d_buffer_t image2d_t
image2d_array_t image2d_depth_t image2d_array_depth_t image2d_msaa_t image2d_array_msaa_t image2d_msaa_depth_t
image2d_array_msaa_depth_t image3d_t sampler_t queue_t ndrange_t clk_event_t reserve_id_t event_t cl_mem_fence_flags
kernel_enqueue_flags_t clk_profiling_info atomic_int atomic_uint atomic_long atomic_ulong atomic_float atomic_double
atomic_half atomic_intptr_t atomic_uintptr_t atomic_size_t atomic_ptrdiff_t atomic_flag memory_order memory_scope
memory_order_relaxed memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst
memory_scope_work_item memory_scope_sub_group memory_scope_work_group memory_scope_device memory_scope_all_svm_devices
memory_scope_all_devices
"""
# Limits, constants and flags. Definitions of the C and CUDA headers are included, because nvcc includes these headers.
MACROS = """
CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN
ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX SIZE_MAX MAXFLOAT HUGE_VAL HUGE_VALF HUGE_VALL INFINITY NAN NULL FP_ILOGB0 FP_ILOGBNAN
FP_FAST_FMA FP_FAST_FMAF FP_FAST_FMA_HALF FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL ATOMIC_VAR_INIT ATOMIC_FLAG_INIT
MAX_WORK_DIM kernel_exec assert errno stdin stdout stderr EOF BUFSIZ RAND_MAX EXIT_SUCCESS EXIT_FAILURE CLOCKS_PER_SEC offsetof
va_arg va_copy va_end va_start setjmp math_errhandling major minor makedev linux unix i386 signbit isnan isinf isfinite isnormal
defined ALIGN4 ALIGN8 INTTYPE
"""
# A variable may hide a function that the text does not call, but some drivers' functions are macros.
OPENCL_FUNCTIONS = """
get_work_dim get_global_size get_global_id get_local_size get_enqueued_local_size get_local_id get_num_groups get_group_id
get_global_offset get_global_linear_id get_local_linear_id barrier work_group_barrier mem_fence read_mem_fence write_mem_fence
async_work_group_copy async_work_group_strided_copy wait_group_events prefetch printf shuffle shuffle2 any all dot cross length
distance normalize fast_distance fast_length fast_normalize clamp mix step smoothstep sign degrees radians select bitselect
abs abs_diff y0 y1 j0 j1 yn jn popcount fract modf frexp sincos upsample get_fence to_global to_local to_private
read_imagef read_imagei read_imageui read_imageh write_imagef write_imagei write_imageui write_imageh read_pipe write_pipe
reserve_read_pipe reserve_write_pipe commit_read_pipe commit_write_pipe is_valid_reserve_id get_pipe_num_packets
get_pipe_max_packets enqueue_kernel enqueue_marker get_default_queue ndrange_1D ndrange_2D ndrange_3D retain_event
release_event create_user_event is_valid_event set_user_event_status capture_event_profiling_info
"""
CUDA = """
threadIdx blockIdx blockDim gridDim warpSize dim3 host device shared managed launch_bounds cluster_dims grid_constant
main longlong ulonglong cudaError_t cudaStream_t cudaEvent_t cudaTextureObject_t cudaSurfaceObject_t
"""
WORDS = frozenset(" ".join((C99, CPP20, OPENCL_WORDS, OPENCL_TYPES, MACROS, OPENCL_FUNCTIONS, CUDA)).split())

# Names that go by a rule; a number behind them would not lead out of it.
SCALAR = r"(u?(char|short|int|long|longlong)|bool|half|float|double|quad)"
FAMILIES = re.compile(
    rf"{SCALAR}([2348]|16)(_(16|32)a)?|{SCALAR}\d+x\d+|(char|u?short|u?int|u?long|u?longlong|float|double|uchar)1|"
    rf"(as|convert)_(u?(char|short|int|long)|half|float|double|size_t|u?intptr_t|ptrdiff_t)\w*|"
    r"(FLT|DBL|LDBL|HALF)_[A-Z0-9_]+|M_[A-Z0-9_]+|(CL|CLK|CUDA|CUDART|LLVM|POCL|CLANG|IMG|NVVM|FE)_\w+|"
    r"(cl|cles|cuda|clk|pocl|atom|atomic|native|half|sub_group|work_group|get_image|vloada?|vstorea?)_[a-z]\w*|"
    r"v(load|store)a?\d*|(u?int|float)(_fast|_least)?\d+_t|u?intmax_t"
)


INDEX_NAMES = {
    "global": "_{axis}",
    "local": "_local{Axis}",
    "group": "_group{Axis}",
    "global_size": "_{axis}s",
    "local_size": "_local{Axis}s",
    "group_count": "_group{Axis}s",
}


def index_name(index: Index, threads: Mapping[str, str] = MappingProxyType({})) -> str:
    """`_row`, `_localRow`, `_rows`… without the offset; `threads` has what axes are called whose threads are no points."""
    if index.axis == "element":
        return "_tensorElement" if index.kind == "global" else "_tensorElements"
    axis = threads.get(index.axis, index.axis)
    return INDEX_NAMES[index.kind].format(axis=axis, Axis=axis[0].upper() + axis[1:])


FACTS = (
    "layers", "rows", "columns", "points", "tensorElements", "layerStride", "rowStride", "columnStride", "tensorStride",
    "tensorRowStride", *"xyzw",
)  # fmt: skip
"""Suffixes of the names of the layout of a field and of its values: each stands behind its name and an underscore."""


def comment(text: str) -> str:
    """A line of comment, whatever the text: nothing in it ends the line, or joins the next one to it."""
    line = "".join(c if c.isprintable() else " " for c in text).replace("\\", "/")
    return "// " + re.sub(r"\?{2,}/", "?/", line)  # the trigraph of a backslash


class Names:
    """Identifiers of symbols: the names of the user, made unique in order of appearance."""

    def __init__(self, dialect: Dialect) -> None:
        self.reserved = {*WORDS, *OPS, *DTYPES, *dialect.helpers, *dialect.words}
        self.reserved |= {index_name(Index(kind, axis)) for kind in INDEX_NAMES for axis in AXES}
        self.names: dict[Var | Array | FieldParam, str] = {}
        self.used: dict[str, int] = {}

    def of(self, symbol: Var | Array | FieldParam) -> str:
        if symbol not in self.names:
            self.names[symbol] = self.fresh(symbol.hint, FACTS if isinstance(symbol, FieldParam) else ())
        return self.names[symbol]

    def fresh(self, hint: str, facts: Iterable[str] = ()) -> str:
        """A new identifier like the hint; those of its facts are reserved with it."""
        base = re.sub(r"\W", "_", hint, flags=re.ASCII).strip("_") or "t"
        base = f"f{base}" if base[0].isdigit() else f"t_{base}" if FAMILIES.fullmatch(base) else base
        name, number = base, self.used.get(base, 0)
        while not self.reserved.isdisjoint(identifiers := {name, *(f"{name}_{fact}" for fact in facts)}):
            number += 1
            name = f"{base}_{number}"
        self.used[base] = number
        self.reserved |= identifiers
        return name
