"""Builtin functions of random programs: for a wanted result, what they are called with. Only what has one result in every
bit is here; NaN's payload and the sign of fmax's zero are nobody's, so `real` and `+ 0.0` take them away.
"""

from __future__ import annotations

from gpuop.dsl.builtins.functions import table

from .kinds import BITS, FLOATS, INTEGERS, SIGNED_OF, join, signed, split

ENTRIES = {e.name: e for e in table() if e.group != "complex"}  # which are of float2s alone
ANY_ZERO = {"_fmax", "_fmin", "_maxmag", "_minmag", "_nextafter"}
SAME_INTEGERS = {"_add_sat", "_sub_sat", "_hadd", "_rhadd", "_mul_hi", "_mad_hi", "_mad_sat", "_clz", "_popcount"}
UNSIGNED = {"_abs", "_abs_diff"}
OF_24_BITS = {"_mul24", "_mad24"}
EITHER = {"_max", "_min", "_clamp"}  # of integers and floating types
ACROSS = {"_dot", "_length", "_distance", "_fast_length", "_fast_distance"}  # a scalar of vectors
OF_VECTORS = {"_normalize", "_fast_normalize"}
IN_STEPS = {"_mix", "_mad", "_degrees", "_radians", "_native_divide", "_cross", *ACROSS, *OF_VECTORS}  # rounded at each
ONE_BY_ONE = {
    "_copysign",
    "_ldexp",
    "_nan",
    "_ilogb",
    "_remquo",
    "_cross",
    "_rotate",
    "_bitselect",
    "_select",
    "_any",
    "_all",
    "_random",
}
TESTS = {name for name, e in ENTRIES.items() if e.group == "relational" and name.startswith(("_is", "_sign"))}
LIMITS = {"_acospi", "_asinpi", "_atanpi", "_atan2pi", "_tanpi"}  # made of inexact ones
INEXACT = {
    name: entry
    for name, entry in ENTRIES.items()
    if entry.group == "math" and 0 < entry.ulp < float("inf") and name not in IN_STEPS and entry.arity < 3
}
UNBOUNDED = {"_lgamma", "_lgamma_r"}
_FLOATING = {
    name
    for name, e in ENTRIES.items()
    if e.group in ("math", "common") and (e.ulp == 0 or name in IN_STEPS) and name not in EITHER | ONE_BY_ONE
}
KNOWN = (
    SAME_INTEGERS | UNSIGNED | OF_24_BITS | EITHER | ACROSS | OF_VECTORS | ONE_BY_ONE | TESTS | _FLOATING | UNBOUNDED | set(INEXACT)
)  # fmt: skip


def names_for(kind: str) -> list[str]:
    """The functions that can give a value of a type."""
    dtype, lanes = split(kind)
    results: set[str] = set()
    if dtype in INTEGERS:
        results |= SAME_INTEGERS | EITHER | {"_rotate", "_bitselect", "_select"}
        results |= UNSIGNED if dtype.startswith("u") else set()
        results |= OF_24_BITS if dtype in ("int", "uint") else set()
        results |= TESTS if kind == "int" or (lanes > 1 and dtype in SIGNED_OF.values()) else set()
        results |= {"_any", "_all"} if kind == "int" else set()
        results |= {"_ilogb", "_remquo"} if dtype == "int" else set()
        results |= {"_random"} if kind == "uint4" else set()
    elif dtype in FLOATS:
        results |= _FLOATING | EITHER | {"_copysign", "_ldexp", "_nan", "_remquo", "_bitselect", "_select"}
        results |= ACROSS if lanes == 1 else OF_VECTORS
        results |= {"_cross"} if lanes in (3, 4) else set()
        results -= {"_cross"} if lanes < 3 else set()
        results -= OF_VECTORS if lanes == 1 else ACROSS
    return sorted(results)


def call(make, kind: str, name: str, depth: int) -> tuple:
    """A call of a function that gives a value of the type; `make` makes its operands."""
    dtype, lanes = split(kind)
    arity = ENTRIES[name].arity
    if name in _SPECIAL:
        return _SPECIAL[name](make, kind, name, depth)
    if name in UNSIGNED:
        args = make.operands(kind if make.chance(50) else join(dtype[1:], lanes), arity, depth, exactly=True)
    elif name in TESTS:
        args = _tested(make, kind, name, depth)
    elif name in ACROSS:
        args = make.operands(join(dtype, make.pick((2, 3, 4, 1))), arity, depth)
    else:
        args = make.operands(kind, arity, depth)
    results = ("call", kind, name, *args)
    return ("literal", kind, "+", results, 0.0, False) if name in ANY_ZERO else results


def _tested(make, kind: str, name: str, depth: int) -> tuple:
    dtype, lanes = split(kind)
    of = make.pick([d for d in FLOATS if lanes == 1 or SIGNED_OF[BITS[d]] == dtype])
    args = make.operands(join(of, lanes), ENTRIES[name].arity, depth)
    return tuple(("real", join(of, lanes), a) for a in args) if name == "_signbit" else args


def _copysign(make, kind, name, depth):
    return ("call", kind, name, make.value(kind, depth), ("real", kind, make.value(kind, depth)))


def _ldexp(make, kind, name, depth):
    n = join(make.pick(INTEGERS), make.pick((1, split(kind)[1])))
    return ("call", kind, name, make.value(kind, depth), make.value(n, depth))


def _nan(make, kind, name, depth):
    code = join({"half": "ushort", "float": "uint", "double": "ulong"}[split(kind)[0]], split(kind)[1])
    return ("call", kind, name, make.value(code, depth))


def _ilogb(make, kind, name, depth):
    of = join(make.pick(FLOATS), split(kind)[1])
    return ("call", kind, name, ("finite", of, make.value(of, depth)))


def _remquo(make, kind, name, depth):
    dtype, lanes = split(kind)
    of = join(make.pick(FLOATS), lanes) if dtype == "int" else kind
    args = (("finite", of, make.value(of, depth)) for _ in range(2))
    return ("part", kind, name, int(dtype == "int"), *args)


def _rotate(make, kind, name, depth):
    n = join(make.pick(INTEGERS), make.pick((1, split(kind)[1])))
    return ("call", kind, name, make.value(kind, depth), make.value(n, depth))


def _bitselect(make, kind, name, depth):
    args = [make.value(kind, depth) for _ in range(3)]
    return ("call", kind, name, *(("real", kind, a) if split(kind)[0] in FLOATS else a for a in args))


def _select(make, kind, name, depth):
    lanes = split(kind)[1]
    condition = join(make.pick(("bool", *INTEGERS)), make.pick((1, lanes)))
    return ("call", kind, name, *(make.value(k, depth) for k in (kind, kind, condition)))


def _across(make, kind, name, depth):
    of = join(make.pick(("bool", *filter(signed, INTEGERS))), make.pick((2, 3, 4, 1)))
    return ("call", kind, name, make.value(of, depth))


def _cross(make, kind, name, depth):
    return ("call", kind, name, make.value(kind, depth), make.value(kind, depth))


def _random(make, kind, name, depth):
    key, counter = (join(make.pick(INTEGERS), make.pick(lengths)) for lengths in ((1, 2), (1, 2, 3, 4)))
    return ("call", kind, name, make.value(key, depth), make.value(counter, depth))


_SPECIAL = {
    "_copysign": _copysign, "_ldexp": _ldexp, "_nan": _nan, "_ilogb": _ilogb, "_remquo": _remquo, "_rotate": _rotate,
    "_bitselect": _bitselect, "_select": _select, "_any": _across, "_all": _across, "_cross": _cross, "_random": _random,
}  # fmt: skip
