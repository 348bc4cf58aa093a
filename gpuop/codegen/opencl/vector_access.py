"""Vector loads and stores that begin at any element.

In PoCL, `vload` and `vstore` handle lanes one by one, which compiles slowly and is not always merged again. A pointer to vectors
with the alignment of their elements gives one instruction on every driver.
"""

from __future__ import annotations

from gpuop.codegen.opencl.lane_calls import LENGTHS
from gpuop.codegen.opencl.lane_loads import DIGITS
from gpuop.codegen.opencl.long_vectors import KINDS, LONGEST
from gpuop.codegen.opencl.long_vectors import LENGTHS as LONG
from gpuop.ir.types import BOOL, DTYPES
from gpuop.passes.coarsening_factor import ACCESS

LOAD = """
// {n} neighbours, wherever they begin
{c}{n} {name}({space} const {c} *p)
{{
{anywhere}    return *({space} const anywhere *)p;
}}
"""
STORE = """
// {n} neighbours, wherever they begin
void {name}({c}{n} x, {space} {c} *p)
{{
{anywhere}    *({space} anywhere *)p = x;
}}
"""
LOAD_FIRST = """
// {n} values, of which `left` are there
{type}{n} load_first_{c}{n}(__global const {c} *p, int left)
{{
{anywhere}    if (left >= {n}) return {whole};
    {type} lanes[{n}];
    for (int k = 0; k < {n}; k++) lanes[k] = {load};
    return vload{n}(0, lanes);
}}
"""
LOAD_WITHIN = """
// {n} values, of which `left` are there, from the one that is `least` ahead
{type}{n} load_within_{c}{n}(__global const {c} *p, int left, int least)
{{
{anywhere}    if (least <= 0 && left >= {n}) return {whole};
    {type} lanes[{n}];
    for (int k = 0; k < {n}; k++) lanes[k] = {load};
    return vload{n}(0, lanes);
}}
"""
STORE_FIRST = """
// the first `left` of {n} values
void store_first_{c}{n}({type}{n} x, __global {c} *p, int left)
{{
{anywhere}    if (left >= {n}) {{
        {whole};
        return;
    }}
    {type} lanes[{n}];
    vstore{n}(x, 0, lanes);
    for (int k = 0; k < left; k++) {store};
}}
"""
GATHER = """
// {n} elements from anywhere
{type}{n} {name}(__global const {c} *p, {index}{n} at)
{{
    return ({type}{n})({lanes});
}}
"""
STREAM = """
// past the caches, which the output would only fill
void stream_{c}{n}({c}{n} x, __global {c} *p)
{{
{anywhere}    if ((ulong)p % {access}) {{
        *(__global anywhere *)p = x;
        return;
    }}
{stores}
}}
"""
ANYWHERE = "    typedef {c}{n} anywhere __attribute__((aligned({size})));\n"
SIZES = {dtype.c: dtype.bits // 8 for dtype in DTYPES.values() if dtype is not BOOL}  # bytes in memory
SPACES = {"global": "", "private": "private_", "local": "local_", "constant": "constant_"}


def loading(c: str, n: int, space: str = "global") -> str:
    """The function that reads n neighbours."""
    return f"load_{SPACES[space]}{c}{n}"


def storing(c: str, n: int, space: str = "global") -> str:
    return f"store_{SPACES[space]}{c}{n}"


def gathering(c: str, n: int, index: str) -> str:
    """The function that reads n elements at places that are integers of a type."""
    return f"gather_{c}{n}{'_far' * (index == 'long')}"


def _gathers(c: str, n: int) -> dict[str, str]:
    type_, element = ("float", "vload_half(at.s{}, p)") if c == "half" else (c, "p[at.s{}]")
    parts = {"c": c, "n": n, "type": type_, "lanes": ", ".join(map(element.format, DIGITS[:n]))}
    names = {gathering(c, n, index): index for index in ("int", "long")}
    return {name: GATHER.format(name=name, index=index, **parts) for name, index in names.items()}


def _anywhere(c: str, n: int) -> str:
    return ANYWHERE.format(c=c, n=n, size=SIZES[c])


def _neighbours(c: str, n: int) -> dict[str, str]:
    functions: dict[str, str] = {}
    for space in SPACES:
        parts = {"c": c, "n": n, "space": f"__{space}", "anywhere": _anywhere(c, n)}
        functions[loading(c, n, space)] = LOAD.format(name=loading(c, n, space), **parts)
        if space != "constant":
            functions[storing(c, n, space)] = STORE.format(name=storing(c, n, space), **parts)
    return functions


def _first(c: str, n: int) -> dict[str, str]:
    parts = {"c": c, "n": n, "type": c, "anywhere": _anywhere(c, n)}
    read = {"whole": "*(__global const anywhere *)p", "load": "p[{at}]"}
    written = {"whole": "*(__global anywhere *)p = x", "store": "p[k] = lanes[k]"}
    if c == "half":
        parts |= {"type": "float", "anywhere": ""}
        read = {"whole": f"vload_half{n}(0, p)", "load": "vload_half({at}, p)"}
        written = {"whole": f"vstore_half{n}(x, 0, p)", "store": "vstore_half(lanes[k], k, p)"}
    functions: dict[str, str] = {}
    for name, text, at in (
        ("first", LOAD_FIRST, "min(k, left - 1)"),
        ("within", LOAD_WITHIN, "min(max(k, least), left - 1)"),
    ):
        load = read["load"].format(at=at)
        functions[f"load_{name}_{c}{n}"] = text.format(**parts, whole=read["whole"], load=load)
    return {**functions, f"store_first_{c}{n}": STORE_FIRST.format(**parts, **written)}


def _stream(c: str, n: int) -> dict[str, str]:
    """Stores of 16 bytes, which any driver's compiler has as one instruction, if they are aligned."""
    if n * SIZES[c] < ACCESS:
        return {}
    part = min(ACCESS // SIZES[c], n)
    stores = [
        f"    __builtin_nontemporal_store({_lanes(n, k, part)}, (__global {c}{part} *)p{f' + {k // part}' if k else ''});"
        for k in range(0, n, part)
    ]
    text = STREAM.format(c=c, n=n, access=ACCESS, anywhere=_anywhere(c, n), stores="\n".join(stores))
    return {f"stream_{c}{n}": text}


def _lanes(n: int, first: int, count: int) -> str:
    """So many lanes of x, which has n."""
    if n > LONGEST:
        return f"__builtin_shufflevector(x, x, {', '.join(map(str, range(first, first + count)))})"
    return f"x.s{DIGITS[first : first + count]}" if count < n else "x"


HELPERS = {
    **{
        name: text
        for c in SIZES
        if c != "half"  # halves: their vectors are floats
        for n in (*LENGTHS, *(LONG if c in KINDS else ()))
        for name, text in (_neighbours(c, n) | _stream(c, n)).items()
    },
    **{name: text for c in SIZES for n in LENGTHS for name, text in _first(c, n).items()},
    **{name: text for c in SIZES for n in LENGTHS for name, text in _gathers(c, n).items()},
}
