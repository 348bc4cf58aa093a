"""The vocabulary of kernel bodies, for type checkers and editors: made by docs/make_stub.py."""

from __future__ import annotations

from gpuop.dsl.builtins.access import _readTensor as _readTensor
from gpuop.dsl.builtins.access import _readTensorElement as _readTensorElement
from gpuop.dsl.builtins.access import _writeTensor as _writeTensor
from gpuop.dsl.builtins.access import _writeTensorElement as _writeTensorElement
from gpuop.dsl.builtins.atomics import Pointer as Pointer
from gpuop.dsl.builtins.atomics import _pointerTo as _pointerTo
from gpuop.dsl.builtins.collectives import _allGroup as _allGroup
from gpuop.dsl.builtins.collectives import _anyGroup as _anyGroup
from gpuop.dsl.builtins.collectives import _ballotGroup as _ballotGroup
from gpuop.dsl.builtins.collectives import _broadcastGroup as _broadcastGroup
from gpuop.dsl.builtins.collectives import _countGroup as _countGroup
from gpuop.dsl.builtins.collectives import _reduceGroup as _reduceGroup
from gpuop.dsl.builtins.collectives import _scanGroup as _scanGroup
from gpuop.dsl.builtins.collectives import _selectGroup as _selectGroup
from gpuop.dsl.builtins.collectives import _shuffleGroup as _shuffleGroup
from gpuop.dsl.builtins.collectives import _shuffleGroupDown as _shuffleGroupDown
from gpuop.dsl.builtins.collectives import _shuffleGroupUp as _shuffleGroupUp
from gpuop.dsl.builtins.collectives import _shuffleGroupXor as _shuffleGroupXor
from gpuop.dsl.builtins.conditionals import _codegenElse as _codegenElse
from gpuop.dsl.builtins.conditionals import _codegenElseif as _codegenElseif
from gpuop.dsl.builtins.conditionals import _codegenIf as _codegenIf
from gpuop.dsl.builtins.conditionals import _else as _else
from gpuop.dsl.builtins.conditionals import _elseif as _elseif
from gpuop.dsl.builtins.conditionals import _if as _if
from gpuop.dsl.builtins.debug import _assert as _assert
from gpuop.dsl.builtins.debug import _print as _print
from gpuop.dsl.builtins.declarations import _convert as _convert
from gpuop.dsl.builtins.declarations import _tensorArray as _tensorArray
from gpuop.dsl.builtins.declarations import _tensorElementArray as _tensorElementArray
from gpuop.dsl.builtins.declarations import _tensorElementVar as _tensorElementVar
from gpuop.dsl.builtins.declarations import _tensorVar as _tensorVar
from gpuop.dsl.builtins.declarations import _var as _var
from gpuop.dsl.builtins.declarations import _vector as _vector
from gpuop.dsl.builtins.dimensions import _dim as _dim
from gpuop.dsl.builtins.functions import _and as _and
from gpuop.dsl.builtins.functions import _not as _not
from gpuop.dsl.builtins.functions import _or as _or
from gpuop.dsl.builtins.functions import _sum as _sum
from gpuop.dsl.builtins.functions import _where as _where
from gpuop.dsl.builtins.indices import _index as _index
from gpuop.dsl.builtins.indices import _ravel as _ravel
from gpuop.dsl.builtins.indices import _unravel as _unravel
from gpuop.dsl.builtins.interpolation import _sampleTensor as _sampleTensor
from gpuop.dsl.builtins.limits import _highest as _highest
from gpuop.dsl.builtins.limits import _lowest as _lowest
from gpuop.dsl.builtins.loops import _break as _break
from gpuop.dsl.builtins.loops import _continue as _continue
from gpuop.dsl.builtins.loops import _for as _for
from gpuop.dsl.builtins.loops import _forEachTensorElement as _forEachTensorElement
from gpuop.dsl.builtins.loops import _return as _return
from gpuop.dsl.builtins.loops import _while as _while
from gpuop.dsl.builtins.loops import _window as _window
from gpuop.dsl.builtins.shared_memory import _constantArray as _constantArray
from gpuop.dsl.builtins.shared_memory import _local as _local
from gpuop.dsl.builtins.shared_memory import _syncThreadsGlobal as _syncThreadsGlobal
from gpuop.dsl.builtins.shared_memory import _syncThreadsLocal as _syncThreadsLocal
from gpuop.dsl.builtins.shared_memory import _volatile as _volatile
from gpuop.dsl.builtins.sorting_networks import _sort as _sort
from gpuop.dsl.builtins.switch import _switch as _switch
from gpuop.dsl.builtins.threads import _globalThreads as _globalThreads
from gpuop.dsl.builtins.threads import _localThreads as _localThreads
from gpuop.dsl.builtins.tiles import _tile as _tile
from gpuop.dsl.fields.field_types import is_big_tensor as isBigTensor
from gpuop.dsl.recorder.outputs import OutputRef as OutputRef
from gpuop.dsl.recorder.target_facts import Targets as Targets
from gpuop.dsl.recorder.value import Operand as Operand
from gpuop.dsl.recorder.value import Value as GPUExpression
from gpuop.dsl.recorder.value import Value as Value
from gpuop.dsl.recorder.variable import ArrayVariable as ArrayVariable
from gpuop.dsl.recorder.variable import ArrayVariable as GPUArrayVariable
from gpuop.dsl.recorder.variable import Variable as GPUVariable
from gpuop.dsl.recorder.variable import Variable as Variable

__all__ = [
    "GPUArrayVariable",
    "GPUExpression",
    "GPUVariable",
    "_abs",
    "_abs_diff",
    "_acos",
    "_acosh",
    "_acospi",
    "_add_sat",
    "_all",
    "_allGroup",
    "_and",
    "_any",
    "_anyGroup",
    "_as_char",
    "_as_char2",
    "_as_char3",
    "_as_char4",
    "_as_double",
    "_as_double2",
    "_as_double3",
    "_as_double4",
    "_as_float",
    "_as_float2",
    "_as_float3",
    "_as_float4",
    "_as_half",
    "_as_half2",
    "_as_half3",
    "_as_half4",
    "_as_int",
    "_as_int2",
    "_as_int3",
    "_as_int4",
    "_as_long",
    "_as_long2",
    "_as_long3",
    "_as_long4",
    "_as_short",
    "_as_short2",
    "_as_short3",
    "_as_short4",
    "_as_uchar",
    "_as_uchar2",
    "_as_uchar3",
    "_as_uchar4",
    "_as_uint",
    "_as_uint2",
    "_as_uint3",
    "_as_uint4",
    "_as_ulong",
    "_as_ulong2",
    "_as_ulong3",
    "_as_ulong4",
    "_as_ushort",
    "_as_ushort2",
    "_as_ushort3",
    "_as_ushort4",
    "_asin",
    "_asinh",
    "_asinpi",
    "_assert",
    "_atan",
    "_atan2",
    "_atan2pi",
    "_atanh",
    "_atanpi",
    "_atomic_add",
    "_atomic_and",
    "_atomic_cmpxchg",
    "_atomic_compxchg",
    "_atomic_dec",
    "_atomic_inc",
    "_atomic_max",
    "_atomic_min",
    "_atomic_or",
    "_atomic_sub",
    "_atomic_xchg",
    "_atomic_xor",
    "_ballotGroup",
    "_bitselect",
    "_boolArray",
    "_boolVar",
    "_break",
    "_broadcastGroup",
    "_cbrt",
    "_ceil",
    "_char2",
    "_char2Array",
    "_char2Var",
    "_char3",
    "_char3Array",
    "_char3Var",
    "_char4",
    "_char4Array",
    "_char4Var",
    "_charArray",
    "_charVar",
    "_clamp",
    "_clz",
    "_codegenElse",
    "_codegenElseif",
    "_codegenIf",
    "_column",
    "_columns",
    "_complexAbs",
    "_complexArg",
    "_complexConj",
    "_complexDiv",
    "_complexExp",
    "_complexLog",
    "_complexMul",
    "_complexPow",
    "_complexSqrt",
    "_constantArray",
    "_continue",
    "_convert",
    "_convert_char",
    "_convert_char2",
    "_convert_char3",
    "_convert_char4",
    "_convert_double",
    "_convert_double2",
    "_convert_double3",
    "_convert_double4",
    "_convert_float",
    "_convert_float2",
    "_convert_float3",
    "_convert_float4",
    "_convert_half",
    "_convert_half2",
    "_convert_half3",
    "_convert_half4",
    "_convert_int",
    "_convert_int2",
    "_convert_int3",
    "_convert_int4",
    "_convert_long",
    "_convert_long2",
    "_convert_long3",
    "_convert_long4",
    "_convert_short",
    "_convert_short2",
    "_convert_short3",
    "_convert_short4",
    "_convert_uchar",
    "_convert_uchar2",
    "_convert_uchar3",
    "_convert_uchar4",
    "_convert_uint",
    "_convert_uint2",
    "_convert_uint3",
    "_convert_uint4",
    "_convert_ulong",
    "_convert_ulong2",
    "_convert_ulong3",
    "_convert_ulong4",
    "_convert_ushort",
    "_convert_ushort2",
    "_convert_ushort3",
    "_convert_ushort4",
    "_copysign",
    "_cos",
    "_cosh",
    "_cospi",
    "_countGroup",
    "_cross",
    "_degrees",
    "_dim",
    "_distance",
    "_dot",
    "_double2",
    "_double2Array",
    "_double2Var",
    "_double3",
    "_double3Array",
    "_double3Var",
    "_double4",
    "_double4Array",
    "_double4Var",
    "_doubleArray",
    "_doubleVar",
    "_else",
    "_elseif",
    "_erf",
    "_erfc",
    "_exp",
    "_exp10",
    "_exp2",
    "_expm1",
    "_fabs",
    "_fast_distance",
    "_fast_length",
    "_fast_normalize",
    "_fdim",
    "_float2",
    "_float2Array",
    "_float2Var",
    "_float3",
    "_float3Array",
    "_float3Var",
    "_float4",
    "_float4Array",
    "_float4Var",
    "_floatArray",
    "_floatVar",
    "_floor",
    "_fma",
    "_fmax",
    "_fmin",
    "_fmod",
    "_for",
    "_forEachTensorElement",
    "_globalThreads",
    "_groupColumn",
    "_groupColumns",
    "_groupLayer",
    "_groupLayers",
    "_groupRow",
    "_groupRows",
    "_hadd",
    "_half2",
    "_half2Array",
    "_half2Var",
    "_half3",
    "_half3Array",
    "_half3Var",
    "_half4",
    "_half4Array",
    "_half4Var",
    "_halfArray",
    "_halfVar",
    "_highest",
    "_hypot",
    "_if",
    "_ilogb",
    "_index",
    "_int2",
    "_int2Array",
    "_int2Var",
    "_int3",
    "_int3Array",
    "_int3Var",
    "_int4",
    "_int4Array",
    "_int4Var",
    "_intArray",
    "_intVar",
    "_isequal",
    "_isfinite",
    "_isgreater",
    "_isgreaterequal",
    "_isinf",
    "_isless",
    "_islessequal",
    "_islessgreater",
    "_isnan",
    "_isnormal",
    "_isnotequal",
    "_isordered",
    "_isunordered",
    "_layer",
    "_layers",
    "_ldexp",
    "_length",
    "_lgamma",
    "_lgamma_r",
    "_local",
    "_localColumn",
    "_localColumns",
    "_localLayer",
    "_localLayers",
    "_localRow",
    "_localRows",
    "_localThreads",
    "_log",
    "_log10",
    "_log1p",
    "_log2",
    "_logb",
    "_long2",
    "_long2Array",
    "_long2Var",
    "_long3",
    "_long3Array",
    "_long3Var",
    "_long4",
    "_long4Array",
    "_long4Var",
    "_longArray",
    "_longVar",
    "_lowest",
    "_mad",
    "_mad24",
    "_mad_hi",
    "_mad_sat",
    "_max",
    "_maxmag",
    "_min",
    "_minmag",
    "_mix",
    "_mul24",
    "_mul_hi",
    "_nan",
    "_native_divide",
    "_nextafter",
    "_normalize",
    "_not",
    "_or",
    "_out0",
    "_out1",
    "_out2",
    "_out3",
    "_out4",
    "_out5",
    "_out6",
    "_out7",
    "_out8",
    "_out9",
    "_pointerTo",
    "_popcount",
    "_pow",
    "_pown",
    "_powr",
    "_print",
    "_radians",
    "_random",
    "_ravel",
    "_readTensor",
    "_readTensorElement",
    "_reduceGroup",
    "_remainder",
    "_remquo",
    "_return",
    "_rhadd",
    "_rint",
    "_rootn",
    "_rotate",
    "_round",
    "_row",
    "_rows",
    "_rsqrt",
    "_sampleTensor",
    "_scanGroup",
    "_select",
    "_selectGroup",
    "_short2",
    "_short2Array",
    "_short2Var",
    "_short3",
    "_short3Array",
    "_short3Var",
    "_short4",
    "_short4Array",
    "_short4Var",
    "_shortArray",
    "_shortVar",
    "_shuffleGroup",
    "_shuffleGroupDown",
    "_shuffleGroupUp",
    "_shuffleGroupXor",
    "_sign",
    "_signbit",
    "_sin",
    "_sinh",
    "_sinpi",
    "_sort",
    "_sqrt",
    "_sub_sat",
    "_sum",
    "_switch",
    "_syncThreadsGlobal",
    "_syncThreadsLocal",
    "_tan",
    "_tanh",
    "_tanpi",
    "_target",
    "_tensorArray",
    "_tensorElement",
    "_tensorElementArray",
    "_tensorElementVar",
    "_tensorElements",
    "_tensorVar",
    "_tgamma",
    "_tile",
    "_trunc",
    "_uchar2",
    "_uchar2Array",
    "_uchar2Var",
    "_uchar3",
    "_uchar3Array",
    "_uchar3Var",
    "_uchar4",
    "_uchar4Array",
    "_uchar4Var",
    "_ucharArray",
    "_ucharVar",
    "_uint2",
    "_uint2Array",
    "_uint2Var",
    "_uint3",
    "_uint3Array",
    "_uint3Var",
    "_uint4",
    "_uint4Array",
    "_uint4Var",
    "_uintArray",
    "_uintVar",
    "_ulong2",
    "_ulong2Array",
    "_ulong2Var",
    "_ulong3",
    "_ulong3Array",
    "_ulong3Var",
    "_ulong4",
    "_ulong4Array",
    "_ulong4Var",
    "_ulongArray",
    "_ulongVar",
    "_unravel",
    "_ushort2",
    "_ushort2Array",
    "_ushort2Var",
    "_ushort3",
    "_ushort3Array",
    "_ushort3Var",
    "_ushort4",
    "_ushort4Array",
    "_ushort4Var",
    "_ushortArray",
    "_ushortVar",
    "_var",
    "_vector",
    "_volatile",
    "_where",
    "_while",
    "_window",
    "_writeTensor",
    "_writeTensorElement",
    "isBigTensor",
]

def _abs(x: Operand, /) -> Value:
    "OpenCL's abs: |x| as an unsigned integer."
def _abs_diff(x: Operand, y: Operand, /) -> Value:
    "OpenCL's abs_diff: |x - y| as an unsigned integer, without overflow."
def _acos(x: Operand, /) -> Value:
    "OpenCL's acos: arc cosine, 0 … π. Error of float: 4 ULP, of double: 4 ULP."
def _acosh(x: Operand, /) -> Value:
    "OpenCL's acosh: the inverse of cosh. Error of float: 4 ULP, of double: 4 ULP."
def _acospi(x: Operand, /) -> Value:
    "OpenCL's acospi: acos(x) / π. Error of float: 5 ULP, of double: 5 ULP."
def _add_sat(x: Operand, y: Operand, /) -> Value:
    "OpenCL's add_sat: x + y, saturated."
def _all(x: Operand, /) -> Value:
    "OpenCL's all: 1 if all components of x are true, or negative if x is an integer; otherwise 0."
def _any(x: Operand, /) -> Value:
    "OpenCL's any: 1 if any component of x is true, or negative if x is an integer; otherwise 0."
def _as_char(value: Operand) -> Value:
    'Reinterpret the bits as char; the size stays.'
def _as_char2(value: Operand) -> Value:
    'Reinterpret the bits as char2; the size stays.'
def _as_char3(value: Operand) -> Value:
    'Reinterpret the bits as char3; the size stays.'
def _as_char4(value: Operand) -> Value:
    'Reinterpret the bits as char4; the size stays.'
def _as_double(value: Operand) -> Value:
    'Reinterpret the bits as double; the size stays.'
def _as_double2(value: Operand) -> Value:
    'Reinterpret the bits as double2; the size stays.'
def _as_double3(value: Operand) -> Value:
    'Reinterpret the bits as double3; the size stays.'
def _as_double4(value: Operand) -> Value:
    'Reinterpret the bits as double4; the size stays.'
def _as_float(value: Operand) -> Value:
    'Reinterpret the bits as float; the size stays.'
def _as_float2(value: Operand) -> Value:
    'Reinterpret the bits as float2; the size stays.'
def _as_float3(value: Operand) -> Value:
    'Reinterpret the bits as float3; the size stays.'
def _as_float4(value: Operand) -> Value:
    'Reinterpret the bits as float4; the size stays.'
def _as_half(value: Operand) -> Value:
    'Reinterpret the bits as half; the size stays.'
def _as_half2(value: Operand) -> Value:
    'Reinterpret the bits as half2; the size stays.'
def _as_half3(value: Operand) -> Value:
    'Reinterpret the bits as half3; the size stays.'
def _as_half4(value: Operand) -> Value:
    'Reinterpret the bits as half4; the size stays.'
def _as_int(value: Operand) -> Value:
    'Reinterpret the bits as int; the size stays.'
def _as_int2(value: Operand) -> Value:
    'Reinterpret the bits as int2; the size stays.'
def _as_int3(value: Operand) -> Value:
    'Reinterpret the bits as int3; the size stays.'
def _as_int4(value: Operand) -> Value:
    'Reinterpret the bits as int4; the size stays.'
def _as_long(value: Operand) -> Value:
    'Reinterpret the bits as long; the size stays.'
def _as_long2(value: Operand) -> Value:
    'Reinterpret the bits as long2; the size stays.'
def _as_long3(value: Operand) -> Value:
    'Reinterpret the bits as long3; the size stays.'
def _as_long4(value: Operand) -> Value:
    'Reinterpret the bits as long4; the size stays.'
def _as_short(value: Operand) -> Value:
    'Reinterpret the bits as short; the size stays.'
def _as_short2(value: Operand) -> Value:
    'Reinterpret the bits as short2; the size stays.'
def _as_short3(value: Operand) -> Value:
    'Reinterpret the bits as short3; the size stays.'
def _as_short4(value: Operand) -> Value:
    'Reinterpret the bits as short4; the size stays.'
def _as_uchar(value: Operand) -> Value:
    'Reinterpret the bits as uchar; the size stays.'
def _as_uchar2(value: Operand) -> Value:
    'Reinterpret the bits as uchar2; the size stays.'
def _as_uchar3(value: Operand) -> Value:
    'Reinterpret the bits as uchar3; the size stays.'
def _as_uchar4(value: Operand) -> Value:
    'Reinterpret the bits as uchar4; the size stays.'
def _as_uint(value: Operand) -> Value:
    'Reinterpret the bits as uint; the size stays.'
def _as_uint2(value: Operand) -> Value:
    'Reinterpret the bits as uint2; the size stays.'
def _as_uint3(value: Operand) -> Value:
    'Reinterpret the bits as uint3; the size stays.'
def _as_uint4(value: Operand) -> Value:
    'Reinterpret the bits as uint4; the size stays.'
def _as_ulong(value: Operand) -> Value:
    'Reinterpret the bits as ulong; the size stays.'
def _as_ulong2(value: Operand) -> Value:
    'Reinterpret the bits as ulong2; the size stays.'
def _as_ulong3(value: Operand) -> Value:
    'Reinterpret the bits as ulong3; the size stays.'
def _as_ulong4(value: Operand) -> Value:
    'Reinterpret the bits as ulong4; the size stays.'
def _as_ushort(value: Operand) -> Value:
    'Reinterpret the bits as ushort; the size stays.'
def _as_ushort2(value: Operand) -> Value:
    'Reinterpret the bits as ushort2; the size stays.'
def _as_ushort3(value: Operand) -> Value:
    'Reinterpret the bits as ushort3; the size stays.'
def _as_ushort4(value: Operand) -> Value:
    'Reinterpret the bits as ushort4; the size stays.'
def _asin(x: Operand, /) -> Value:
    "OpenCL's asin: arc sine, -π/2 … π/2. Error of float: 4 ULP, of double: 4 ULP."
def _asinh(x: Operand, /) -> Value:
    "OpenCL's asinh: the inverse of sinh. Error of float: 4 ULP, of double: 4 ULP."
def _asinpi(x: Operand, /) -> Value:
    "OpenCL's asinpi: asin(x) / π. Error of float: 5 ULP, of double: 5 ULP."
def _atan(x: Operand, /) -> Value:
    "OpenCL's atan: arc tangent, -π/2 … π/2. Error of float: 5 ULP, of double: 5 ULP."
def _atan2(x: Operand, y: Operand, /) -> Value:
    "OpenCL's atan2: the angle of the point (x, y), called as _atan2(y, x). Error of float: 6 ULP, of double: 6 ULP."
def _atan2pi(x: Operand, y: Operand, /) -> Value:
    "OpenCL's atan2pi: atan2(y, x) / π. Error of float: 6 ULP, of double: 6 ULP."
def _atanh(x: Operand, /) -> Value:
    "OpenCL's atanh: the inverse of tanh. Error of float: 5 ULP, of double: 5 ULP."
def _atanpi(x: Operand, /) -> Value:
    "OpenCL's atanpi: atan(x) / π. Error of float: 5 ULP, of double: 5 ULP."
def _atomic_add(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by old + x; gives what was there before.'
def _atomic_and(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by old & x; gives what was there before.'
def _atomic_cmpxchg(pointer: Pointer, compare: Operand, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by x where old == compare (floats: the same bits), else old; operands: compare, x; gives what was there before.'
def _atomic_compxchg(pointer: Pointer, compare: Operand, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by x where old == compare, else old, as `_atomic_cmpxchg` does; gives what was there before.'
def _atomic_dec(pointer: Pointer, /) -> Value:
    'Atomically replace what the pointer shows by old - 1; gives what was there before.'
def _atomic_inc(pointer: Pointer, /) -> Value:
    'Atomically replace what the pointer shows by old + 1; gives what was there before.'
def _atomic_max(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by max(old, x), of floats the one that is a number, and 0 before -0; gives what was there before.'
def _atomic_min(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by min(old, x), of floats the one that is a number, and -0 before 0; gives what was there before.'
def _atomic_or(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by old | x; gives what was there before.'
def _atomic_sub(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by old - x; gives what was there before.'
def _atomic_xchg(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by x; gives what was there before.'
def _atomic_xor(pointer: Pointer, x: Operand, /) -> Value:
    'Atomically replace what the pointer shows by old ^ x; gives what was there before.'
def _bitselect(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's bitselect: each bit of y where that of mask is set, otherwise of x; all of one type."
def _boolArray(*dims: int) -> ArrayVariable:
    'A zeroed array of bool, 1 to 3 dimensions.'
def _boolVar(init: Operand = 0) -> Variable:
    'A bool variable, zero by default.'
def _cbrt(x: Operand, /) -> Value:
    "OpenCL's cbrt: ³√x. Error of float: 2 ULP, of double: 2 ULP."
def _ceil(x: Operand, /) -> Value:
    "OpenCL's ceil: the least integer that is not below x."
def _char2(*parts: Operand) -> Value:
    'A char2 from scalars and vectors side by side.'
def _char2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of char2, 1 to 3 dimensions.'
def _char2Var(init: Operand = 0) -> Variable:
    'A char2 variable, zero by default.'
def _char3(*parts: Operand) -> Value:
    'A char3 from scalars and vectors side by side.'
def _char3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of char3, 1 to 3 dimensions.'
def _char3Var(init: Operand = 0) -> Variable:
    'A char3 variable, zero by default.'
def _char4(*parts: Operand) -> Value:
    'A char4 from scalars and vectors side by side.'
def _char4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of char4, 1 to 3 dimensions.'
def _char4Var(init: Operand = 0) -> Variable:
    'A char4 variable, zero by default.'
def _charArray(*dims: int) -> ArrayVariable:
    'A zeroed array of char, 1 to 3 dimensions.'
def _charVar(init: Operand = 0) -> Variable:
    'A char variable, zero by default.'
def _clamp(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's clamp: min(max(x, low), high); of integers too."
def _clz(x: Operand, /) -> Value:
    "OpenCL's clz: the number of leading zero bits of x; its width for 0."
_column: Value
"This thread's point; 0 along an axis that the thread grid does not have."
_columns: Value
'The extents of the thread grid, or 1.'
def _complexAbs(x: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): |x|, a scalar, which overflows only where the result does. Error of float: not bounded, of double: not bounded.'
def _complexArg(x: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): the angle of x, a scalar, -π … π. Error of float: not bounded, of double: not bounded.'
def _complexConj(x: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): the conjugate of x. Error of float: not bounded, of double: not bounded.'
def _complexDiv(x: Operand, y: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): x / y, which overflows only where the result does. Error of float: not bounded, of double: not bounded.'
def _complexExp(x: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): eˣ. Error of float: not bounded, of double: not bounded.'
def _complexLog(x: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): the natural logarithm of x, whose imaginary part is the angle. Error of float: not bounded, of double: not bounded.'
def _complexMul(x: Operand, y: Operand, /) -> Value:
    "Of complex numbers (float2s, double2s): x · y, of the parts' products. Error of float: not bounded, of double: not bounded."
def _complexPow(x: Operand, y: Operand, /) -> Value:
    "Of complex numbers (float2s, double2s): xʸ: a product where y is a whole number of Python's, else exp(y · log x). Error of float: not bounded, of double: not bounded."
def _complexSqrt(x: Operand, /) -> Value:
    'Of complex numbers (float2s, double2s): √x, of a real part that is not negative. Error of float: not bounded, of double: not bounded.'
def _convert_char(value: Operand) -> Value:
    'Convert to char: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_char2(value: Operand) -> Value:
    'Convert to char2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_char3(value: Operand) -> Value:
    'Convert to char3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_char4(value: Operand) -> Value:
    'Convert to char4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_double(value: Operand) -> Value:
    'Convert to double: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_double2(value: Operand) -> Value:
    'Convert to double2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_double3(value: Operand) -> Value:
    'Convert to double3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_double4(value: Operand) -> Value:
    'Convert to double4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_float(value: Operand) -> Value:
    'Convert to float: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_float2(value: Operand) -> Value:
    'Convert to float2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_float3(value: Operand) -> Value:
    'Convert to float3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_float4(value: Operand) -> Value:
    'Convert to float4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_half(value: Operand) -> Value:
    'Convert to half: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_half2(value: Operand) -> Value:
    'Convert to half2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_half3(value: Operand) -> Value:
    'Convert to half3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_half4(value: Operand) -> Value:
    'Convert to half4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_int(value: Operand) -> Value:
    'Convert to int: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_int2(value: Operand) -> Value:
    'Convert to int2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_int3(value: Operand) -> Value:
    'Convert to int3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_int4(value: Operand) -> Value:
    'Convert to int4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_long(value: Operand) -> Value:
    'Convert to long: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_long2(value: Operand) -> Value:
    'Convert to long2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_long3(value: Operand) -> Value:
    'Convert to long3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_long4(value: Operand) -> Value:
    'Convert to long4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_short(value: Operand) -> Value:
    'Convert to short: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_short2(value: Operand) -> Value:
    'Convert to short2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_short3(value: Operand) -> Value:
    'Convert to short3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_short4(value: Operand) -> Value:
    'Convert to short4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uchar(value: Operand) -> Value:
    'Convert to uchar: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uchar2(value: Operand) -> Value:
    'Convert to uchar2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uchar3(value: Operand) -> Value:
    'Convert to uchar3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uchar4(value: Operand) -> Value:
    'Convert to uchar4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uint(value: Operand) -> Value:
    'Convert to uint: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uint2(value: Operand) -> Value:
    'Convert to uint2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uint3(value: Operand) -> Value:
    'Convert to uint3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_uint4(value: Operand) -> Value:
    'Convert to uint4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ulong(value: Operand) -> Value:
    'Convert to ulong: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ulong2(value: Operand) -> Value:
    'Convert to ulong2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ulong3(value: Operand) -> Value:
    'Convert to ulong3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ulong4(value: Operand) -> Value:
    'Convert to ulong4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ushort(value: Operand) -> Value:
    'Convert to ushort: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ushort2(value: Operand) -> Value:
    'Convert to ushort2: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ushort3(value: Operand) -> Value:
    'Convert to ushort3: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _convert_ushort4(value: Operand) -> Value:
    'Convert to ushort4: integers truncate and saturate, NaN gives 0; a scalar spreads.'
def _copysign(x: Operand, y: Operand, /) -> Value:
    "OpenCL's copysign: |x| with the sign of y."
def _cos(x: Operand, /) -> Value:
    "OpenCL's cos: cosine of x in radians. Error of float: 4 ULP, of double: 4 ULP."
def _cosh(x: Operand, /) -> Value:
    "OpenCL's cosh: (eˣ + e⁻ˣ) / 2. Error of float: 4 ULP, of double: 4 ULP."
def _cospi(x: Operand, /) -> Value:
    "OpenCL's cospi: cos(πx). Error of float: 4 ULP, of double: 4 ULP."
def _cross(x: Operand, y: Operand, /) -> Value:
    "OpenCL's cross: x × y of 3-vectors, or of the first three of 4 components (the fourth is 0). Error of float: not bounded, of double: not bounded."
def _degrees(x: Operand, /) -> Value:
    "OpenCL's degrees: x · 180/π. Error of float: 2 ULP, of double: 2 ULP."
def _distance(x: Operand, y: Operand, /) -> Value:
    "OpenCL's distance: length(x - y). Error of float: 10.5 ULP, of double: 13.5 ULP."
def _dot(x: Operand, y: Operand, /) -> Value:
    "OpenCL's dot: Σ xᵢ · yᵢ from the first component on, every step rounded. Error of float: not bounded, of double: not bounded."
def _double2(*parts: Operand) -> Value:
    'A double2 from scalars and vectors side by side.'
def _double2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of double2, 1 to 3 dimensions.'
def _double2Var(init: Operand = 0) -> Variable:
    'A double2 variable, zero by default.'
def _double3(*parts: Operand) -> Value:
    'A double3 from scalars and vectors side by side.'
def _double3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of double3, 1 to 3 dimensions.'
def _double3Var(init: Operand = 0) -> Variable:
    'A double3 variable, zero by default.'
def _double4(*parts: Operand) -> Value:
    'A double4 from scalars and vectors side by side.'
def _double4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of double4, 1 to 3 dimensions.'
def _double4Var(init: Operand = 0) -> Variable:
    'A double4 variable, zero by default.'
def _doubleArray(*dims: int) -> ArrayVariable:
    'A zeroed array of double, 1 to 3 dimensions.'
def _doubleVar(init: Operand = 0) -> Variable:
    'A double variable, zero by default.'
def _erf(x: Operand, /) -> Value:
    "OpenCL's erf: 2/√π · ∫₀ˣ exp(-t²) dt. Error of float: 16 ULP, of double: 16 ULP."
def _erfc(x: Operand, /) -> Value:
    "OpenCL's erfc: 1 - erf(x). Error of float: 16 ULP, of double: 16 ULP."
def _exp(x: Operand, /) -> Value:
    "OpenCL's exp: eˣ. Error of float: 3 ULP, of double: 3 ULP."
def _exp10(x: Operand, /) -> Value:
    "OpenCL's exp10: 10ˣ. Error of float: 3 ULP, of double: 3 ULP."
def _exp2(x: Operand, /) -> Value:
    "OpenCL's exp2: 2ˣ. Error of float: 3 ULP, of double: 3 ULP."
def _expm1(x: Operand, /) -> Value:
    "OpenCL's expm1: eˣ - 1. Error of float: 3 ULP, of double: 3 ULP."
def _fabs(x: Operand, /) -> Value:
    "OpenCL's fabs: |x|."
def _fast_distance(x: Operand, y: Operand, /) -> Value:
    "OpenCL's fast_distance: fast_length(x - y). Error of float: 8199.5 ULP, of double: 8199.5 ULP."
def _fast_length(x: Operand, /) -> Value:
    "OpenCL's fast_length: √(Σ xᵢ²); squares may overflow. Error of float: 8193.5 ULP, of double: 8193.5 ULP."
def _fast_normalize(x: Operand, /) -> Value:
    "OpenCL's fast_normalize: x / fast_length(x); zeros stay. Error of float: 8192 ULP, of double: 8192 ULP."
def _fdim(x: Operand, y: Operand, /) -> Value:
    "OpenCL's fdim: x - y where that is positive, else +0; NaN stays."
def _float2(*parts: Operand) -> Value:
    'A float2 from scalars and vectors side by side.'
def _float2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of float2, 1 to 3 dimensions.'
def _float2Var(init: Operand = 0) -> Variable:
    'A float2 variable, zero by default.'
def _float3(*parts: Operand) -> Value:
    'A float3 from scalars and vectors side by side.'
def _float3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of float3, 1 to 3 dimensions.'
def _float3Var(init: Operand = 0) -> Variable:
    'A float3 variable, zero by default.'
def _float4(*parts: Operand) -> Value:
    'A float4 from scalars and vectors side by side.'
def _float4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of float4, 1 to 3 dimensions.'
def _float4Var(init: Operand = 0) -> Variable:
    'A float4 variable, zero by default.'
def _floatArray(*dims: int) -> ArrayVariable:
    'A zeroed array of float, 1 to 3 dimensions.'
def _floatVar(init: Operand = 0) -> Variable:
    'A float variable, zero by default.'
def _floor(x: Operand, /) -> Value:
    "OpenCL's floor: the greatest integer that is not above x."
def _fma(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's fma: x · y + z, rounded once."
def _fmax(*values: Operand) -> Value:
    "OpenCL's fmax: the greater of x and y; the other one where one is NaN."
def _fmin(*values: Operand) -> Value:
    "OpenCL's fmin: the lesser of x and y; the other one where one is NaN."
def _fmod(x: Operand, y: Operand, /) -> Value:
    "OpenCL's fmod: x - y · trunc(x / y)."
_groupColumn: Value
'The place of the work-group among the work-groups.'
_groupColumns: Value
'How many work-groups there are; they may be dimensions of arrays.'
_groupLayer: Value
'The place of the work-group among the work-groups.'
_groupLayers: Value
'How many work-groups there are; they may be dimensions of arrays.'
_groupRow: Value
'The place of the work-group among the work-groups.'
_groupRows: Value
'How many work-groups there are; they may be dimensions of arrays.'
def _hadd(x: Operand, y: Operand, /) -> Value:
    "OpenCL's hadd: (x + y) >> 1 without overflow."
def _half2(*parts: Operand) -> Value:
    'A half2 from scalars and vectors side by side.'
def _half2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of half2, 1 to 3 dimensions.'
def _half2Var(init: Operand = 0) -> Variable:
    'A half2 variable, zero by default.'
def _half3(*parts: Operand) -> Value:
    'A half3 from scalars and vectors side by side.'
def _half3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of half3, 1 to 3 dimensions.'
def _half3Var(init: Operand = 0) -> Variable:
    'A half3 variable, zero by default.'
def _half4(*parts: Operand) -> Value:
    'A half4 from scalars and vectors side by side.'
def _half4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of half4, 1 to 3 dimensions.'
def _half4Var(init: Operand = 0) -> Variable:
    'A half4 variable, zero by default.'
def _halfArray(*dims: int) -> ArrayVariable:
    'A zeroed array of half, 1 to 3 dimensions.'
def _halfVar(init: Operand = 0) -> Variable:
    'A half variable, zero by default.'
def _hypot(x: Operand, y: Operand, /) -> Value:
    "OpenCL's hypot: √(x² + y²), which overflows only where the result does. Error of float: 4 ULP, of double: 4 ULP."
def _ilogb(x: Operand, /) -> Value:
    "OpenCL's ilogb: the binary exponent of x as an int."
def _int2(*parts: Operand) -> Value:
    'An int2 from scalars and vectors side by side.'
def _int2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of int2, 1 to 3 dimensions.'
def _int2Var(init: Operand = 0) -> Variable:
    'An int2 variable, zero by default.'
def _int3(*parts: Operand) -> Value:
    'An int3 from scalars and vectors side by side.'
def _int3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of int3, 1 to 3 dimensions.'
def _int3Var(init: Operand = 0) -> Variable:
    'An int3 variable, zero by default.'
def _int4(*parts: Operand) -> Value:
    'An int4 from scalars and vectors side by side.'
def _int4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of int4, 1 to 3 dimensions.'
def _int4Var(init: Operand = 0) -> Variable:
    'An int4 variable, zero by default.'
def _intArray(*dims: int) -> ArrayVariable:
    'A zeroed array of int, 1 to 3 dimensions.'
def _intVar(init: Operand = 0) -> Variable:
    'An int variable, zero by default.'
def _isequal(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isequal: x == y."
def _isfinite(x: Operand, /) -> Value:
    "OpenCL's isfinite: x is neither infinite nor NaN."
def _isgreater(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isgreater: x > y."
def _isgreaterequal(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isgreaterequal: x >= y."
def _isinf(x: Operand, /) -> Value:
    "OpenCL's isinf: x is ∞ or -∞."
def _isless(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isless: x < y."
def _islessequal(x: Operand, y: Operand, /) -> Value:
    "OpenCL's islessequal: x <= y."
def _islessgreater(x: Operand, y: Operand, /) -> Value:
    "OpenCL's islessgreater: x < y or x > y."
def _isnan(x: Operand, /) -> Value:
    "OpenCL's isnan: x is NaN."
def _isnormal(x: Operand, /) -> Value:
    "OpenCL's isnormal: x is neither zero, denormal, infinite nor NaN."
def _isnotequal(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isnotequal: x != y, true of NaN."
def _isordered(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isordered: neither x nor y is NaN."
def _isunordered(x: Operand, y: Operand, /) -> Value:
    "OpenCL's isunordered: x or y is NaN."
_layer: Value
"This thread's point; 0 along an axis that the thread grid does not have."
_layers: Value
'The extents of the thread grid, or 1.'
def _ldexp(x: Operand, y: Operand, /) -> Value:
    "OpenCL's ldexp: x · 2ⁿ."
def _length(x: Operand, /) -> Value:
    "OpenCL's length: √(Σ xᵢ²), which overflows only where the result does. Error of float: 4.75 ULP, of double: 9.5 ULP."
def _lgamma(x: Operand, /) -> Value:
    "OpenCL's lgamma: log |Γ(x)|. Error of float: not bounded, of double: not bounded."
def _lgamma_r(x: Operand, /) -> tuple[Value, Value]:
    "OpenCL's lgamma_r: (log |Γ(x)|, the sign of Γ(x): 0 at the poles). Error of float: not bounded, of double: not bounded."
_localColumn: Value
"The thread's place in its work-group."
_localColumns: Value
'The extents of a work-group; they may be dimensions of arrays.'
_localLayer: Value
"The thread's place in its work-group."
_localLayers: Value
'The extents of a work-group; they may be dimensions of arrays.'
_localRow: Value
"The thread's place in its work-group."
_localRows: Value
'The extents of a work-group; they may be dimensions of arrays.'
def _log(x: Operand, /) -> Value:
    "OpenCL's log: the natural logarithm. Error of float: 3 ULP, of double: 3 ULP."
def _log10(x: Operand, /) -> Value:
    "OpenCL's log10: the logarithm to base 10. Error of float: 3 ULP, of double: 3 ULP."
def _log1p(x: Operand, /) -> Value:
    "OpenCL's log1p: log(1 + x). Error of float: 2 ULP, of double: 2 ULP."
def _log2(x: Operand, /) -> Value:
    "OpenCL's log2: the logarithm to base 2. Error of float: 3 ULP, of double: 3 ULP."
def _logb(x: Operand, /) -> Value:
    "OpenCL's logb: the binary exponent of x."
def _long2(*parts: Operand) -> Value:
    'A long2 from scalars and vectors side by side.'
def _long2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of long2, 1 to 3 dimensions.'
def _long2Var(init: Operand = 0) -> Variable:
    'A long2 variable, zero by default.'
def _long3(*parts: Operand) -> Value:
    'A long3 from scalars and vectors side by side.'
def _long3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of long3, 1 to 3 dimensions.'
def _long3Var(init: Operand = 0) -> Variable:
    'A long3 variable, zero by default.'
def _long4(*parts: Operand) -> Value:
    'A long4 from scalars and vectors side by side.'
def _long4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of long4, 1 to 3 dimensions.'
def _long4Var(init: Operand = 0) -> Variable:
    'A long4 variable, zero by default.'
def _longArray(*dims: int) -> ArrayVariable:
    'A zeroed array of long, 1 to 3 dimensions.'
def _longVar(init: Operand = 0) -> Variable:
    'A long variable, zero by default.'
def _mad(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's mad: x · y + z, both steps rounded. Error of float: not bounded, of double: not bounded."
def _mad24(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's mad24: mul24(x, y) + z."
def _mad_hi(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's mad_hi: mul_hi(x, y) + z."
def _mad_sat(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's mad_sat: x · y + z, saturated."
def _max(*values: Operand) -> Value:
    "OpenCL's max: y if x < y, otherwise x; of integers too."
def _maxmag(x: Operand, y: Operand, /) -> Value:
    "OpenCL's maxmag: x if |x| > |y|, y if |y| > |x|, otherwise fmax(x, y)."
def _min(*values: Operand) -> Value:
    "OpenCL's min: y if y < x, otherwise x; of integers too."
def _minmag(x: Operand, y: Operand, /) -> Value:
    "OpenCL's minmag: x if |x| < |y|, y if |y| < |x|, otherwise fmin(x, y)."
def _mix(x: Operand, y: Operand, z: Operand, /) -> Value:
    "OpenCL's mix: x + (y - x) · a, every step rounded. Error of float: not bounded, of double: not bounded."
def _mul24(x: Operand, y: Operand, /) -> Value:
    "OpenCL's mul24: x · y of int or uint values of 24 bits; greater ones multiply as 32-bit integers."
def _mul_hi(x: Operand, y: Operand, /) -> Value:
    "OpenCL's mul_hi: the high half of x · y."
def _nan(x: Operand, /) -> Value:
    "OpenCL's nan: NaN, of the code's size."
def _native_divide(x: Operand, y: Operand, /) -> Value:
    "OpenCL's native_divide: x / y. Error of float: 2.5 ULP, of double: 0 ULP."
def _nextafter(x: Operand, y: Operand, /) -> Value:
    "OpenCL's nextafter: the number of x's type that follows x in the direction of y."
def _normalize(x: Operand, /) -> Value:
    "OpenCL's normalize: x / length(x); zeros stay, infinite components count as ±1 among zeros. Error of float: 6 ULP, of double: 8.5 ULP."
_out0: OutputRef
'The outputs.'
_out1: OutputRef
'The outputs.'
_out2: OutputRef
'The outputs.'
_out3: OutputRef
'The outputs.'
_out4: OutputRef
'The outputs.'
_out5: OutputRef
'The outputs.'
_out6: OutputRef
'The outputs.'
_out7: OutputRef
'The outputs.'
_out8: OutputRef
'The outputs.'
_out9: OutputRef
'The outputs.'
def _popcount(x: Operand, /) -> Value:
    "OpenCL's popcount: the number of bits of x that are 1."
def _pow(x: Operand, y: Operand, /) -> Value:
    "OpenCL's pow: xʸ. Error of float: 16 ULP, of double: 16 ULP."
def _pown(x: Operand, y: Operand, /) -> Value:
    "OpenCL's pown: xⁿ of an integer n. Error of float: 16 ULP, of double: 16 ULP."
def _powr(x: Operand, y: Operand, /) -> Value:
    "OpenCL's powr: xʸ of x ≥ 0; NaN of others, and where no limit exists. Error of float: 16 ULP, of double: 16 ULP."
def _radians(x: Operand, /) -> Value:
    "OpenCL's radians: x · π/180. Error of float: 2 ULP, of double: 2 ULP."
def _random(x: Operand, y: Operand, /) -> Value:
    'Random bits: four uints by a key and a counter (Philox 4×32-10): a scalar is 64 bits, a vector 32 bits for each component, lowest first.'
def _remainder(x: Operand, y: Operand, /) -> Value:
    "OpenCL's remainder: x - n · y, n the integer nearest to x / y, halves to even."
def _remquo(x: Operand, y: Operand, /) -> tuple[Value, Value]:
    "OpenCL's remquo: (remainder(x, y), the sign and low seven bits of the rounded quotient)."
def _rhadd(x: Operand, y: Operand, /) -> Value:
    "OpenCL's rhadd: (x + y + 1) >> 1 without overflow."
def _rint(x: Operand, /) -> Value:
    "OpenCL's rint: the nearest integer, halves to even."
def _rootn(x: Operand, y: Operand, /) -> Value:
    "OpenCL's rootn: ⁿ√x of an integer n. Error of float: 16 ULP, of double: 16 ULP."
def _rotate(x: Operand, y: Operand, /) -> Value:
    "OpenCL's rotate: x with its bits shifted left by n, those shifted out coming in again; of x's type."
def _round(x: Operand, /) -> Value:
    "OpenCL's round: the nearest integer, halves away from zero."
_row: Value
"This thread's point; 0 along an axis that the thread grid does not have."
_rows: Value
'The extents of the thread grid, or 1.'
def _rsqrt(x: Operand, /) -> Value:
    "OpenCL's rsqrt: 1 / √x. Error of float: 2 ULP, of double: 2 ULP."
def _select(*values: Operand) -> Value:
    "OpenCL's select: y where the condition holds (a vector of integers: is negative), otherwise x; `_select(list, k)` is `_sort(list)[k]`."
def _short2(*parts: Operand) -> Value:
    'A short2 from scalars and vectors side by side.'
def _short2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of short2, 1 to 3 dimensions.'
def _short2Var(init: Operand = 0) -> Variable:
    'A short2 variable, zero by default.'
def _short3(*parts: Operand) -> Value:
    'A short3 from scalars and vectors side by side.'
def _short3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of short3, 1 to 3 dimensions.'
def _short3Var(init: Operand = 0) -> Variable:
    'A short3 variable, zero by default.'
def _short4(*parts: Operand) -> Value:
    'A short4 from scalars and vectors side by side.'
def _short4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of short4, 1 to 3 dimensions.'
def _short4Var(init: Operand = 0) -> Variable:
    'A short4 variable, zero by default.'
def _shortArray(*dims: int) -> ArrayVariable:
    'A zeroed array of short, 1 to 3 dimensions.'
def _shortVar(init: Operand = 0) -> Variable:
    'A short variable, zero by default.'
def _sign(x: Operand, /) -> Value:
    "OpenCL's sign: -1, ±0 or 1; 0 for NaN."
def _signbit(x: Operand, /) -> Value:
    "OpenCL's signbit: the sign bit of x is set."
def _sin(x: Operand, /) -> Value:
    "OpenCL's sin: sine of x in radians. Error of float: 4 ULP, of double: 4 ULP."
def _sinh(x: Operand, /) -> Value:
    "OpenCL's sinh: (eˣ - e⁻ˣ) / 2. Error of float: 4 ULP, of double: 4 ULP."
def _sinpi(x: Operand, /) -> Value:
    "OpenCL's sinpi: sin(πx). Error of float: 4 ULP, of double: 4 ULP."
def _sqrt(x: Operand, /) -> Value:
    "OpenCL's sqrt: √x."
def _sub_sat(x: Operand, y: Operand, /) -> Value:
    "OpenCL's sub_sat: x - y, saturated."
def _tan(x: Operand, /) -> Value:
    "OpenCL's tan: tangent of x in radians. Error of float: 5 ULP, of double: 5 ULP."
def _tanh(x: Operand, /) -> Value:
    "OpenCL's tanh: sinh(x) / cosh(x). Error of float: 5 ULP, of double: 5 ULP."
def _tanpi(x: Operand, /) -> Value:
    "OpenCL's tanpi: tan(πx). Error of float: 6 ULP, of double: 6 ULP."
_target: Targets
'Facts of the device that code is generated for: constants for `_codegenIf`.\n\n`.backend` ("opencl", "cuda" or "reference"), `.architecture` (90 for sm_90, 0 but for CUDA), `.device` ("gpu" or "cpu"),\n`.simd_width`, `.local_memory_bytes`, `.has_fp16`, `.has_fp64`, `.has_arrays` (libraries get its memory as arrays), and\n`.choose(table)`. They combine with numbers and texts.'
_tensorElement: Value
'The element of the innermost `_forEachTensorElement`, else of the thread, else 0.'
_tensorElements: Value
'The number of elements of that tensor.'
def _tgamma(x: Operand, /) -> Value:
    "OpenCL's tgamma: Γ(x). Error of float: 16 ULP, of double: 16 ULP."
def _trunc(x: Operand, /) -> Value:
    "OpenCL's trunc: the integer part of x."
def _uchar2(*parts: Operand) -> Value:
    'A uchar2 from scalars and vectors side by side.'
def _uchar2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of uchar2, 1 to 3 dimensions.'
def _uchar2Var(init: Operand = 0) -> Variable:
    'A uchar2 variable, zero by default.'
def _uchar3(*parts: Operand) -> Value:
    'A uchar3 from scalars and vectors side by side.'
def _uchar3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of uchar3, 1 to 3 dimensions.'
def _uchar3Var(init: Operand = 0) -> Variable:
    'A uchar3 variable, zero by default.'
def _uchar4(*parts: Operand) -> Value:
    'A uchar4 from scalars and vectors side by side.'
def _uchar4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of uchar4, 1 to 3 dimensions.'
def _uchar4Var(init: Operand = 0) -> Variable:
    'A uchar4 variable, zero by default.'
def _ucharArray(*dims: int) -> ArrayVariable:
    'A zeroed array of uchar, 1 to 3 dimensions.'
def _ucharVar(init: Operand = 0) -> Variable:
    'A uchar variable, zero by default.'
def _uint2(*parts: Operand) -> Value:
    'A uint2 from scalars and vectors side by side.'
def _uint2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of uint2, 1 to 3 dimensions.'
def _uint2Var(init: Operand = 0) -> Variable:
    'A uint2 variable, zero by default.'
def _uint3(*parts: Operand) -> Value:
    'A uint3 from scalars and vectors side by side.'
def _uint3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of uint3, 1 to 3 dimensions.'
def _uint3Var(init: Operand = 0) -> Variable:
    'A uint3 variable, zero by default.'
def _uint4(*parts: Operand) -> Value:
    'A uint4 from scalars and vectors side by side.'
def _uint4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of uint4, 1 to 3 dimensions.'
def _uint4Var(init: Operand = 0) -> Variable:
    'A uint4 variable, zero by default.'
def _uintArray(*dims: int) -> ArrayVariable:
    'A zeroed array of uint, 1 to 3 dimensions.'
def _uintVar(init: Operand = 0) -> Variable:
    'A uint variable, zero by default.'
def _ulong2(*parts: Operand) -> Value:
    'A ulong2 from scalars and vectors side by side.'
def _ulong2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of ulong2, 1 to 3 dimensions.'
def _ulong2Var(init: Operand = 0) -> Variable:
    'A ulong2 variable, zero by default.'
def _ulong3(*parts: Operand) -> Value:
    'A ulong3 from scalars and vectors side by side.'
def _ulong3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of ulong3, 1 to 3 dimensions.'
def _ulong3Var(init: Operand = 0) -> Variable:
    'A ulong3 variable, zero by default.'
def _ulong4(*parts: Operand) -> Value:
    'A ulong4 from scalars and vectors side by side.'
def _ulong4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of ulong4, 1 to 3 dimensions.'
def _ulong4Var(init: Operand = 0) -> Variable:
    'A ulong4 variable, zero by default.'
def _ulongArray(*dims: int) -> ArrayVariable:
    'A zeroed array of ulong, 1 to 3 dimensions.'
def _ulongVar(init: Operand = 0) -> Variable:
    'A ulong variable, zero by default.'
def _ushort2(*parts: Operand) -> Value:
    'A ushort2 from scalars and vectors side by side.'
def _ushort2Array(*dims: int) -> ArrayVariable:
    'A zeroed array of ushort2, 1 to 3 dimensions.'
def _ushort2Var(init: Operand = 0) -> Variable:
    'A ushort2 variable, zero by default.'
def _ushort3(*parts: Operand) -> Value:
    'A ushort3 from scalars and vectors side by side.'
def _ushort3Array(*dims: int) -> ArrayVariable:
    'A zeroed array of ushort3, 1 to 3 dimensions.'
def _ushort3Var(init: Operand = 0) -> Variable:
    'A ushort3 variable, zero by default.'
def _ushort4(*parts: Operand) -> Value:
    'A ushort4 from scalars and vectors side by side.'
def _ushort4Array(*dims: int) -> ArrayVariable:
    'A zeroed array of ushort4, 1 to 3 dimensions.'
def _ushort4Var(init: Operand = 0) -> Variable:
    'A ushort4 variable, zero by default.'
def _ushortArray(*dims: int) -> ArrayVariable:
    'A zeroed array of ushort, 1 to 3 dimensions.'
def _ushortVar(init: Operand = 0) -> Variable:
    'A ushort variable, zero by default.'
