"""What to write instead of NumPy's names that fields do not have."""

from __future__ import annotations

_TYPE = "its grid is in `.field_shape`, its tensor in `.tensor_shape`"
WAYS = {  # by NumPy's name of the function
    "round": "`np.rint(f)` rounds", "around": "`np.rint(f)` rounds",
    "dot": "`(a * b).sum()` is the inner product; kernels have `_dot` of vectors",
    "matmul": "`(a * b).sum()` is the inner product; an operator that adds `_readTensor(a, _row, k) * _readTensor(b, k, _column)` "
    "in a `with _for(…) as k:` multiplies matrices",
}  # fmt: skip
ATTRIBUTES = {
    "shape": _TYPE, "ndim": _TYPE, "size": "`.type.array_shape.points` counts its values",
    "next": "`.next` is only set, inside a graph's `with`; `graph.read(f)` gives what a field is after a step",
    "copy": "fields do not change: `f` itself serves as a copy", "item": "`float(f)` is the number of a 0D field",
    "clip": "`np.clip(f, low, high)` clips", "dot": WAYS["dot"], "flatten": "`f.ravel()` is the field in one row",
    "sort": "`np.sort(f, axis)` is the field in order; fields do not change", "median": "`np.median(f, axis)` is a field",
    **{name: WAYS[name] for name in ("round",)},
}  # fmt: skip
