"""Atomic operations: the OpenCL functions on 32 bits, extensions on 64 bits, and compare-and-swap loops on floats."""

from __future__ import annotations

from gpuop.codegen.c.atomic_updates import NEW

SPACES = ("local", "global")
INT64 = """
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
"""
UPDATE = """
// {op} of a {type} by compare and swap; the old value
{type} {name}(volatile __{space} {type} *p, {type} x)
{{
    volatile __{space} {bits} *bits = (volatile __{space} {bits} *)p;
    {bits} old = *bits, seen;
    do {{
        seen = old;
        const {type} y = as_{type}(seen);
        old = {swap}(bits, seen, as_{bits}({new}));
    }} while (old != seen);
    return as_{type}(old);
}}
"""
SWAP = """
// x where the bits are those of compare; the old value
{type} {name}(volatile __{space} {type} *p, {type} compare, {type} x)
{{
    return as_{type}({swap}((volatile __{space} {bits} *)p, as_{bits}(compare), as_{bits}(x)));
}}
"""
EXCHANGE = """
double {name}(volatile __{space} double *p, double x)
{{
    return as_double(atom_xchg((volatile __{space} ulong *)p, as_ulong(x)));
}}
"""
OPERATIONS = ("add", "sub", "xchg", "min", "max", "and", "or", "xor")
ATOMICS = {
    **{op: f"atomic_{op}({{p}}, {{0}})" for op in OPERATIONS},
    "cmpxchg": "atomic_cmpxchg({p}, {0}, {1})",
    **{f"{op} {kind}": f"atom_{op}({{p}}, {{0}})" for op in OPERATIONS for kind in ("long", "ulong")},
    **{f"cmpxchg {kind}": "atom_cmpxchg({p}, {0}, {1})" for kind in ("long", "ulong")},
}
HELPERS = {f"atom_{op}": INT64 for op in (*OPERATIONS, "cmpxchg")}
for _space in SPACES:
    for _type, _bits, _swap, _mark in (
        ("float", "uint", "atomic_cmpxchg", ""),
        ("double", "ulong", "atom_cmpxchg", "double_"),
    ):
        for _op in (*NEW, "cmpxchg", *(("xchg",) if _type == "double" else ())):
            _name = f"atomic_{_op}_{_mark}{_space}"
            _form = {"cmpxchg": SWAP, "xchg": EXCHANGE}.get(_op, UPDATE)
            _facts = {
                "op": _op,
                "type": _type,
                "name": _name,
                "space": _space,
                "bits": _bits,
                "swap": _swap,
                "new": NEW.get(_op),
            }
            HELPERS[_name] = (INT64 if _type == "double" else "") + _form.format(**_facts)
            ATOMICS[f"{_op} {_type} {_space}"] = f"{_name}({{p}}, {{0}}{', {1}' * (_op == 'cmpxchg')})"
