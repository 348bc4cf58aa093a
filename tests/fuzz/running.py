"""Running random programs: their inputs, their outputs on a device, and how outputs may differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np

import gpuop as gp
from gpuop.ir.dtype_names import part_dtype
from gpuop.ir.kernel import Kernel
from gpuop.ir.text import show
from gpuop.runtime import devices
from gpuop.runtime.reference.device import Reference
from gpuop.testing import ulps
from tests.as_gpus import as_a_gpu
from tests.conftest import Lowered, Vectorized, Widened

from .body import Body
from .functions import INEXACT
from .kinds import FLOATS, NUMPY, numbers
from .pass_by_pass import PassByPass
from .programs import Program

DEVICES = {
    "reference": Reference(),
    "lowered": Lowered(),
    "sm_90": as_a_gpu("reference:sm_90"),
    "vectorized": Vectorized(),
}
TARGETS = (Reference.target, Widened.target, Vectorized.target)
DEVICES |= {f"passes {target.widening}": PassByPass(target) for target in TARGETS}


@contextmanager
def using(device: str) -> Iterator[None]:
    """Use a device. "reference" interprets what was recorded, the others what passes made of it, "passes …" after each;
    "checked" watches."""
    if device == "checked":
        with gp.use_device("reference", checked=True):
            yield
    elif device in DEVICES:
        with mock.patch.dict(devices._open, reference=DEVICES[device]), gp.use_device("reference"):
            yield
    else:
        with gp.use_device(device):
            yield


@cache
def field(name: str, dtype: str, tensor: tuple, grid: tuple) -> gp.Field:
    """Numbers of every size, the remarkable ones at every third place."""
    shape = grid + tensor
    rng = np.random.default_rng(crc32(repr((name, dtype, tensor, grid)).encode()))
    if name == "zero":
        return gp.ScalarField(np.int32(3))
    if dtype.startswith("complex"):
        return gp.Field((rng.integers(-40, 40, shape) / 8 + 1j * rng.integers(-40, 40, shape)).astype(dtype))
    if dtype == "unorm8":
        return gp.Field(rng.integers(0, 256, shape).astype("u1"), len(tensor), dtype="unorm8")
    kind = np.dtype(NUMPY[dtype])
    if dtype in FLOATS:
        values = np.asarray(rng.integers(-64, 64, shape) / 8 * 10.0 ** rng.integers(-2, 3, shape)).astype(kind)
    else:
        values = np.asarray(rng.integers(-40, 40, shape)).astype(kind)
    special = np.array(numbers(dtype), kind)
    chosen = special[rng.integers(0, len(special), shape)]
    return gp.Field(np.where(rng.integers(0, 3, shape) == 0, chosen, values).astype(kind), len(tensor))


def fields_of(program: Program) -> dict[str, gp.Field]:
    return {f[0]: field(*f[:4]) for f in program.fields}


def types_of(program: Program) -> tuple[gp.FieldType, ...]:
    return tuple(gp.FieldType(o.grid, o.tensor, o.dtype) for o in program.outputs)


def recorded(
    program: Program, fields: dict[str, gp.Field] | None = None, careful: bool = False
) -> tuple[gp.Field, ...]:
    """The fields that a program computes."""

    def body():
        return Body(program, fields_of(program) if fields is None else fields, careful).write()

    default = tuple(o.default for o in program.outputs)
    types = types_of(program)
    if program.returned:
        outputs = _returning(program, body, fields)
        kinds = [(part_dtype(f.dtype), f.type.planes) for f in outputs]  # pairs beside complex fields are complex
        assert kinds == [(t.dtype, t.planes) for t in types], kinds
        return outputs
    outputs = gp.operator(outputs=types, default=default, name="random")(body)()
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _returning(program: Program, body: Any, fields: dict[str, gp.Field] | None) -> tuple[gp.Field, ...]:
    """An operator whose types follow from what it returns; its threads are those of its first argument."""
    like = next((f for f in program.fields if f[3] == program.grid), None)
    first = field("f", "float", (), program.grid) if like is None else (fields or fields_of(program))[like[0]]

    def returning(_):
        return body()

    result = gp.operator(name="random")(returning)(first)
    return result if isinstance(result, tuple) else (result,)


def computed(fields: tuple[gp.Field, ...], device: str) -> list[np.ndarray]:
    with using(device):
        gp.evaluate(*fields)
        return [f.numpy() for f in fields]


def allowed(output: Any) -> float:
    """The bound of an inexact output in ULP, and one for the reference's own rounding."""
    if output.how != "inexact":
        return 0.0
    entry = INEXACT[output.value[2]]
    return (entry.double if output.dtype == "float64" else 1 if output.dtype == "float16" else entry.ulp) + 1


def parts(a: np.ndarray) -> np.ndarray:
    """Real and imaginary parts of complex numbers, on an axis of their own."""
    return np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a


def differences(program: Program, actual: list, want: list) -> list[str]:
    """The outputs that differ from the expected ones."""
    results = []
    for n, (output, a, b) in enumerate(zip(program.outputs, actual, want, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            results.append(f"output {n}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
            continue
        a, b, bound = parts(a), parts(b), allowed(output)
        with np.errstate(all="ignore"):
            wrong = ulps(a, b.astype(np.longdouble)) > bound if bound else ~np.isclose(a, b, 0, 0, equal_nan=True)
        if wrong.any():
            at = tuple(int(i[0]) for i in np.nonzero(wrong)) if wrong.ndim else ()
            what = f"output {n} ({output.how} {output.dtype}) at {at}"
            results.append(f"{what}: {a[at]!r}, not {b[at]!r}; {wrong.sum()} of {wrong.size}")
    return results


def check(program: Program, device: str) -> None:
    """A device gives what the recorded program means.

    Raises:
        AssertionError: with the program and its kernel.
    """
    recording = recorded(program)
    want = computed(recording, "reference")
    wrong = differences(program, computed(recording, device), want)
    assert not wrong, "\n".join([*wrong, repr(program), shown(recording)])


def pair_in_a_graph(pair: tuple[Program, Program], device: str, optimize: bool) -> tuple[dict[str, np.ndarray], int]:
    """The results of both programs, the second one reading the first one's outputs, and the number of kernels."""
    first, second = pair
    with using(device):
        with gp.ComputeGraph(optimize=optimize) as graph:
            program = recorded(first)
            before = {f"p{n}": f for n, f in enumerate(program)}
            own = {f[0]: field(*f[:4]) for f in second.fields if f[0] not in before}
            results = recorded(second, before | own)
            for n, result in enumerate(results):
                graph.probe(result, f"second {n}")
            graph.probe(program[0], "first 0")
        graph.reset()
        return {name: graph.read(name) for name in graph._definition.probes}, graph.kernel_count


def kernel(fields: tuple[gp.Field, ...]) -> Kernel:
    return fields[0].node.call.kernel


def shown(fields: tuple[gp.Field, ...]) -> str:
    return show(kernel(fields))
