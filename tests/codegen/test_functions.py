"""Every builtin function compiles as CUDA, of every type and as vectors."""

from __future__ import annotations

import pytest

import gpuop as gp
from gpuop import dsl
from gpuop.codegen.generate import generate, target_named
from gpuop.dsl import *
from gpuop.dsl.builtins.functions import Entry, table
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program
from tests.golden.kernels import field

from .nvrtc import ptx_of

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "float32", "float64")
BOTH = {"_max", "_min", "_clamp", "_bitselect", "_select", "_any", "_all"}


def takes(entry: Entry, dtype: str, lanes: int) -> bool:
    if entry.name in ("_any", "_all"):
        return dtype.startswith("int")
    if entry.name in ("_mul24", "_mad24"):
        return dtype.endswith("int32")
    if entry.group == "complex":  # of a scalar, which is a real number
        return dtype in FLOATS and lanes == 1
    if entry.name == "_cross":
        return dtype in FLOATS and lanes == 3
    if entry.name == "_random":
        return dtype in INTEGERS and lanes == 1
    return entry.name in BOTH or (entry.group == "integer") == (dtype in INTEGERS)


def call(entry: Entry, x, y):
    arguments = [x, y, x + y][: entry.arity]
    if entry.name in ("_ldexp", "_pown", "_rootn", "_select"):
        arguments[-1] = _convert(y, "int32")
    if entry.name == "_nan":
        arguments = [_convert(x, "uint32")]
    return getattr(dsl, entry.name)(*arguments)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_functions_compile(dtype: str, lanes: int) -> None:
    shape = (lanes,) if lanes > 1 else ()
    x, y = (field((70,), shape, dtype, name) for name in "xy")
    entries = [e for e in table() if takes(e, dtype, lanes)]

    def body(f, g, part):
        values = []
        for entry in part:
            result = call(entry, _readTensor(f), _readTensor(g))
            values += result if isinstance(result, tuple) else [result]
        return tuple(values)

    fields: list[gp.Field] = []
    for first in range(0, len(entries), 8):
        output = gp.operator(body)(x, y, part=tuple(entries[first : first + 8]))
        fields += output if isinstance(output, tuple) else (output,)
    compile_cuda(fields)


@pytest.mark.parametrize("to", [INTEGERS, FLOATS], ids=["integers", "floats"])
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
def test_conversions_compile(dtype: str, to: tuple[str, ...]) -> None:
    """Of values in fields and in arrays of the thread's own; each pair of types is another overload."""

    @gp.operator(outputs=[gp.FieldType(70, (), dtype) for dtype in to])
    def converted(x):
        table = _intArray(4)
        value = _readTensor(x)
        table[0] = _convert(value, "int32")
        outputs = (_out0, _out1, _out2, _out3, _out4, _out5, _out6, _out7)[: len(to)]
        for out, wanted in zip(outputs, to, strict=True):
            _writeTensor(out, _convert(value, wanted) + _convert(_convert(table[1], dtype), wanted))

    compile_cuda(list(converted(field((70,), (), dtype, "x"))))


def compile_cuda(fields: list[gp.Field]) -> None:
    for step in plan(program([f.node for f in fields])).launches:
        source = generate(step.kernel, target_named("cuda")).text
        try:
            ptx_of(source, "compute_90")
        except RuntimeError as refused:
            pytest.fail(f"{refused}\n{source}")
