"""Replacements for NumPy names that fields do not have, for messages."""

from __future__ import annotations

_CHANGE = "a Field's values do not change; `gp.updated(f, index, values)` makes a new one"
_KNOWN = "its result is for the host: give it `f.numpy()`"
WAYS = {  # by NumPy name
    "linalg.eig": "`np.linalg.eigh` is for symmetric matrices", "linalg.eigvals": "`np.linalg.eigvalsh` is for symmetric ones",
    "kron": "`np.multiply.outer(a, b)` has all products; transpose and reshape it",
    "cov": "`np.tensordot(d, d, (1, 1)) / (n - 1)` of `d = f - f.mean(axis=1, keepdims=True)`",
    "corrcoef": "divide what `np.cov` gives by the deviations",
    "partition": "`np.sort(f, axis)` is in that order too", "argpartition": "`np.argsort(f, axis)` is in that order too",
    "lexsort": "`np.argsort` is stable: sort by the last key first", "sort_complex": "`np.sort(f)` sorts complex fields too",
    "insert": "`np.concatenate` of slices puts values between", "resize": "`np.tile` and a slice repeat values",
    "block": "`np.concatenate` and `np.stack` put fields together", "trim_zeros": "slices cut at known places",
    "compress": "`np.take(f, np.flatnonzero(mask))` takes what a mask names",
    "extract": "`np.take(f, np.flatnonzero(mask))` takes what a mask names",
    "put": _CHANGE, "place": _CHANGE, "putmask": _CHANGE, "copyto": _CHANGE, "put_along_axis": _CHANGE, "fill_diagonal": _CHANGE,
    "histogram2d": "an operator with `_atomic_add` counts in bins of several axes",
    "histogramdd": "an operator with `_atomic_add` counts in bins of several axes",
    "apply_along_axis": "an operator is a function of all places", "apply_over_axes": "reductions take a tuple of axes",
    "polyval": "Horner's rule is a loop: `for c in p: y = y * x + c`", "polyfit": _KNOWN, "roots": _KNOWN,
    "unravel_index": "`//` and `%` of the extents take numbers of places apart",
    "union1d": "`np.unique(np.concatenate([a, b]))` has the values of both",
    "intersect1d": "`np.isin(a, b)` says which values of one are in the other",
    "setdiff1d": "`np.isin(a, b, invert=True)` says which values of one are not in the other",
    "setxor1d": "`np.isin` says which values of one are in the other",
    "packbits": "shifts and sums make bytes of bits", "unpackbits": "`f >> n & 1` are the bits of bytes",
    "real_if_close": "`.real` is the real part", "array2string": _KNOWN, "array_repr": _KNOWN, "array_str": _KNOWN,
    "save": _KNOWN, "savez": _KNOWN, "savetxt": _KNOWN,
    "float_power": "`np.power` computes in the fields' dtype; `.astype(\"float64\")` widens", "isnat": "fields have no dates",
    "ldexp": "`f * 2.0**n` scales by a power of two", "frexp": "kernels have `_ilogb` and `_ldexp`",
    "spacing": "`np.nextafter(f, np.inf) - f` is the distance to the next number",
    "add.at": "an operator with `_atomic_add` adds at places", "add.reduceat": "`np.cumsum` at the ends of the parts, subtracted",
}  # fmt: skip
ATTRIBUTES = {
    "next": "`.next` is only set, inside a graph's `with`; `graph.read(f)` gives what a field is after a step",
    "strides": "gpuop chooses the layout of values in memory", "flat": "`f.ravel()` is the field in one row",
    "sort": "`np.sort(f, axis)` is the field in order; fields do not change", "median": "`np.median(f, axis)` is a field",
}  # fmt: skip
