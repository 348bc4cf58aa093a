"""Atomic operations: the CUDA functions, on unsigned integers where the sign does not matter, and compare-and-swap loops."""

from __future__ import annotations

from gpuop.codegen.c.atomic_updates import NEW

ULL = "(unsigned long long)"
POINTER = "(unsigned long long *)({p})"
UPDATE = """
// {op} of a {type} by compare and swap; the old value
__device__ inline {type} atomic_{op}_{type}({type} *p, {type} x)
{{
{own}    {bits} *const bits = ({bits} *)p;
    {bits} old = *(volatile {bits} *)bits, seen;
    do {{
        seen = old;
        const {type} y = {from_bits}(seen);
        old = atomicCAS(bits, seen, ({bits}){to_bits}({new}));
    }} while (old != seen);
    return {from_bits}(old);
}}
"""
NATIVE_ADD = """#if __CUDA_ARCH__ >= 600
    return atomicAdd(p, x);
#endif
"""
BITS = {
    "float": ("unsigned int", "__float_as_uint", "__uint_as_float"),
    "double": ("unsigned long long", "__double_as_longlong", "__longlong_as_double"),
}
UPDATES = (("min", "float"), ("max", "float"), ("add", "double"), ("min", "double"), ("max", "double"))
HELPERS = {
    f"atomic_{op}_{kind}": UPDATE.format(
        op=op, type=kind, new=NEW[op], own=NATIVE_ADD if op == "add" else "", bits=BITS[kind][0], to_bits=BITS[kind][1],
        from_bits=BITS[kind][2],
    )
    for op, kind in UPDATES
}  # fmt: skip
SAME = {"add": "atomicAdd", "xchg": "atomicExch", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor"}
ATOMICS = {
    **{op: f"{name}({{p}}, {{0}})" for op, name in SAME.items()},
    "sub": "atomicSub({p}, {0})",
    "min": "atomicMin({p}, {0})",
    "max": "atomicMax({p}, {0})",
    "cmpxchg": "atomicCAS({p}, {0}, {1})",
    **{f"{op} long": f"(long long){name}({POINTER}, {ULL}({{0}}))" for op, name in SAME.items()},
    "sub long": f"(long long)atomicAdd({POINTER}, 0ull - {ULL}({{0}}))",
    "sub ulong": f"atomicAdd({{p}}, 0ull - {ULL}({{0}}))",
    "cmpxchg long": f"(long long)atomicCAS({POINTER}, {ULL}({{0}}), {ULL}({{1}}))",
    "cmpxchg float": "__uint_as_float(atomicCAS((unsigned int *)({p}), __float_as_uint({0}), __float_as_uint({1})))",
    "cmpxchg double": f"__longlong_as_double(atomicCAS({POINTER}, {ULL}__double_as_longlong({{0}}), "
    f"{ULL}__double_as_longlong({{1}})))",
    "xchg double": f"__longlong_as_double(atomicExch({POINTER}, {ULL}__double_as_longlong({{0}})))",
    **{f"{op} {kind}": f"atomic_{op}_{kind}({{p}}, {{0}})" for op, kind in UPDATES},
}
