"""Forms of text for what NVIDIA's compilers get wrong, each in a bare kernel: which of them come out right."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

KINDS = {"int": "int32", "uint": "uint32", "long": "int64", "short": "int16", "ushort": "uint16"}
COUNT = 64
HEADS = {
    "cuda": "typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long long ulong;\n#define ASM asm\n",
    "opencl": "#define ASM __asm__\n",
}
BODY = "int i = {i}; int zero = {zero}; T t = a[i], u = b[i], v = c[i]; o[i] = {form};"
ENTRY = {
    "cuda": 'extern "C" __global__ void k{n}(const T *a, const T *b, const T *c, T *o, int nil)',
    "opencl": "__kernel void k{n}(__global const T *a, __global const T *b, __global const T *c, __global T *o, int nil)",
}
POSITION = {"cuda": "blockIdx.x * blockDim.x + threadIdx.x", "opencl": "get_global_id(0)"}
ZERO = {"cuda": "blockIdx.z", "opencl": "(int)get_global_offset(0)"}

# max of three negated values, of which {0} {1} {2} are t, u, v
NEGATED = {
    "0 - x": "(T)((U)0 - (U)(x))",
    "-x": "-(x)",
    "x * -1": "(T)((U)(x) * (U)-1)",
    "~x + 1": "(T)(~(U)(x) + (U)1)",
    "zero - x, zero of the hardware": "(T)((U)zero - (U)(x))",
    "zero - x, zero an argument": "(T)((U)nil - (U)(x))",
    "asm neg": "negated(x)",
    "asm sub": "subtracted(x)",
    "0 - x, hidden from the front": "hidden((T)((U)0 - (U)(x)))",
}
NESTS = {
    "max(max(,),)": "max(max({0}, {1}), {2})",
    "max(,max(,))": "max({0}, max({1}, {2}))",
    "?:": "larger(larger({0}, {1}), {2})",
    "min(min(,),)": "min(min({0}, {1}), {2})",
    "biased unsigned": "(T)(max(max((U){0} ^ B, (U){1} ^ B), (U){2} ^ B) ^ B)",
    "four": "max(max(max({0}, {1}), {2}), t)",
    "min of max": "min(max({0}, {1}), {2})",
}
HELPERS = """
#define U {U}
#define T {T}
#define B ((U)1 << (8 * sizeof(T) - 1))
{F} T larger(T x, T y) {{ return x < y ? y : x; }}
{F} T hidden(T x) {{ ASM volatile("" : "+{r}"(x)); return x; }}
{F} T negated(T x) {{ T y; ASM("neg.s{bits} %0, %1;" : "={r}"(y) : "{r}"(x)); return y; }}
{F} T subtracted(T x) {{ T y; ASM("sub.s{bits} %0, 0, %1;" : "={r}"(y) : "{r}"(x)); return y; }}
"""


def _nests(name: str, t: Any, u: Any, v: Any) -> Any:
    t, u, v, own = -t, -u, -v, t
    if name == "min(min(,),)":
        return np.minimum(np.minimum(t, u), v)
    if name == "min of max":
        return np.minimum(np.maximum(t, u), v)
    most = np.maximum(np.maximum(t, u), v)
    return np.maximum(most, own) if name == "four" else most


# of the least integer abs is itself; each of them then compared or clipped
ABSOLUTE = {
    "?: 0 - x": "(t < 0 ? (T)((U)0 - (U)t) : t)",
    "?: 0 - x, unsigned choice": "(T)(t < 0 ? (U)0 - (U)t : (U)t)",
    "> ?: 0 - x": "(t > 0 ? t : (T)((U)0 - (U)t))",
    "?: zero - x": "(t < 0 ? (T)((U)zero - (U)t) : t)",
    "?: nil - x": "(t < 0 ? (T)((U)nil - (U)t) : t)",
    "(x ^ s) - s": "(T)(((U)t ^ (U)(t >> (8 * sizeof(T) - 1))) - (U)(t >> (8 * sizeof(T) - 1)))",
    "(x + s) ^ s": "(T)(((U)t + (U)(t >> (8 * sizeof(T) - 1))) ^ (U)(t >> (8 * sizeof(T) - 1)))",
    "x * sign": "(T)((U)t * (U)(t < 0 ? -1 : 1))",
    "max(x, 0 - x)": "(T)max(t, (T)((U)0 - (U)t))",
    "hidden 0 - x": "(t < 0 ? hidden((T)((U)0 - (U)t)) : t)",
    "hidden ?:": "hidden(t < 0 ? (T)((U)0 - (U)t) : t)",
}
AFTER = {
    "min(, 0)": ("(T)min((T)({0}), (T)0)", lambda x, t: np.minimum(x, 0)),
    "< 0": ("(T)({0} < 0 ? 5 : 6)", lambda x, t: np.where(x < 0, 5, 6)),
    ">> 1": ("(T)({0} >> 1)", lambda x, t: x >> 1),
    "< t": ("(T)({0} < t ? 5 : 6)", lambda x, t: np.where(x < t, 5, 6)),
}
CLIPPED = {
    "casts": "min((T)max(t, (T)0), (T)7)",
    "?:": "(T)((t > (T)0 ? t : (T)0) < (T)7 ? (t > (T)0 ? t : (T)0) : (T)7)",
    "of int": "min(max((int)t, 0), 7)",
    "cut of int": "(T)min(max((int)t, 0), 7)",
    "only min": "min(t, (T)7)",
    "only max": "max(t, (T)7)",
    "only min, of int": "min((int)t, 7)",
    "only max, of int": "max((int)t, 7)",
    "only min, of uint": "(T)min((uint)(int)t, 7u)",
}
TESTS = {
    "== 7": ("(T)(7 == {0})", lambda x: x == 7),
    "(T)7 ==": ("(T)((T)7 == {0})", lambda x: x == 7),
    "7 == (int)": ("(T)(7 == (int)({0}))", lambda x: x == 7),
    "== 7 ?": ("(T)({0} == 7 ? 1 : 0)", lambda x: x == 7),
    "!= 7": ("(T)({0} != 7)", lambda x: x != 7),
    "< 7": ("(T)({0} < 7)", lambda x: x < 7),
    ">= 7": ("(T)({0} >= 7)", lambda x: x >= 7),
}


def data(dtype: str) -> list[Any]:
    rng, info = np.random.default_rng(3), np.iinfo(dtype)
    arrays = rng.integers(max(info.min, -20), 20, (3, COUNT)).astype(dtype)
    arrays[:, ::9], arrays[:, 4::9], arrays[0, 2::9] = info.min, info.max, 7
    arrays[:, :3] = np.array([[2, 9, 12], [4, 1, 7], [3, 3, 1]])
    return [np.ascontiguousarray(rng.permutation(a)) for a in arrays]


def cases(kind: str) -> list[tuple[str, str, Any]]:  # noqa: C901 - a loop for each defect
    """(what, text, expected) for a type."""
    dtype = KINDS[kind]
    t, u, v = data(dtype)
    found: list[tuple[str, str, Any]] = []
    with np.errstate(all="ignore"):
        if kind in ("int", "long", "uint"):
            for (nest, text), (neg, form) in ((n, f) for n in NESTS.items() for f in NEGATED.items()):
                if kind == "uint" and ("asm" in neg or nest == "biased unsigned"):
                    continue
                found.append(
                    (
                        f"{nest} of {neg}",
                        text.format(*(form.replace("(x)", f"({n})") for n in "tuv")),
                        _nests(nest, t, u, v),
                    )
                )
        if kind in ("int", "long", "short"):
            for (then, (text, right)), (name, form) in ((a, f) for a in AFTER.items() for f in ABSOLUTE.items()):
                found.append((f"abs {name} {then}", text.format(form), right(np.abs(t), t)))
            for (then, (text, right)), (name, form) in ((a, f) for a in AFTER.items() for f in NEGATED.items()):
                if "asm" not in name:
                    found.append((f"neg {name} {then}", text.format(form.replace("(x)", "(t)")), right(-t, t)))
        if kind in ("short", "ushort", "int"):
            for (test, (text, right)), (name, form) in ((s, f) for s in TESTS.items() for f in CLIPPED.items()):
                clipped = (
                    np.maximum(t, 7)
                    if "only max" in name
                    else np.minimum(t, 7)
                    if "only min" in name
                    else np.clip(t, 0, 7)
                )
                if "uint" not in name or kind == "ushort":
                    found.append((f"{name} {test}", text.format(form), right(clipped)))
    return [(what, text, np.asarray(want).astype(dtype)) for what, text, want in found]


def text_of(language: str, kind: str, forms: list[str], assembly: bool) -> str:
    bits = 8 * np.dtype(KINDS[kind]).itemsize
    names = {"long": "long long"} if language == "cuda" else {}
    unsigned = kind if kind[0] == "u" else f"u{kind}"
    head = HELPERS if assembly else "\n".join(line for line in HELPERS.splitlines() if "ASM" not in line)
    parts = {"U": unsigned, "T": names.get(kind, kind), "bits": bits, "r": {64: "l", 32: "r"}.get(bits, "h")}
    lines = [HEADS[language], head.format(F="__device__ inline" if language == "cuda" else "", **parts)]
    for n, form in enumerate(forms):
        body = BODY.format(i=POSITION[language], zero=ZERO[language], form=form)
        lines.append(f"{ENTRY[language].format(n=n)} {{ {body} }}")
    return "\n".join(lines)


def run_opencl(device: Any) -> Callable[[str, str, list[Any], int], list[Any]]:
    import pyopencl as cl

    context = cl.Context([device])
    queue = cl.CommandQueue(context)

    def run(text: str, dtype: str, arrays: list[Any], count: int) -> list[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            built = cl.Program(context, text).build(["-cl-std=CL1.2"], cache_dir=False)
        flags = cl.mem_flags
        buffers = [cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a) for a in arrays]
        out = cl.Buffer(context, flags.READ_WRITE, arrays[0].nbytes)
        found = []
        for n in range(count):
            cl.Kernel(built, f"k{n}")(queue, (COUNT,), (32,), *buffers, out, np.int32(0))
            found.append(np.empty(COUNT, dtype))
            cl.enqueue_copy(queue, found[-1], out)
        return found

    return run


def run_cuda(ordinal: int) -> Callable[[str, str, list[Any], int], list[Any]]:
    import pycuda.driver as drv

    from gpuop.runtime.nvrtc import compile_cuda

    drv.init()
    major, minor = drv.Device(ordinal).compute_capability()

    def run(text: str, dtype: str, arrays: list[Any], count: int) -> list[Any]:
        context = drv.Device(ordinal).retain_primary_context()
        context.push()
        try:
            module = drv.module_from_buffer(compile_cuda(text, f"sm_{major}{minor}"))
            buffers = [drv.to_device(a) for a in arrays]
            out = drv.mem_alloc(arrays[0].nbytes)
            found = []
            for n in range(count):
                module.get_function(f"k{n}")(*buffers, out, np.int32(0), block=(32, 1, 1), grid=(COUNT // 32, 1))
                found.append(np.empty(COUNT, dtype))
                drv.memcpy_dtoh(found[-1], out)
            return found
        finally:
            context.pop()

    return run


ASSEMBLY = ("negated(", "subtracted(", "hidden(")


def computed(run: Any, language: str, assembly: bool, kind: str, listed: list[tuple[str, str, Any]]) -> list[Any]:
    """The results of cases; None of what does not compile."""
    dtype = KINDS[kind]
    try:
        return run(text_of(language, kind, [text for _, text, _ in listed], assembly), dtype, data(dtype), len(listed))
    except Exception as failed:  # noqa: BLE001 - one form that is refused takes no other with it
        if len(listed) > 1:
            return [computed(run, language, assembly, kind, [case])[0] for case in listed]
        print(f"    {listed[0][0]}: {str(failed)[:600]}")
        return [None]


def main() -> None:
    """Prints, for every driver, the forms that come out wrong."""
    from gpuop.runtime.opencl_devices import device_list

    runners = {f"opencl {platform}": ("opencl", run_opencl(device)) for platform, device in device_list()}
    try:
        runners["cuda"] = ("cuda", run_cuda(0))
    except Exception as missing:  # noqa: BLE001 - whatever is not there
        print(f"no CUDA: {missing}")
    for name, (language, run) in runners.items():
        assembly = "cuda" in name.lower()
        for kind in KINDS:
            listed = [case for case in cases(kind) if assembly or not any(word in case[1] for word in ASSEMBLY)]
            results = computed(run, language, assembly, kind, listed)
            bad = [
                what
                for (what, _, want), got in zip(listed, results, strict=True)
                if got is not None and (got != want).any()
            ]
            print(f"--- {name}, {kind}: {len(bad)} of {len(listed)} wrong", flush=True)
            for what in bad:
                print(f"    wrong: {what}")


if __name__ == "__main__":
    main()
