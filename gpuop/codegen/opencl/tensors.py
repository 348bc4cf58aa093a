"""Vectors of the elements of points in memory where these alternate, as the colours of photos do: red, green, blue, red, ...

All points of a vector are loaded at once, and shuffled; equal loads of several elements are one for compilers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

from gpuop.codegen.opencl.lane_calls import LENGTHS
from gpuop.codegen.opencl.long_vectors import KINDS
from gpuop.codegen.opencl.long_vectors import LENGTHS as LONG
from gpuop.codegen.opencl.vector_access import SIZES
from gpuop.ir.layout import ALTERNATING
from gpuop.passes.coarsening_factor import ACCESS

LOAD = """
// element {e} of {n} points of {planes}
{c}{n} {name}(__global const {c} *p)
{{
{points}    const points all = *(__global const points *)p;
    return __builtin_shufflevector(all, all, {lanes});
}}
"""
STORE = """
// {n} points of {planes}
void {name}({values}, __global {c} *p)
{{
{points}{joined}    *(__global points *)p = __builtin_shufflevector({left}, {right}, {lanes});
}}
"""
STREAM = """
// {n} points of {planes}, past the caches, which the output would only fill
void {name}({values}, __global {c} *p)
{{
{points}{joined}    if ((ulong)p % {access}) {{
        *(__global points *)p = __builtin_shufflevector({left}, {right}, {lanes});
        return;
    }}
{stores}
}}
"""
LOAD_HALF = """
// element {e} of {n} points of {planes}
float{n} {name}(__global const half *p)
{{
    return unpack_half{n}({load}((__global const ushort *)p));
}}
"""
STORE_HALF = """
// {n} points of {planes}
void {name}({values}, __global half *p)
{{
    {store}({names}, (__global ushort *)p);
}}
"""
POINTS = "    typedef {c} points __attribute__((ext_vector_type({all}), aligned({size})));\n"
PAIRS = "    typedef {c} pairs __attribute__((ext_vector_type({n})));\n"


def loading(c: str, n: int, planes: int, element: int) -> str:
    """The function that reads an element of n points."""
    return f"load_{element}_of_{planes}_{c}{n}"


def storing(c: str, n: int, planes: int, streamed: bool) -> str:
    """The function that writes n points, past the caches if `streamed` and in whole accesses."""
    return f"{'stream' if streamed and c != 'half' and n * SIZES[c] >= ACCESS else 'store'}_{planes}_{c}{n}"


# --- texts --------------------------------------------------------------------------------------------------------------


def _load(c: str, n: int, planes: int, e: int) -> str:
    name = loading(c, n, planes, e)
    if c == "half":
        return LOAD_HALF.format(n=n, planes=planes, e=e, name=name, load=loading("ushort", n, planes, e))
    points = POINTS.format(c=c, all=n * planes, size=SIZES[c])
    lanes = _listed(range(e, n * planes, planes))
    return LOAD.format(c=c, n=n, planes=planes, e=e, name=name, points=points, lanes=lanes)


def _store(c: str, n: int, planes: int, streamed: bool) -> str:
    name = storing(c, n, planes, streamed)
    if c == "half":
        values = ", ".join(f"float{n} x{e}" for e in range(planes))
        names = ", ".join(f"pack_half{n}(x{e})" for e in range(planes))
        store = storing("ushort", n, planes, False)
        return STORE_HALF.format(n=n, planes=planes, name=name, values=values, names=names, store=store)
    joined, left, right = _joined(c, n, planes)
    places = [e * n + point for point in range(n) for e in range(planes)]  # lanes of the joined vectors, as points lie
    return (STREAM if streamed else STORE).format(
        c=c,
        n=n,
        planes=planes,
        name=name,
        values=", ".join(f"{c}{n} x{e}" for e in range(planes)),
        points=POINTS.format(c=c, all=n * planes, size=SIZES[c]),
        joined=joined,
        left=left,
        right=right,
        lanes=_listed(places),
        access=ACCESS,
        stores=_streams(c, left, right, places) if streamed else "",
    )


def _joined(c: str, n: int, planes: int) -> tuple[str, str, str]:
    """Statements that join vectors of three or four elements in pairs, and the names of the two that have all lanes."""
    if planes == 2:
        return "", "x0", "x1"
    lanes, last = _listed(range(2 * n)), 3 if planes == 4 else 2
    pairs = [
        f"    const pairs x{a}{b} = __builtin_shufflevector(x{a}, x{b}, {lanes});\n" for a, b in ((0, 1), (2, last))
    ]
    return PAIRS.format(c=c, n=2 * n) + "".join(pairs), "x01", f"x2{last}"


def _streams(c: str, left: str, right: str, places: list[int]) -> str:
    """Stores of 16 bytes each."""
    count = ACCESS // SIZES[c]
    return "\n".join(
        f"    __builtin_nontemporal_store(__builtin_shufflevector({left}, {right}, {_listed(places[k : k + count])}), "
        f"(__global {c}{count} *)p{f' + {k // count}' if k else ''});"
        for k in range(0, len(places), count)
    )


def _listed(lanes: Iterable[int]) -> str:
    return ", ".join(map(str, lanes))


def _helpers() -> Iterator[tuple[str, Callable[[], str]]]:
    for c in sorted(SIZES, key="half".__eq__):  # those of halves call others
        for n, planes in product((*LENGTHS, *(LONG if c in KINDS else ())), ALTERNATING):
            for e in range(planes):
                yield loading(c, n, planes, e), partial(_load, c, n, planes, e)
            for streamed in (True, False):  # the last one has the name of both where there are no whole accesses
                yield storing(c, n, planes, streamed), partial(_store, c, n, planes, streamed)


HELPERS: dict[str, Callable[[], str]] = dict(_helpers())
